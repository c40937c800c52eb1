"""Candidates for the first plan, those of the smallest estimated value first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain as chained
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from partitioner.base.clock import Clock
from partitioner.methods.dp.pipeline_loads import pipeline_value
from partitioner.methods.first_plan.stages import Line, StageRules, line_of, line_of_tasks, stage_counts
from partitioner.methods.halving import Halving
from partitioner.methods.loads import part_numbers, value_of
from partitioner.methods.method import Outcome, Part
from partitioner.methods.places import device_kinds
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.measure import Measure
from partitioner.problem.orders import reverse_postorder
from partitioner.problem.problem import Problem
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import OperatorNodes, PartsProblem, PipelineProblem, SampleProblem


@dataclass(frozen=True)
class FirstPlanEffort:
    """How many loads, orders and numbers of stages are tried.

    Measured at half and at twice each value on the 24 workloads of `instances/`, chains for throughput: half
    the `halvings` raise the mean of the values by 0.002 %, twice as many change nothing; nor do `seconds` and
    `few`, which only limit the time on large graphs.

    Parameters
    ----------
    halvings
        How often the interval between a load that fits and one that does not is halved.
    seconds
        Seconds after which no further number of stages and no further order is tried.
    few
        The largest product of supernodes and devices for which more than one order is tried.
    """

    halvings: int = 12
    seconds: float = 0.3
    few: int = 10_000


EFFORT = FirstPlanEffort()
STEP = 0.05  # of the lower bound, above which the first load is tried


class Cut(NamedTuple):
    """An interval of the line for a device of a class."""

    k: int
    begin: int
    end: int


class Cutter:
    """A line with methods that cut it into intervals, one for each device in use.

    Parameters
    ----------
    line
        The line to cut.
    rules
        The rules for intervals in addition to memory; None if there are none.
    exact
        Whether the number of intervals is exactly the one given to a method, instead of at most that.
    """

    def __init__(self, line: Line, rules: StageRules | None = None, exact: bool = False) -> None:
        self.line, self.rules, self.exact = line, rules, exact

    def balanced(self, most: int) -> list[Cut] | None:
        """Return at most `most` intervals with a small largest load; None if no cut is found at any load."""
        best = self.filled(np.inf, most)
        low = self.line.least()
        if best is None or low <= 0:
            return best
        step = STEP
        while (found := self.filled(low * (1 + step), most)) is None and step < 1e15:
            step *= 2
        best = found or best
        halving = Halving(low * (1 + step / 2 * (step > STEP)), low * (1 + step))
        for middle in islice(halving.thresholds(), 1, 1 + EFFORT.halvings):
            found = self.filled(middle, most)
            halving.learn(middle, np.inf if found is None else -np.inf)
            best = found or best
        return best

    def filled(self, target: float, most: int) -> list[Cut] | None:
        """Return intervals with loads of at most `target`, or None if the line is not covered.

        Each interval is the widest one that any free device can take.
        """
        left = self.line.count.copy()
        cuts: list[Cut] = []
        taken: set[tuple[int, int]] = set()
        begin = 0
        while begin < self.line.n and len(cuts) < most:
            behind = most - len(cuts) - 1
            cut = self._widest(np.flatnonzero(left).tolist(), begin, target, behind, taken)
            if cut.end == begin:
                return None
            cuts.append(cut)
            if self.rules is not None:
                taken |= self.rules.devices(*cut)
            left[cut.k] -= 1
            begin = cut.end
        return cuts if begin == self.line.n and (not self.exact or len(cuts) == most) else None

    def _widest(
        self, classes: list[int], begin: int, target: float, behind: int, taken: set[tuple[int, int]]
    ) -> Cut:
        """Return the widest interval from `begin` on that a device of some class can take, perhaps empty."""
        best = Cut(0, begin, begin)
        limits = self._limits(np.array(classes, dtype=np.int64), begin, target, behind)
        ends = dict(zip(classes, limits.tolist(), strict=True))
        for k in sorted(classes, key=lambda k: -ends[k]):
            if ends[k] > best.end:
                end = self._end(k, begin, ends[k], target, behind, taken)
                best = Cut(k, begin, end) if end > best.end else best
        return best

    def _limits(self, classes: Ints, begin: int, target: float, behind: int) -> Ints:
        """Return the last possible ends of intervals by times and sizes, without transfers, by class."""
        line = self.line
        held = (line.held[begin] + line.memory[classes]) * (1 + 1e-12)
        ends = np.minimum(line.barred[classes, begin], np.searchsorted(line.held, held, side="right") - 1)
        ends = np.minimum(ends, line.n - behind * self.exact)
        elapsed = line.elapsed[classes, begin] + target
        return np.asarray(np.minimum(ends, _last(line.elapsed, classes, elapsed)))

    def _end(
        self, k: int, begin: int, end: int, target: float, behind: int, taken: set[tuple[int, int]]
    ) -> int:
        """Return the last place up to `end` where the interval can end; `begin` if there is none."""
        line = self.line
        fits = line.loads(k, begin, end) <= target
        if self.rules is not None:
            fits &= self.rules.allow(k, begin, end, behind, taken)
        good = np.flatnonzero(fits)
        return begin + int(good[-1]) + 1 if len(good) else begin


def _last(sums: Floats, rows: Ints, limit: Floats) -> Ints:
    """Return the last place in each row of rising sums that is at most its limit; -1 if there is none."""
    each = zip(rows.tolist(), limit.tolist(), strict=True)
    return np.array([sums[k].searchsorted(most, side="right") - 1 for k, most in each], dtype=np.int64)


def packed(time: Floats, size: Floats, memory: Floats) -> Ints | None:
    """Return devices for items by decreasing size, each where the load stays lowest among those it fits on.

    Parameters
    ----------
    time
        Shape (D, n): time of each item on each device, infinity where it may not run.
    size
        Shape (n,): memory of each item.
    memory
        Shape (D,): memory of each device.

    Returns
    -------
    Ints or None
        Shape (n,): the device of each item; None if some item fits on no device.

    Examples
    --------
    >>> packed(np.ones((2, 3)), np.array([1.0, 2.0, 3.0]), np.array([3.0, 3.0])).tolist()
    [1, 1, 0]
    """
    place = np.zeros(len(size), dtype=np.int64)
    load, room = np.zeros(len(memory)), memory.astype(np.float64)
    for v in np.lexsort((-np.where(np.isfinite(time), time, 0.0).max(axis=0, initial=0.0), -size)).tolist():
        after = np.where(size[v] <= room, load + time[:, v], np.inf)
        d = int(after.argmin())
        if not np.isfinite(after[d]):
            return None
        place[v], load[d] = d, after[d]
        room[d] -= size[v]
    return place


Parts = Sequence[Part]


def candidates(problem: Problem) -> Iterator[Outcome]:
    """Yield everything on one device, chains over some orders, and a packing if the split need be no chain.

    The value of each is an estimate. The caller must check whether it obeys every rule.
    """
    if isinstance(problem, OperatorNodes):
        yield from _of_tasks(problem, problem.tasks)
        return
    chain = problem.chain if isinstance(problem, PartsProblem | SampleProblem) else problem
    outcomes = [_outcome(problem, chain, parts) for parts in (*_single(chain), *_cut(chain))]
    yield from sorted(outcomes, key=lambda outcome: outcome.value)
    if not problem.ordered:
        kind = device_kinds(problem)
        place = packed(problem.work()[kind], problem.size, problem.memory[kind])
        yield from [] if place is None else [_outcome(problem, problem, _parts(kind, place))]


def _single(problem: Problem) -> Iterator[Parts]:
    """Yield, for each kind of which one device can hold and run everything, that placement."""
    able = (problem.count > 0) & problem.allowed.all(axis=1) & (problem.size.sum() <= problem.memory)
    for k in np.flatnonzero(able).tolist():
        yield [Part(k, np.arange(problem.n), devices=(0,))]


def _cut(problem: Problem) -> Iterator[Parts]:
    """Yield chains over some orders: balanced ones, and one with as few devices as memory allows."""
    if not problem.n:
        return
    number = np.arange(problem.n)
    orders = [number, *_file_order(problem)]
    if problem.n * problem.count.sum() <= EFFORT.few:
        orders += [reverse_postorder(problem.successors, sign * number.astype(float)) for sign in (1, -1)]
    pipeline, devices = problem.pipeline, int(problem.count.sum())
    clock = Clock(EFFORT.seconds)
    for order in {order.tobytes(): order for order in orders}.values():
        rules = None if pipeline is None else StageRules(problem, pipeline, order)
        exact = problem.limits.stages > 0 or problem.limits.all_devices
        cutter = Cutter(line_of(problem, order), rules, exact)
        for most in stage_counts(problem, devices):
            cuts = cutter.balanced(most)
            yield from [] if cuts is None else [_stages(cutter.line, cuts, rules)]
            if clock.expired or (pipeline is None and problem.measure is not Measure.BATCH):
                break
        cuts = cutter.filled(np.inf, devices)
        yield from [] if cuts is None else [_stages(cutter.line, cuts, rules)]
        if clock.expired:
            return


def _file_order(problem: Problem) -> list[Ints]:
    """Return the order of the supernodes by their first nodes in the user's file, in a list.

    The list is empty if that is no topological order, or the same as the order of the numbers. Files often
    list nodes in the order of execution, which makes good chains.
    """
    first = np.full(problem.n, len(problem.member))
    np.minimum.at(first, problem.member, np.arange(len(problem.member)))
    order = np.argsort(first, kind="stable")
    place = np.argsort(order)
    forward = (place[problem.successors.owners()] < place[problem.successors.items]).all()
    return [order] if forward and (np.diff(order) < 0).any() else []


def _stages(line: Line, cuts: Sequence[Cut], rules: StageRules | None) -> Parts:
    """Return the parts between the cuts, each on the device that it is pinned to or the lowest free one."""
    pinned = [set() if rules is None else rules.devices(*cut) for cut in cuts]
    taken = set().union(*pinned)
    parts = []
    for cut, fixed in zip(cuts, pinned, strict=True):
        free = (i for i in count() if (cut.k, i) not in taken)
        device = next(iter(fixed)) if fixed else (cut.k, next(free))
        taken.add(device)
        parts.append(Part(cut.k, np.sort(line.order[cut.begin : cut.end]), devices=(device[1],)))
    return parts


def _outcome(problem: Problem, chain: Problem, parts: Parts) -> Outcome:
    """Return the outcome of parts of a contraction of the problem; its value is 0 for one sample."""
    if problem.measure is Measure.ONE_SAMPLE:
        node = part_numbers(parts, chain.n)[chain.member]
        place = np.empty(problem.n, dtype=np.int64)
        place[problem.member] = node
        moved = [replace(part, nodes=np.flatnonzero(place == i)) for i, part in enumerate(parts)]
        return _found(problem, moved, 0.0)
    if isinstance(chain, PipelineProblem) and problem.ordered:
        return _found(chain, parts, pipeline_value(chain, parts))
    return _found(chain, parts, value_of(chain, parts))


def _found(problem: Problem, parts: Parts, value: float, order: Ints | None = None) -> Outcome:
    return Outcome(problem, parts, value, 0.0, "heuristic", order=order)


def _of_tasks(problem: Problem, tasks: Tasks) -> Iterator[Outcome]:
    """Yield everything on one device of a class, groups in order over several devices, and a packing."""
    classes = _classes(tasks)
    line = line_of_tasks(tasks, classes)
    cutter = Cutter(line)
    able = (line.barred[:, 0] == line.n) & (line.held[-1] <= line.memory)
    singles = [[Cut(k, 0, line.n)] for k in np.flatnonzero(able).tolist()]
    most = len(tasks.limit)
    balanced = [cutter.balanced(count) for count in sorted({min(2, most), most})]
    order = np.arange(tasks.n)
    for cuts in chained(singles, balanced):
        if cuts is not None:
            home = np.empty(line.n, dtype=np.int64)
            used = [0] * len(classes)
            for cut in cuts:
                home[line.order[cut.begin : cut.end]] = classes[cut.k][used[cut.k]]
                used[cut.k] += 1
            yield _found(problem, _task_parts(tasks, home[tasks.group]), 0.0, order)
    time = np.array([np.bincount(tasks.group, row, line.n) for row in tasks.time])
    place = packed(time, tasks.group_size, tasks.limit)
    if place is not None:
        yield _found(problem, _task_parts(tasks, place[tasks.group]), 0.0, order)


def _classes(tasks: Tasks) -> list[Ints]:
    """Return the devices of each kind, or each device alone if tasks take different times on them."""
    kinds = [np.flatnonzero(tasks.kind == k) for k in np.unique(tasks.kind)]
    return [
        each
        for devices in kinds
        for each in (
            [devices]
            if all(np.array_equal(tasks.time[d], tasks.time[devices[0]]) for d in devices)
            else np.split(devices, len(devices))
        )
    ]


def _task_parts(tasks: Tasks, device: Ints) -> Parts:
    """Return a part for every device in use, given the device of every task."""
    return [
        Part(int(tasks.kind[d]), np.flatnonzero(device == d), devices=(int(tasks.index[d]),))
        for d in np.unique(device).tolist()
    ]


def _parts(kind: Ints, place: Ints) -> Parts:
    return [Part(int(kind[d]), np.flatnonzero(place == d)) for d in np.unique(place).tolist()]
