"""OS-DPOS, which splits operations along the critical path (FastT, Section 5.2, Algorithm 2).

A trial splits a task and places all tasks by DPOS, only as far as it can be the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.placers.dpos import dpos, dpos_schedule, schedule_path
from partitioner.methods.placers.dpos_draft import CONCATENATE, PART, SPLIT, WHOLE, Draft, Share, draft_of
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.timing import makespan
from partitioner.problem.arrays import Bools, Floats, Ints, Rows
from partitioner.problem.tasks import Tasks


def heads(draft: Draft, lines: Floats) -> Floats:
    """Return when each task of a draft ends at the earliest, shape (n,).

    Parameters
    ----------
    draft
        The tasks.
    lines
        As in :attr:`Tasks.links`.
    """
    tasks, least = draft.tasks, draft.tasks.time.min(axis=0)
    order, cost, joins = np.arange(tasks.n), tasks.cost[tasks.before_tensor], draft.role == CONCATENATE
    found: Floats = longest_before(order, tasks.before, cost, joins, lines, least, len(tasks.limit))
    return np.asarray(found + least)


def tails(draft: Draft, lines: Floats) -> Floats:
    """Return the least time from the end of each task to the end of all, shape (n,); see :func:`heads`."""
    tasks, least = draft.tasks, draft.tasks.time.min(axis=0)
    order, cost = np.arange(tasks.n - 1, -1, -1), tasks.cost[tasks.after_tensor]
    splits = draft.role == SPLIT
    found: Floats = longest_before(order, tasks.after, cost, splits, lines, least, len(tasks.limit))
    return found


@njit(cache=True, nogil=True)
def longest_before(
    order: Ints, rows: Rows, cost: Floats, joins: Bools, lines: Floats, least: Floats, devices: int
) -> Floats:
    """Return the longest path to each task, without the task, shape (n,).

    Parameters
    ----------
    order
        The tasks, each after those of its row.
    rows, cost
        The tasks before each one, and the cost of the tensor of each of these edges.
    joins
        Shape (n,): whether the tasks of the row are the parts of one that was split.
    lines, devices
        The links as in :attr:`Tasks.links`, and the number of devices.
    least
        Shape (n,): the least time of each task.
    """
    length = np.zeros(len(least))
    for v in order:
        begin, end = rows.start[v], rows.start[v + 1]
        for e in range(begin, end):
            u = rows.items[e]
            length[v] = max(length[v], length[u] + least[u])
        if joins[v]:
            part = rows.items[begin]
            for e in range(rows.start[part], rows.start[part + 1]):
                u = rows.items[e]
                through = spread(end - begin, least[part], (cost[e], cost[begin]), lines, devices)
                length[v] = max(length[v], length[u] + least[u] + through)
    return length


def least_makespan(tasks: Tasks, lines: Floats, head: Floats, tail: Floats, v: int, share: Share) -> float:
    """Return a lower bound on the end of every schedule with task `v` split, by the paths through its parts.

    Parameters
    ----------
    tasks
        The tasks before the split.
    lines
        As in :attr:`Tasks.links`.
    head, tail
        Shape (n,): of the tasks before the split, see :func:`heads` and :func:`tails`.
    v, share
        The task and its split.
    """
    split, part, join = share.time.min(axis=0).tolist()
    end, made = 0.0, _output_cost(tasks, v, share)
    for u, cost in zip(tasks.before.row(v).tolist(), _input_costs(tasks, v, share).tolist(), strict=True):
        through = float(spread(share.parts, part, (cost, made), lines, len(tasks.limit)))
        end = max(end, float(head[u]) + split + through)
    return float(max(end, part) + (join if len(tasks.after.row(v)) else 0.0) + tail[v])


@njit(cache=True, nogil=True)
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

    The new tensors come last: one from each split node, then one from each part if there is a concatenate
    node.
    """
    tasks = draft.tasks
    inputs, joined = len(tasks.before.row(v)), min(1, len(tasks.after.row(v)))
    role = np.repeat((SPLIT, PART, CONCATENATE), (inputs, share.parts, joined))
    size = np.where(role == PART, share.size, 0.0)
    made = np.full(share.parts * joined, _output_cost(tasks, v, share))
    before, before_tensor = _producers(tasks, v, role)
    after, after_tensor = _consumers(tasks, v, role)
    split = replace(
        tasks,
        node=_spliced(tasks.node, v, np.full(len(role), tasks.node[v])),
        time=np.ascontiguousarray(
            np.hstack((tasks.time[:, :v], share.time[:, role - SPLIT], tasks.time[:, v + 1 :]))
        ),
        size=_spliced(tasks.size, v, size),
        group=_spliced(tasks.group, v, len(tasks.group_size) + np.arange(len(role))),
        before=before,
        before_tensor=before_tensor,
        after=after,
        after_tensor=after_tensor,
        cost=np.concatenate((tasks.cost, _input_costs(tasks, v, share), made)),
    )
    number = np.arange(len(role)) - np.searchsorted(role, role)
    return Draft(split, _spliced(draft.role, v, role), _spliced(draft.number, v, number))


def _spliced(values: NDArray[Any], v: int, block: NDArray[Any]) -> NDArray[Any]:
    """Return the values with value `v` replaced by those of a block."""
    return np.concatenate((values[:v], block, values[v + 1 :]))


def _input_costs(tasks: Tasks, v: int, share: Share) -> Floats:
    """Return the cost of what each part reads of each tensor that task `v` reads."""
    read = tasks.cost[tasks.before_tensor[tasks.before.start[v] : tasks.before.start[v + 1]]]
    return np.asarray(read / (share.parts if share.divides_input else 1))


def _output_cost(tasks: Tasks, v: int, share: Share) -> float:
    """Return the cost of what each part makes of all tensors that task `v` makes."""
    tensors = set(tasks.after_tensor[tasks.after.start[v] : tasks.after.start[v + 1]].tolist())
    return float(sum(tasks.cost[sorted(tensors)].tolist())) / (share.parts if share.divides_output else 1)


def _producers(tasks: Tasks, v: int, role: Ints) -> tuple[Rows, Ints]:
    """Return the producers of the tasks once `v` is replaced by tasks of some roles, and their tensors."""
    start, items, tensors = tasks.before.start, tasks.before.items, tasks.before_tensor
    end, more, new = start[v + 1], len(role) - 1, len(tasks.cost)
    split, part = np.flatnonzero(role == SPLIT), np.flatnonzero(role == PART)
    joined = part if role[-1] == CONCATENATE else part[:0]
    within = np.concatenate((np.tile(split, len(part)), joined))
    item = np.concatenate(
        (items[:end], v + within, np.where(items[end:] >= v, items[end:] + more, items[end:]))
    )
    tensor = np.concatenate((tensors[:end], new + within, tensors[end:]))
    count = np.choose(role - SPLIT, (1, len(split), len(part)))
    return Rows(_starts(_spliced(np.diff(start), v, count)), item), tensor


def _consumers(tasks: Tasks, v: int, role: Ints) -> tuple[Rows, Ints]:
    """Return the consumers of the tasks once `v` is replaced by tasks of some roles, and their tensors."""
    start, items, tensors = tasks.after.start, tasks.after.items, tasks.after_tensor
    begin, more, new = start[v], len(role) - 1, len(tasks.cost)
    split, part = np.flatnonzero(role == SPLIT), np.flatnonzero(role == PART)
    joined = part if role[-1] == CONCATENATE else part[:0]
    # The split node of a tensor reads it in place of the task.
    read = tasks.before_tensor[tasks.before.start[v] : tasks.before.start[v + 1]]
    reading, by_tensor = np.flatnonzero(items[:begin] == v), np.argsort(read)
    renumbered = items + more * (items >= v)
    renumbered[reading] = v + by_tensor[np.searchsorted(read[by_tensor], tensors[reading])]
    within = np.concatenate((np.tile(part, len(split)), np.full(len(joined), more)))
    sent = np.concatenate((np.repeat(split, len(part)), joined))
    item = np.concatenate((renumbered[:begin], v + within, renumbered[begin:]))
    tensor = np.concatenate((tensors[:begin], new + sent, tensors[begin:]))
    own = start[v + 1] - begin
    count = np.choose(role - SPLIT, (len(part), len(joined) > 0, own))
    return Rows(_starts(_spliced(np.diff(start), v, count)), item), tensor


def _starts(count: Ints) -> Ints:
    """Return where rows of some lengths begin and the last one ends."""
    return np.concatenate(([0], np.cumsum(count))).astype(np.int64)


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
    def around(self) -> tuple[Floats, Floats]:
        """Shape (n,) each: the earliest end of each task, and the least time from there to the end of all."""
        return heads(self.draft, self.lines), tails(self.draft, self.lines)

    def value(self, v: int, share: Share, cutoff: float) -> float:
        """Return the makespan by DPOS with task `v` split.

        It is infinite if some task fits nowhere, or if the makespan is certain not to be below the cutoff: a
        path through the parts is too long in every schedule, or too long once some of the tasks are placed.
        With contention tasks may run earlier than DPOS booked them, so all of them are placed first.
        """
        if least_makespan(self.draft.tasks, self.lines, *self.around, v, share) >= cutoff:
            return np.inf
        split = split_task(self.draft, v, share)
        if split.tasks.contention:
            found = dpos(split.tasks, self.reserve)
            return np.inf if found is None else makespan(split.tasks, found.device, found.order)
        state = dpos_schedule(split.tasks, self.reserve, None, cutoff, tails(split, self.lines))
        return np.inf if state is None else float(state.finish.max(initial=0.0))


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
