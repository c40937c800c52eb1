"""What each search of the ladder of method ``dp`` wins: every workload without one of them at a time.

A workload is solved with the whole ladder under a limit of seconds, and again without each search that was
tried, in the same process and with kernels compiled. A search wins where without it the value is worse, the
bound is lower, or the run takes at least three times as long. The table has a row for each search.

Exit code: 0; 2 a folder is missing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from grids import markdown_grid
from outside_bench.cases import line_cases, worker_cases

import partitioner as pt
from partitioner.methods.dp import exact
from partitioner.methods.dp.exact import Climb, Rung
from partitioner.methods.method import Outcome

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
BAD_INPUT = 2
SLOWER, WORSE = 3.0, 1e-6


@dataclass(frozen=True)
class Run:
    """A plan's value, bound and seconds, and the searches that were tried."""

    value: float
    bound: float
    seconds: float
    tried: tuple[str, ...]


@contextmanager
def ladder_without(name: str, tried: list[str]) -> Iterator[None]:
    """Leave a search out of the ladder, and note the others when they are tried."""
    whole = exact.LADDER
    exact.LADDER = tuple(_noting(rung, tried) for rung in whole if rung.name != name)
    try:
        yield
    finally:
        exact.LADDER = whole


def _noting(rung: Rung, tried: list[str]) -> Rung:
    def search(climb: Climb) -> Outcome | None:
        tried.append(rung.name)
        return rung.search(climb)

    return replace(rung, search=search)


def run(workload: pt.Workload, limit: float, without: str = "") -> Run:
    """Solve a workload by method ``dp`` without one of the searches."""
    tried: list[str] = []
    with ladder_without(without, tried):
        began = time.perf_counter()
        plan = pt.solve(workload.graph, workload.devices, split="chain", method="dp", time_limit=limit)
        seconds = time.perf_counter() - began
    return Run(plan.value, plan.bound, seconds, tuple(dict.fromkeys(tried)))


def lost(whole: Run, part: Run) -> str:
    """Say what a run without a search loses; nothing if it loses nothing."""
    found = []
    if part.value > whole.value * (1 + WORSE):
        found.append(f"value {part.value:.6g} for {whole.value:.6g}")
    if part.bound < whole.bound * (1 - WORSE):
        found.append(f"bound {part.bound:.6g} for {whole.bound:.6g}")
    if not found and part.seconds > max(SLOWER * whole.seconds, 0.5):
        found.append(f"{part.seconds:.1f} s for {whole.seconds:.1f} s")
    return ", ".join(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        workloads = dict(_workloads(options))
    except (OSError, pt.PartitionerError) as error:
        print(f"ladder_rungs: {error}", file=sys.stderr)
        return BAD_INPUT
    tried: dict[str, list[str]] = {rung.name: [] for rung in exact.LADDER}
    wins: dict[str, list[str]] = {rung.name: [] for rung in exact.LADDER}
    for name, workload in workloads.items():
        run(workload, options.limit)  # compiles the kernels
        whole = run(workload, options.limit)
        for rung in whole.tried:
            tried[rung].append(name)
            loss = lost(whole, run(workload, options.limit, rung))
            if loss:
                wins[rung].append(f"{name}: {loss}")
                print(f"{rung} | {name}: {loss}", file=sys.stderr, flush=True)
    rows = [[name, str(len(tried[name])), str(len(wins[name])), "; ".join(wins[name])] for name in tried]
    print(markdown_grid(["search", "tried", "wins", "without it"], rows))
    return 0


def _workloads(options: argparse.Namespace) -> Iterator[tuple[str, pt.Workload]]:
    for file in options.workloads:
        yield file.stem, pt.load(file)
    if options.benchmarks is None:
        return
    lines = list(line_cases(options.benchmarks))
    workers = list(worker_cases(options.benchmarks))
    for case in [*lines[:: options.every], *workers[:: options.every]]:
        yield case.name, case.load()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ladder_rungs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    files = sorted(INSTANCES.glob("*_*.json"))
    parser.add_argument("--workloads", type=Path, nargs="*", default=files, metavar="FILE")
    parser.add_argument("--benchmarks", type=Path, metavar="FOLDER", help="assembly lines and workers, too")
    parser.add_argument("--every", type=int, default=20, metavar="N", help="take each N-th of these")
    parser.add_argument("--limit", type=float, default=5.0, metavar="SECONDS", help="of each run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
