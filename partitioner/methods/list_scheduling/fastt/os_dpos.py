"""OS-DPOS, which splits operations along the critical path (FastT, Section 5.2, Algorithm 2).

A trial of OS-DPOS in one compiled call: split a task; rank, order and place all tasks.

Trials of the splits of one task, each only as far as it can be the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.fastt.block import rewritten, roles, spliced
from partitioner.methods.list_scheduling.fastt.critical import OFF, along, schedule_path
from partitioner.methods.list_scheduling.fastt.dpos import dpos
from partitioner.methods.list_scheduling.fastt.draft import WHOLE, Draft, Share, draft_of
from partitioner.methods.list_scheduling.fastt.floor import heads, least_makespan, tails
from partitioner.methods.list_scheduling.fastt.kernel import place_all
from partitioner.methods.list_scheduling.fastt.runs import descending
from partitioner.methods.list_scheduling.fastt.splitting import split_task
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.ranks import bottom, largest_times, largest_transfers
from partitioner.methods.list_scheduling.task_arrays import TaskArrays, arrays_of, empty_state
from partitioner.methods.list_scheduling.timing import makespan
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks


@njit(cache=True, nogil=True)
def trial(
    arrays: TaskArrays, role: Ints, limit: Floats, lines: Floats, v: int, share: Share, cutoff: float
) -> float:
    """Return DPOS's makespan with task `v` split; infinity if some task fits nowhere, or at the cutoff.

    Parameters
    ----------
    arrays, role
        The tasks before the split, and the role of each.
    limit
        Shape (D,): memory of the devices.
    lines
        Shape (k, 2): slopes and intercepts of the links.
    v, share
        The task and its split.
    cutoff
        See :func:`partitioner.methods.list_scheduling.fastt.dpos.dpos`.
    """
    block = roles(arrays, v, share.parts)
    split = rewritten(arrays, v, share, block)
    along_edges = largest_transfers(split.cost, lines)[split.after_tensor]
    rank = bottom(split.after_start, split.after, largest_times(split.time), along_edges)
    order = descending(rank)
    path = along(split.before_start, split.after_start, split.after, rank)
    place = np.full(len(rank), OFF)
    for i in range(len(path)):
        place[path[i]] = i
    tail = tails(split, spliced(role, v, block), lines)
    tensors = len(split.cost) if split.contention else 0
    state = empty_state(limit, len(rank), len(split.group_size), tensors)
    if not place_all(split, state, order, path, place, cutoff, tail):
        return np.inf
    return float(state.finish.max())


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


SLACK = 1 + 1e-12  # for rounding, as times are added up in different orders
Choice = TypeVar("Choice")


@dataclass(frozen=True, eq=False)
class SplittingResult(Generic[Choice]):
    """The result of Algorithm 2.

    Parameters
    ----------
    draft
        The tasks with the chosen operations split.
    splits
        The choice for each node that is split, in the order of the search.
    value, unsplit
        The makespan with the splits, and without.
    trials
        How many splits were tried, including those that a lower bound ruled out.
    """

    draft: Draft
    splits: Mapping[int, Choice]
    value: float
    unsplit: float
    trials: int


def os_dpos(
    tasks: Tasks,
    shares: Callable[[int], Mapping[Choice, Share]],
    reserve: bool = True,
    expired: Callable[[], bool] = lambda: False,
) -> SplittingResult[Choice] | None:
    """Split operations of the critical path, the longest first, as long as the makespan falls.

    The critical path is that of the schedule of the unsplit graph. Every dimension and number of parts of an
    operation is tried with a whole run of DPOS; the best one is kept if the makespan falls, else the search
    ends. Operations that cannot be split are skipped and do not end it. The old placement, which the paper's
    line 8 passes to DPOS, is no input of Algorithm 1 and is left out.

    Parameters
    ----------
    tasks
        The tasks; `node` numbers the operations.
    shares
        Function that returns the splits of a node to try, in order; among equals the first one is kept.
    reserve
        See :func:`partitioner.methods.list_scheduling.fastt.dpos.dpos`.
    expired
        Function that says whether the search must end.

    Returns
    -------
    SplittingResult or None
        None if DPOS does not place the unsplit graph.
    """
    found = dpos(tasks, reserve)
    if found is None:
        return None
    value = makespan(tasks, found.device, found.order)
    search: SplittingResult[Choice] = SplittingResult(draft_of(tasks), {}, value, value, 0)
    lines = tasks.links[0]
    for node in _longest_first(tasks, found):
        choices = {} if expired() else shares(node)
        if choices:
            search = _best_split(search, node, choices, (reserve, lines), expired)
            if node not in search.splits:
                break
    return search


def _best_split(
    search: SplittingResult[Choice],
    node: int,
    choices: Mapping[Choice, Share],
    given: tuple[bool, Floats],
    expired: Callable[[], bool],
) -> SplittingResult[Choice]:
    """Return the result after the splits of one node are tried, with the best one if the makespan falls.

    The splits into the most parts are tried first: they are mostly the best, and rule others out.
    """
    task, trials = _whole(search.draft, node), Trials(search.draft, *given)
    value, place, best = search.value, len(choices), None
    tried = search.trials
    for i, (choice, share) in sorted(enumerate(choices.items()), key=lambda item: -item[1][1].parts):
        if expired():
            break
        tried += 1
        time = trials.value(task, share, value * SLACK)
        if time < search.value and (time, i) < (value, place):
            value, place, best = time, i, (choice, share)
    if best is None:
        return replace(search, trials=tried)
    draft, splits = split_task(search.draft, task, best[1]), {**search.splits, node: best[0]}
    return SplittingResult(draft, splits, value, search.unsplit, tried)


def _longest_first(tasks: Tasks, found: Found) -> list[int]:
    """Return the nodes of the schedule's critical path by descending time on their devices."""
    path = schedule_path(tasks, found.device, found.order)
    time = tasks.time[found.device[path], path]
    nodes: list[int] = tasks.node[path[np.argsort(-time, kind="stable")]].tolist()
    return nodes


def _whole(draft: Draft, node: int) -> int:
    """Return the task of a node that is not split."""
    return int(np.flatnonzero((draft.tasks.node == node) & (draft.role == WHOLE))[0])
