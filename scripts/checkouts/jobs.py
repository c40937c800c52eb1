"""What two checkouts are both asked: every workload with every objective, method, split and setting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FEATURES = ("replicas", "schedule")  # each is also a setting of the methods that take account of it
PLAIN = "plain"
Able = tuple[
    str, str, str, tuple[str, ...]
]  # a method, an objective, a split, what the method takes account of


@dataclass(frozen=True)
class Job:
    """One workload and what is asked for."""

    file: str
    objective: str
    method: str
    split: str
    setting: str = PLAIN

    def __str__(self) -> str:
        words = (Path(self.file).stem, self.objective, self.method, self.split, self.setting)
        return " ".join(word for word in words if word != PLAIN)


def jobs_of(
    able: Iterable[Able],
    files: Sequence[Path],
    methods: Sequence[str] | None = None,
    objectives: Sequence[str] | None = None,
) -> list[Job]:
    """Return the jobs, workload by workload.

    Examples
    --------
    >>> able = [("dp", "throughput", "chain", ()), ("pipeline", "batch", "chain", ("replicas",))]
    >>> [str(job) for job in jobs_of(able, [Path("a.json")], objectives=["batch"])]
    ['a batch pipeline chain', 'a batch pipeline chain replicas']
    """
    chosen = [
        (objective, method, split, setting)
        for method, objective, split, features in sorted(able)
        if (methods is None or method in methods) and (objectives is None or objective in objectives)
        for setting in (PLAIN, *(name for name in FEATURES if name in features))
    ]
    return [Job(str(file), *what) for file in files for what in chosen]
