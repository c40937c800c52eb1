"""Measure workloads, ours and the reference program in turn."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from dp_bench.reference import Run, run_reference
from dp_bench.session import Session, WorkerFailed

SAME = 1e-6


@dataclass(frozen=True)
class Reference:
    """The program to compare with, and the seconds that each of its runs may take."""

    program: Path
    timeout: float


@dataclass(frozen=True)
class Result:
    """What was measured of one workload; figures that are unknown are None.

    Parameters
    ----------
    workload
        The file's name without its extension.
    supernodes, ideals, steps
        The size of the contracted graph, and the steps that the search walked.
    value, proven
        Of our plan.
    seconds
        Of every timed run.
    peak_bytes
        Of a process that loaded the workload and solved it once.
    failure
        Why there are no figures.
    runs
        Those of the reference program.
    """

    workload: str
    supernodes: int | None = None
    ideals: int | None = None
    steps: int | None = None
    value: float | None = None
    proven: bool = False
    seconds: tuple[float, ...] = ()
    peak_bytes: int | None = None
    failure: str = ""
    runs: tuple[Run, ...] = field(default=())

    @property
    def median_seconds(self) -> float | None:
        """Of our runs."""
        return median(self.seconds) if self.seconds else None

    @property
    def reference(self) -> Run | None:
        """The reference program's figures: median seconds, largest memory, or its first failure."""
        if not self.runs:
            return None
        failed = [run for run in self.runs if run.failure]
        if failed:
            return failed[0]
        seconds = median(run.seconds for run in self.runs if run.seconds is not None)
        return Run(seconds, max(run.peak_bytes or 0 for run in self.runs), self.runs[0].value)

    @property
    def good(self) -> bool:
        """False if we failed, or if the reference program has a smaller value."""
        theirs = self.reference.value if self.reference else None
        if self.value is None or theirs is None:
            return not self.failure
        return self.value <= theirs or math.isclose(self.value, theirs, rel_tol=SAME)


def measure(file: Path, method: str, repeat: int, reference: Reference | None) -> Result:
    """Solve a workload `repeat` times, in turn with the reference program if there is one."""
    seconds: list[float] = []
    runs: list[Run] = []
    try:
        with Session(method, file) as session:
            for _ in range(repeat):
                seconds.append(session.solve()["seconds"])
                if reference is not None and not (runs and runs[-1].failure):
                    runs.append(run_reference(reference.program, file, reference.timeout))
            first = session.first
    except WorkerFailed as error:
        return Result(file.stem, failure=str(error))
    names = ("supernodes", "ideals", "steps", "value", "proven", "peak_bytes")
    figures = {name: first[name] for name in names}
    return Result(file.stem, **figures, seconds=tuple(seconds), runs=tuple(runs))


def baseline_bytes(method: str) -> int:
    """Peak memory of a process that only solved a tiny graph, with compiled kernels."""
    with Session(method):
        pass
    with Session(method) as session:
        return int(session.first["peak_bytes"])


def compile_seconds(method: str, file: Path) -> tuple[float, float]:
    """Seconds of a process's first solves with an empty cache of kernels, then with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        found = []
        for _ in range(2):
            with Session(method, file, {"NUMBA_CACHE_DIR": cache}) as session:
                found.append(float(session.first["first_seconds"]))
    return found[0], found[1]
