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
from partitioner.methods.placers.dpos import along, dpos, schedule_path
from partitioner.methods.placers.dpos_block import (
    OFF,
    descending,
    output_cost,
    place_all,
    rewritten,
    roles,
    spliced,
)
from partitioner.methods.placers.dpos_draft import CONCATENATE, SPLIT, WHOLE, Draft, Share, draft_of
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.ranks import bottom, largest_times, largest_transfers
from partitioner.methods.placers.task_arrays import TaskArrays, arrays_of, empty_state
from partitioner.methods.placers.timing import makespan
from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.tasks import Tasks


@njit(cache=True, inner=True)
def least_times(arrays: TaskArrays) -> Floats:
    """Return the least time of each task, shape (n,)."""
    least = np.empty(len(arrays.size))
    for v in range(len(least)):
        least[v] = arrays.time[0, v]
        for d in range(1, len(arrays.time)):
            least[v] = min(least[v], arrays.time[d, v])
    return least


@njit(cache=True, nogil=True)
def heads(arrays: TaskArrays, role: Ints, lines: Floats) -> Floats:
    """Return when each task ends at the earliest, shape (n,); `lines` as in :attr:`Tasks.links`."""
    least: Floats = least_times(arrays)
    head = np.zeros(len(least))
    for v in range(len(head)):
        row = arrays.before[arrays.before_start[v] : arrays.before_start[v + 1]]
        for u in row:
            head[v] = max(head[v], head[u])
        if role[v] == CONCATENATE:
            part, made = row[0], arrays.before_tensor[arrays.before_start[v]]
            for e in range(arrays.before_start[part], arrays.before_start[part + 1]):
                costs = arrays.cost[arrays.before_tensor[e]], arrays.cost[made]
                through = spread(len(row), least[part], costs, lines, len(arrays.time))
                head[v] = max(head[v], head[arrays.before[e]] + through)
        head[v] += least[v]
    return head


@njit(cache=True, nogil=True)
def tails(arrays: TaskArrays, role: Ints, lines: Floats) -> Floats:
    """Return the least time from the end of each task to the end of all, shape (n,)."""
    least: Floats = least_times(arrays)
    tail = np.zeros(len(least))
    for v in range(len(tail) - 1, -1, -1):
        begin, end = arrays.after_start[v], arrays.after_start[v + 1]
        for e in range(begin, end):
            tail[v] = max(tail[v], least[arrays.after[e]] + tail[arrays.after[e]])
        if role[v] == SPLIT:
            part = arrays.after[begin]
            e = arrays.after_start[part]
            if e < arrays.after_start[part + 1]:
                costs = arrays.cost[arrays.after_tensor[begin]], arrays.cost[arrays.after_tensor[e]]
                through = spread(end - begin, least[part], costs, lines, len(arrays.time))
                last = arrays.after[e]
                tail[v] = max(tail[v], through + least[last] + tail[last])
    return tail


@njit(cache=True, nogil=True)
def least_makespan(
    arrays: TaskArrays, lines: Floats, head: Floats, tail: Floats, v: int, share: Share
) -> float:
    """Return a lower bound on the end of every schedule with task `v` split, by the paths through its parts.

    Parameters
    ----------
    arrays
        The tasks before the split.
    lines
        As in :attr:`Tasks.links`.
    head, tail
        Shape (n,): of the tasks before the split, see :func:`heads` and :func:`tails`.
    v, share
        The task and its split.
    """
    split = part = join = np.inf
    for d in range(len(share.time)):
        split, part, join = (
            min(split, share.time[d, 0]), min(part, share.time[d, 1]), min(join, share.time[d, 2])
        )  # fmt: skip
    if arrays.after_start[v] == arrays.after_start[v + 1]:
        join = 0.0
    end = 0.0
    made = output_cost(arrays, v) / (share.parts if share.divides_output else 1)
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        read = arrays.cost[arrays.before_tensor[e]] / (share.parts if share.divides_input else 1)
        through = spread(share.parts, part, (read, made), lines, len(arrays.time))
        end = max(end, head[arrays.before[e]] + split + through)
    return float(max(end, part) + join + tail[v])


@njit(cache=True, inner=True)
def spread(count: int, time: float, costs: tuple[float, float], lines: Floats, devices: int) -> float:
    """Return the least time from a split node to the concatenate node.

    Either both nodes share a device, on which parts run one after another without transfers, or the parts on
    their two devices pay one transfer. All other parts pay two transfers and share the remaining devices.

    Parameters
    ----------
    count, time
        How many parts there are, and the least time of each.
    costs
        Costs of the tensor that each part reads, and of the one that it makes.
    lines, devices
        The links as in :attr:`Tasks.links`, and the number of devices.
    """
    best = count * time
    if devices == 1 or time == np.inf:
        return best
    into = out = np.inf  # the least times of transfers between two devices
    for k in range(len(lines)):
        into = min(into, lines[k, 0] * costs[0] + lines[k, 1])
        out = min(out, lines[k, 0] * costs[1] + lines[k, 1])
    for near in range(count + 1):
        far = count - near
        apart = into + out + np.ceil(far / (devices - 1)) * time if far else 0.0
        best = min(best, max(near * time, apart))
        if far == 0 or devices > 2:
            apart = into + out + np.ceil(far / (devices - 2)) * time if far else 0.0
            close = min(into, out) + np.ceil(near / 2) * time if near else 0.0
            best = min(best, max(close, apart))
    return best


def split_task(draft: Draft, v: int, share: Share) -> Draft:
    """Return the draft with task `v` split.

    Each tensor that the task reads goes to a split node, which sends a part of it, or all, to every
    sub-operation. These send parts of the output, or partial outputs, to the concatenate node, which makes
    the tensors that the task made. Without inputs there are no split nodes, without consumers there is no
    concatenate node. Each new task is a group of its own.
    """
    tasks, arrays = draft.tasks, arrays_of(draft.tasks)
    block = roles(arrays, v, share.parts)
    new = rewritten(arrays, v, share, block)
    split = replace(
        tasks,
        node=spliced(tasks.node, v, np.full(len(block), tasks.node[v])),
        time=new.time,
        size=new.size,
        group=new.group,
        before=Rows(new.before_start, new.before),
        before_tensor=new.before_tensor,
        after=Rows(new.after_start, new.after),
        after_tensor=new.after_tensor,
        cost=new.cost,
    )
    number = np.arange(len(block)) - np.searchsorted(block, block)
    return Draft(split, spliced(draft.role, v, block), spliced(draft.number, v, number))


@njit(cache=True, nogil=True)
def trial(
    arrays: TaskArrays, block: Ints, role: Ints, limit: Floats, lines: Floats, v: int, share: Share,
    cutoff: float,
) -> float:  # fmt: skip
    """Return DPOS's makespan with task `v` split; infinity if some task fits nowhere, or at the cutoff.

    Parameters
    ----------
    arrays, block, role
        The tasks before the split, the roles of those that replace task `v`, and the role of each after it.
    limit
        Shape (D,): memory of the devices.
    lines
        Shape (k, 2): slopes and intercepts of the links.
    v, share
        The task and its split.
    cutoff
        See :func:`partitioner.methods.placers.dpos.dpos`.
    """
    split = rewritten(arrays, v, share, block)
    transfer, along_edges = largest_transfers(split.cost, lines), np.empty(len(split.after_tensor))
    for e in range(len(along_edges)):
        along_edges[e] = transfer[split.after_tensor[e]]
    rank = bottom(split.after_start, split.after, largest_times(split.time), along_edges)
    order = descending(rank)
    path = along(split.before_start, split.after_start, split.after, rank)
    place = np.full(len(rank), OFF)
    for i in range(len(path)):
        place[path[i]] = i
    tail = tails(split, role, lines)
    tensors = len(split.cost) if split.contention else 0
    state = empty_state(limit, len(rank), len(split.group_size), tensors)
    if not place_all(split, state, order, path, place, cutoff, tail):
        return np.inf
    last = 0.0
    for v in range(len(rank)):
        last = max(last, state.finish[v])
    return last


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials of splits of a draft's tasks.

    Parameters
    ----------
    draft
        The tasks.
    reserve
        See :func:`partitioner.methods.placers.dpos.dpos`.
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
            block = roles(arrays, v, share.parts)
            role = spliced(self.draft.role, v, block)
            return float(trial(arrays, block, role, tasks.limit, lines, v, share, cutoff))
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
        See :func:`partitioner.methods.placers.dpos.dpos`.
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
