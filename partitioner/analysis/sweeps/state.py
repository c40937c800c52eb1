"""The rows of a sweep while it runs, those of its file and those that come, and its progress."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from partitioner.analysis.sweeps.journal import Journal
from partitioner.analysis.sweeps.layout_task import AnyTask
from partitioner.analysis.sweeps.result import SweepResult
from partitioner.analysis.sweeps.row import FAILED, SweepRow
from partitioner.base.errors import PartitionerError
from partitioner.base.files import write_text

INTERRUPTED = "interrupted"
LONG, COMPILING = 5.0, ", a machine compiles kernels before its first task"  # seconds without a row


@dataclass(frozen=True)
class SweepProgress:
    """The state of a sweep, as given to `on_progress`.

    Parameters
    ----------
    done, failed, total
        Tasks that have ended, those of them that failed, and all tasks.
    before
        Tasks that had ended before this run began.
    seconds
        Seconds since this run began.
    """

    done: int
    failed: int
    total: int
    before: int
    seconds: float

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes if it goes on as fast; None before a task of this run has ended."""
        here = self.done - self.before
        return None if here == 0 else self.seconds / here * (self.total - self.done)

    def text(self) -> str:
        """Return the progress in one line.

        Examples
        --------
        >>> SweepProgress(40, 1, 200, 20, 60.0).text()
        '40 of 200 done, 1 failed, 60 s, about 480 s left'
        >>> SweepProgress(0, 0, 200, 0, 60.0).text()
        '0 of 200 done, 0 failed, 60 s, a machine compiles kernels before its first task'
        """
        if self.left is not None:
            rest = f", about {self.left:.0f} s left"
        else:
            rest = COMPILING if self.seconds >= LONG else ""
        return f"{self.done:,} of {self.total:,} done, {self.failed:,} failed, {self.seconds:.0f} s{rest}"


class SweepState:
    """The rows that are known, and the tasks that still wait for theirs.

    Parameters
    ----------
    tasks
        All tasks of the sweep. Tasks with the same key are solved once.
    journal
        The file of results; None if none is kept.
    plans
        The folder of plans; None if none are kept.
    retry_failed
        Whether tasks that failed before are run again.
    on_progress
        Called with the progress.
    """

    def __init__(
        self,
        tasks: Sequence[AnyTask],
        journal: Journal | None,
        plans: Path | None,
        retry_failed: bool,
        on_progress: Callable[[SweepProgress], None] | None,
    ) -> None:
        self.tasks, self.journal, self.plans, self.on_progress = tasks, journal, plans, on_progress
        self.began = time.perf_counter()
        self.times = Counter(task.key for task in tasks)
        known = {} if journal is None else journal.rows
        kept = {key: known[key] for key in self.times if key in known}
        self.rows = {key: row for key, row in kept.items() if not (retry_failed and row.status == FAILED)}
        self.before = self.done = sum(self.times[key] for key in self.rows)
        self.failed = sum(self.times[key] for key, row in self.rows.items() if row.status == FAILED)

    @property
    def waiting(self) -> list[AnyTask]:
        """The tasks without a row, one for each key."""
        first = {task.key: task for task in reversed(self.tasks) if task.key not in self.rows}
        return list(reversed(first.values()))

    def take(self, row: SweepRow, plan: str) -> None:
        """Keep a row and its plan, unless Ctrl-C has cut its solve short."""
        if row.stop_reason == INTERRUPTED:
            return
        if plan and self.plans is not None:
            name = f"{row.key}.json"
            write_text(self.plans / name, plan)
            row = replace(row, plan=name)
        if self.journal is not None:
            self.journal.append(row)
        self.rows[row.key] = row
        self.done += self.times[row.key]
        self.failed += self.times[row.key] * (row.status == FAILED)

    def report(self) -> None:
        """Report the progress."""
        if self.on_progress is not None:
            seconds = time.perf_counter() - self.began
            progress = SweepProgress(self.done, self.failed, len(self.tasks), self.before, seconds)
            self.on_progress(progress)

    def result(self) -> SweepResult:
        """Return the rows so far in the order of the tasks, each with the names of its task."""
        found = [
            replace(self.rows[task.key], workload=task.workload, pool=task.pool)
            for task in self.tasks
            if task.key in self.rows
        ]
        seconds = time.perf_counter() - self.began
        return SweepResult(tuple(found), len(self.tasks), self.before, seconds)


def made_folder(path: str | os.PathLike[str] | None) -> Path | None:
    """Return a folder, which is made if it does not exist; None for None.

    Raises
    ------
    PartitionerError
        If it cannot be made.
    """
    if path is None:
        return None
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError, TypeError) as error:
        raise PartitionerError(
            f"plans = {str(path)!r}: {getattr(error, 'strerror', None) or error}"
        ) from error
    return Path(path)
