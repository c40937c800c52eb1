"""Candidates for the first plan, those of the smallest estimated value first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain as chained
from itertools import count

import numpy as np

from partitioner.base.clock import Clock
from partitioner.methods.dp.pipeline.loads import pipeline_value
from partitioner.methods.first_plan.cuts import Cut, Cutter
from partitioner.methods.first_plan.line import Line, line_of, line_of_tasks
from partitioner.methods.first_plan.packing import packed
from partitioner.methods.first_plan.stages import StageRules, stage_counts
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Part, part_numbers
from partitioner.methods.places import device_kinds
from partitioner.problem.arrays import Ints
from partitioner.problem.measure import Measure
from partitioner.problem.orders import reverse_postorder
from partitioner.problem.problem import Problem
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import OperatorNodes, PartsProblem, PipelineProblem, SampleProblem

SECONDS = 0.3  # after which no further number of stages and no further order is tried
FEW = 10_000  # largest product of supernodes and devices for which more than one order is tried
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
    if problem.n * problem.count.sum() <= FEW:
        orders += [reverse_postorder(problem.successors, sign * number.astype(float)) for sign in (1, -1)]
    pipeline, devices = problem.pipeline, int(problem.count.sum())
    clock = Clock(SECONDS)
    for order in orders:
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
