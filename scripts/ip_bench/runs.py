"""One run: a workload, a split and a setting, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import partitioner as pt
from partitioner.methods.registry import METHODS

BASELINE = "local_search_baseline"
SEARCHES = ("local_search", BASELINE)
SPLITS = ("convex", "free")


@dataclass(frozen=True)
class Limits:
    """What all runs of a benchmark share."""

    time_limit: float
    gap: float
    seed: int
    workers: int | None
    objective: str


@dataclass(frozen=True)
class Task:
    """What is to be run; two tasks that are equal give the same run.

    Parameters
    ----------
    workload
        The file's name without its extension.
    split
        ``"convex"`` or ``"free"``.
    setting
        A backend of the integer program, ``"auto"``, or a local search.
    limits
        When to stop.
    """

    workload: str
    split: str
    setting: str
    limits: Limits


@dataclass(frozen=True)
class Run:
    """What came of a task; without a plan its figures are None and `failure` says why.

    Parameters
    ----------
    task
        What was run.
    value, bound, seconds
        Of the plan.
    stop_reason, backend, native
        Why it ended, by which solver, in the solver's own words.
    failure
        Why there is no plan.
    """

    task: Task
    value: float | None = None
    bound: float | None = None
    seconds: float | None = None
    stop_reason: str = ""
    backend: str = ""
    native: str = ""
    failure: str = ""

    @property
    def gap(self) -> float | None:
        """How far the value may be from the optimum, as a fraction of it."""
        if self.value is None or self.bound is None:
            return None
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0

    @property
    def proven(self) -> bool:
        """Is the value proven within the gap that was asked for?"""
        return self.gap is not None and self.gap <= self.task.limits.gap + 1e-9


def settings() -> tuple[str, ...]:
    """Every setting there is: the searches, the automatic choice, and each backend."""
    return (*SEARCHES, "auto", *METHODS["ip"].backends)


def can_run(setting: str, split: str) -> bool:
    """Is the setting made for the split?"""
    return split in METHODS[setting if setting in SEARCHES else "ip"].splits


def run(task: Task, file: Path) -> Run:
    """Load a workload and run the task.

    Raises
    ------
    KeyboardInterrupt
        If the run was interrupted, with a plan or without.
    """
    search = task.setting in SEARCHES
    limits = task.limits
    try:
        workload = pt.load(file)
        plan = pt.solve(
            workload.graph,
            workload.devices,
            limits.objective,
            method=task.setting if search else "ip",
            backend="auto" if search else task.setting,
            split=task.split,
            time_limit=limits.time_limit,
            gap=limits.gap,
            seed=limits.seed,
            workers=limits.workers,
        )
    except pt.PartitionerError as error:
        return Run(task, failure=str(error))
    if plan.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return Run(
        task, plan.value, plan.bound, plan.runtime_seconds, plan.stop_reason, plan.backend, plan.native_status
    )
