"""Trials of the splits of one task, each only as far as it can be the best."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from partitioner.methods.list_scheduling.fastt.dpos import dpos
from partitioner.methods.list_scheduling.fastt.draft import Draft, Share
from partitioner.methods.list_scheduling.fastt.floor import heads, least_makespan, tails
from partitioner.methods.list_scheduling.fastt.splitting import split_task
from partitioner.methods.list_scheduling.fastt.trial import trial
from partitioner.methods.list_scheduling.task_arrays import TaskArrays, arrays_of
from partitioner.methods.list_scheduling.timing import makespan
from partitioner.problem.arrays import Floats


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials of splits of a draft's tasks.

    Parameters
    ----------
    draft
        The tasks.
    reserve
        See :func:`partitioner.methods.list_scheduling.fastt.dpos.dpos`.
    lines
        Shape (k, 2): slopes and intercepts of the links.
    """

    draft: Draft
    reserve: bool
    lines: Floats

    @cached_property
    def arrays(self) -> TaskArrays:
        """The tasks as the compiled loops read them."""
        return arrays_of(self.draft.tasks, self.reserve)

    @cached_property
    def around(self) -> tuple[Floats, Floats]:
        """Shape (n,) each: the earliest end of each task, and the least time from there to the end of all."""
        given = self.arrays, self.draft.role, self.lines
        return heads(*given), tails(*given)

    def value(self, v: int, share: Share, cutoff: float) -> float:
        """Return the makespan by DPOS with task `v` split.

        It is infinite if some task fits nowhere, or if the makespan is certain not to be below the cutoff: a
        path through the parts is too long in every schedule, or too long once some of the tasks are placed.
        With contention tasks may run earlier than DPOS booked them, so all of them are placed first.
        """
        tasks, arrays, lines = self.draft.tasks, self.arrays, self.lines
        if least_makespan(arrays, lines, *self.around, v, share) >= cutoff:
            return np.inf
        if not tasks.contention:
            return float(trial(arrays, self.draft.role, tasks.limit, lines, v, share, cutoff))
        split = split_task(self.draft, v, share).tasks
        found = dpos(split, self.reserve)
        return np.inf if found is None else makespan(split, found.device, found.order)
