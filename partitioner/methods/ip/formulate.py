"""The integer program of a task, and the parts that a solver's values describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.methods.ip.splits import Mask, Task
from partitioner.methods.loads import joint_terms
from partitioner.methods.method import Part
from partitioner.methods.places import parts_on
from partitioner.methods.solvers.program import Builder, Program
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.pipeline import UNLIMITED, Pipeline
from partitioner.problem.problem import Region
from partitioner.problem.variants import PartsProblem

ABSENT = -1


@dataclass(frozen=True, eq=False)
class Touch:
    """Pairs of a net and a device that pays for transfers and may cut the net.

    The largest x of the net's pins on the device (`high`) says whether the device holds any of them, the
    smallest (`low`) whether it holds all of them.

    Parameters
    ----------
    net, device
        Shape (m,): the net and the device of each pair.
    cost
        Shape (m,): the time of the net's transfer on the device, in the program's unit.
    high
        Shape (m,): the column of the largest x.
    early
        Shape (m,): the column of the largest x of the source and the readers of the forward pass; it is
        `high` if all readers are, or if the passes have no loads of their own.
    low
        Shape (m,): the column of the smallest x; absent if it can only be zero.
    """

    net: Ints
    device: Ints
    cost: Floats
    high: Ints
    early: Ints
    low: Ints


@dataclass(frozen=True, eq=False)
class Variables:
    """Columns of the program; :data:`ABSENT` stands for a variable that can only be zero.

    Parameters
    ----------
    problem
        The problem with times in the program's unit.
    device_kind
        Shape (devices,): the kind of each device.
    x
        Shape (n, devices): columns of the binary variables that say whether a supernode is on a device.
    load
        Shape (passes,): columns of the largest load, or of the largest load of each pass.
    touch
        The nets that may be cut.
    before
        For each region, shape (devices, m): columns of z in Lemma A.1; absent if the device's share need not
        be contiguous.
    """

    problem: PartsProblem
    device_kind: Ints
    x: Ints
    load: Ints
    touch: Touch
    before: tuple[Ints, ...]


def add_variables(builder: Builder, task: Task) -> Variables:
    """Add all variables of a task and return their columns."""
    problem = task.scaled()
    kind = task.device_kinds
    may = task.open()
    x = np.full(may.shape, ABSENT)
    x[may] = builder.variables(int(may.sum()), 1.0, integer=True)
    passes = problem.measure.passes
    lower = task.bound / task.scale * (1 - 1e-9) if passes == 1 else 0.0
    load = builder.variables(passes, task.cutoff / task.scale, lower=lower)
    cost = np.where(task.whole(), 0.0, task.scaled_transfer_times())[:, kind]
    touch = _touches(builder, problem, may, cost)
    bound = np.flatnonzero(problem.contiguous[kind])
    before = []
    for region in problem.regions:
        z = np.full((len(kind), len(region.owner)), ABSENT)
        shape = len(bound), len(region.owner)
        z[bound] = builder.variables(shape[0] * shape[1], 1.0).reshape(shape)
        before.append(z)
    return Variables(problem, kind, x, load, touch, tuple(before))


def _touches(builder: Builder, problem: PartsProblem, may: Mask, cost: Floats) -> Touch:
    pins = problem.nets.pins
    owner, there = pins.owners(), may[pins.items]
    some, every = np.zeros(cost.shape, dtype=bool), np.ones(cost.shape, dtype=bool)
    np.logical_or.at(some, owner, there)
    np.logical_and.at(every, owner, there)
    net, device = np.nonzero(some & (cost > 0))
    high = builder.variables(len(net), 1.0)
    early, low = high.copy(), np.full(len(net), ABSENT)
    late = _reads_late(problem)[net]
    early[late] = builder.variables(int(late.sum()), 1.0)
    full = every[net, device]
    low[full] = builder.variables(int(full.sum()), 1.0)
    return Touch(net, device, cost[net, device], high, early, low)


def _reads_late(problem: PartsProblem) -> Mask:
    """Return which nets a supernode other than the source reads only in the backward pass, (nets,)."""
    nets = problem.nets
    owner = nets.pins.owners()
    late = np.zeros(len(nets.cost), dtype=bool)
    if problem.measure.passes == 2:
        late[owner[(nets.read == 1) & (nets.pins.items != nets.source[owner])]] = True
    return late


def terms(column: Ints) -> tuple[Ints, Floats]:
    """Return columns and factors of variables; absent ones have the factor 0."""
    there = column != ABSENT
    return np.where(there, column, 0), there.astype(np.float64)


def assignment(builder: Builder, v: Variables) -> None:
    """Add rows: every supernode is on exactly one device (15)."""
    rows = builder.new_rows(len(v.x), 1.0, 1.0)
    node, device = np.nonzero(v.x != ABSENT)
    builder.add(rows[node], v.x[node, device], 1.0)


def memory(builder: Builder, v: Variables) -> None:
    """Add rows: the sizes on a device, as fractions of its memory, add up to at most 1 (17)."""
    limit = v.problem.memory[v.device_kind]
    for device in np.flatnonzero(limit < v.problem.size.sum()).tolist():
        node = np.flatnonzero((v.x[:, device] != ABSENT) & (v.problem.size > 0))
        share = v.problem.size[node] / max(limit[device], 1e-300)
        builder.add(builder.new_rows(1, -np.inf, 1.0), v.x[node, device], np.minimum(share, 2.0))


def covers(builder: Builder, v: Variables, task: Task) -> None:
    """Add rows: supernodes that exceed the memory by less than a solver's tolerance are not on one device."""
    for kind, nodes in task.covers:
        for device in np.flatnonzero(v.device_kind == kind).tolist():
            column, factor = terms(v.x[nodes, device])
            builder.add(builder.new_rows(1, -np.inf, len(nodes) - 1.0), column, factor)


def touched_nets(builder: Builder, v: Variables) -> None:
    """Add rows: ``low_ei <= x_pi <= high_ei`` for every pin p, net e and device i.

    With ``CommIn = high - x_source`` and ``CommOut = x_source - low`` these are (18) and (19). Where the
    passes have loads of their own, `early` is also at most the sum of its x, so that no transfer is moved to
    the forward pass.
    """
    pair, pin = _pins_of_pairs(v, v.touch.net)
    x = v.x[v.problem.nets.pins.items[pin], v.touch.device[pair]]
    early = _is_early(v, pin) & (x != ABSENT)
    builder.at_most(x[early], v.touch.early[pair][early])
    late = ~early & (x != ABSENT)
    builder.at_most(x[late], v.touch.high[pair][late])
    split = v.touch.early != v.touch.high
    builder.at_most(v.touch.early[split], v.touch.high[split])
    rows = np.full(len(split), ABSENT)
    rows[split] = builder.new_rows(int(split.sum()), -np.inf, 0.0)
    builder.add(rows[split], v.touch.early[split], 1.0)
    early &= split[pair]
    builder.add(rows[pair[early]], x[early], -1.0)
    low = v.touch.low[pair]
    builder.at_most(low[low != ABSENT], x[low != ABSENT])


def _is_early(v: Variables, pin: Ints) -> np.ndarray:
    nets = v.problem.nets
    is_source = nets.pins.items[pin] == nets.source[nets.pins.owners()[pin]]
    return np.asarray(is_source | (nets.read[pin] == 0))


def _pins_of_pairs(v: Variables, net: Ints) -> tuple[Ints, Ints]:
    """Return, for every pair (net, device) and pin of the net, the pair's number and the pin's position."""
    start = v.problem.nets.pins.start
    length = np.diff(start)[net]
    pair = np.repeat(np.arange(len(net)), length)
    offset = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    return pair, start[net][pair] + offset


def whole_nets(builder: Builder, v: Variables, task: Task) -> None:
    """Add rows: a net that costs a device more than the cutoff has all pins there, or none."""
    for e, device in np.argwhere(task.whole()[:, v.device_kind]).tolist():
        x = v.x[v.problem.nets.pins.row(e), device]
        if x[0] != ABSENT:
            rows = builder.new_rows(len(x) - 1, 0.0, 0.0)
            builder.add(rows, x[1:], 1.0)
            builder.add(rows, x[0], -1.0)


class _Terms(NamedTuple):
    """Terms of loads: the pass and the device that each belongs to, its column, its time."""

    when: Ints
    device: Ints
    column: Ints
    time: Floats


def loads(builder: Builder, v: Variables) -> None:
    """Add rows: no load of a pass exceeds the variable for the largest one (20, 21; Appendix H.1)."""
    devices = len(v.device_kind)
    for family in joint_terms(v.problem.communication, [_processing(v)], _into(v), _out(v)):
        rows = builder.new_rows(len(v.load) * devices, -np.inf, 0.0)
        builder.add(rows, np.repeat(v.load, devices), -1.0)
        for each in family:
            there = each.column != ABSENT
            row = rows[(each.when % len(v.load)) * devices + each.device]
            builder.add(row[there], each.column[there], each.time[there])


def _processing(v: Variables) -> _Terms:
    node, device = np.nonzero(v.x != ABSENT)
    both = [
        _Terms(
            np.full(len(node), w), device, v.x[node, device], v.problem.time[v.device_kind[device], w, node]
        )
        for w in (0, 1)
    ]
    return _Terms(*(np.concatenate(each) for each in zip(*both, strict=True)))


def _source(v: Variables) -> Ints:
    return v.x[v.problem.nets.source[v.touch.net], v.touch.device]


def _into(v: Variables) -> list[_Terms]:
    """Return the terms of transfers in: ``early - x_source`` forward, ``high - early`` backward."""
    touch, cost = v.touch, v.touch.cost
    forward, backward = np.zeros_like(touch.net), np.ones_like(touch.net)
    return [
        _Terms(forward, touch.device, touch.early, cost),
        _Terms(forward, touch.device, _source(v), -cost),
        _Terms(backward, touch.device, touch.high, cost),
        _Terms(backward, touch.device, touch.early, -cost),
    ]


def _out(v: Variables) -> list[_Terms]:
    """Return the terms of transfers out: ``x_source - low`` in the pass in which the tensor is made."""
    touch, cost = v.touch, v.touch.cost
    made = v.problem.nets.made[touch.net]
    return [_Terms(made, touch.device, _source(v), cost), _Terms(made, touch.device, touch.low, -cost)]


def range_of_sum(builder: Builder, v: Variables, task: Task) -> None:
    """Add a row: the sum of the largest loads of both passes is between bound and cutoff (Appendix D)."""
    if len(v.load) > 1:
        row = builder.new_rows(1, task.bound / task.scale * (1 - 1e-9), task.cutoff / task.scale)
        builder.add(row, v.load, 1.0)


def contiguity(builder: Builder, v: Variables) -> None:
    """Add rows: the share of a device is contiguous (16), by Lemma A.1 (11) to (13)."""
    for region, before in zip(v.problem.regions, v.before, strict=True):
        for device in np.flatnonzero(v.problem.contiguous[v.device_kind]).tolist():
            _contiguous(builder, region, before[device], v.x[region.owner, device])


def _contiguous(builder: Builder, region: Region, z: Ints, x: Ints) -> None:
    builder.at_most(x[x != ABSENT], z[x != ABSENT])
    u, w = region.edges.T
    builder.at_most(z[w], z[u])
    rows = builder.new_rows(len(u), -np.inf, 1.0)
    builder.add(rows, z[w], 1.0)
    for column, sign in ((x[u], 1.0), (x[w], -1.0)):
        present, there = terms(column)
        builder.add(rows, present, sign * there)


def limits(builder: Builder, v: Variables) -> None:
    """Add rows for every limit of the problem's pipeline; none if it has no pipeline."""
    pipeline = v.problem.pipeline
    if pipeline is None:
        return
    used = _used(builder, v)
    _pins(builder, v, pipeline)
    _counts(builder, v, pipeline, used)
    if pipeline.limits.nodes != (1, UNLIMITED):
        node, device = np.nonzero(v.x != ABSENT)
        _within(builder, pipeline.limits.nodes, used, device, v.x[node, device], pipeline.nodes[node])
    if pipeline.limits.layers != (0, UNLIMITED):
        device, column = _layers(builder, v, pipeline)
        _within(builder, pipeline.limits.layers, used, device, column, np.ones(len(column)))
    if pipeline.limits.neighbours:
        _neighbours(builder, v, pipeline, used)


def _used(builder: Builder, v: Variables) -> Ints:
    """Add the variables of the largest x on each device and return their columns, shape (devices,)."""
    used = builder.variables(len(v.device_kind), 1.0)
    node, device = np.nonzero(v.x != ABSENT)
    builder.at_most(v.x[node, device], used[device])
    rows = builder.new_rows(len(used), -np.inf, 0.0)
    builder.add(rows, used, 1.0)
    builder.add(rows[device], v.x[node, device], -1.0)
    return used


def _pins(builder: Builder, v: Variables, pipeline: Pipeline) -> None:
    """Add rows: supernodes that are pinned to different devices of a kind do not share a device."""
    node, device = np.nonzero((v.x != ABSENT) & (np.diff(pipeline.pinned.start) > 0)[:, None])
    rows = builder.new_rows(len(v.device_kind), -np.inf, 1.0)
    builder.add(rows[device], v.x[node, device], 1.0)


def _counts(builder: Builder, v: Variables, pipeline: Pipeline, used: Ints) -> None:
    """Add rows: as many parts as demanded; of each kind at most all devices, or exactly all if demanded."""
    count = v.problem.count.astype(np.float64)
    rows = builder.new_rows(len(count), count if pipeline.limits.all_devices else 0.0, count)
    builder.add(rows[v.device_kind], used, 1.0)
    if pipeline.limits.stages:
        builder.add(builder.new_rows(1, pipeline.limits.stages, pipeline.limits.stages), used, 1.0)


def _within(
    builder: Builder, limit: tuple[int, int], used: Ints, device: Ints, column: Ints, amount: Floats | Ints
) -> None:
    """Add rows: the amounts of the columns on each device in use add up to a sum within the limit."""
    least, most = limit
    for factor, sign, asked in ((least, -1.0, least > 0), (most, 1.0, most < UNLIMITED)):
        if asked:
            rows = builder.new_rows(len(used), -np.inf, 0.0)
            builder.add(rows[device], column, sign * amount)
            builder.add(rows, used, -sign * factor)


def _layers(builder: Builder, v: Variables, pipeline: Pipeline) -> tuple[Ints, Ints]:
    """Add variables for pairs of a device and a layer: the largest x of the layer there.

    Returned are the device and the column of each pair.
    """
    owner, layer = pipeline.layers.owners(), pipeline.layers.items
    pin, device = np.nonzero(v.x[owner] != ABSENT)
    pairs, which = np.unique(np.stack((device, layer[pin])), axis=1, return_inverse=True)
    held = builder.variables(pairs.shape[1], 1.0)
    x = v.x[owner[pin], device]
    builder.at_most(x, held[which.ravel()])
    rows = builder.new_rows(len(held), -np.inf, 0.0)
    builder.add(rows, held, 1.0)
    builder.add(rows[which.ravel()], x, -1.0)
    return pairs[0], held


def _neighbours(builder: Builder, v: Variables, pipeline: Pipeline, used: Ints) -> None:
    """Add rows: supernodes that share an edge are at one position, or at two successive ones."""
    line = v.x.reshape(len(v.x), -1, int((v.problem.count > 0).sum()))
    positions = line.shape[1]
    rows = builder.new_rows(positions, -np.inf, 1.0)
    builder.add(rows[:, None], used.reshape(positions, -1), 1.0)
    rows = builder.new_rows(positions - 1, 0.0, np.inf)
    builder.add(rows[:, None], used.reshape(positions, -1)[:-1], 1.0)
    builder.add(rows[:, None], used.reshape(positions, -1)[1:], -1.0)
    one, other = pipeline.adjacent.owners(), pipeline.adjacent.items
    rows = builder.new_rows(len(one) * positions, -np.inf, 0.0).reshape(len(one), positions)
    _add(builder, rows, line[one], 1.0)
    for shift in (-1, 0, 1):
        here, there = slice(max(0, -shift), positions - max(0, shift)), slice(max(0, shift), None)
        _add(builder, rows[:, here], line[other][:, there][:, : rows[:, here].shape[1]], -1.0)


def _add(builder: Builder, rows: Ints, x: Ints, factor: float) -> None:
    """Add the variables that are not absent to rows; `x` has one axis more than the rows."""
    present = x != ABSENT
    builder.add(np.broadcast_to(rows[:, :, None], x.shape)[present], x[present], factor)


@dataclass(frozen=True, eq=False)
class PlacementProgram:
    """The integer program of a task, with the columns that say where supernodes are.

    Parameters
    ----------
    task
        The task.
    program
        The program, in which a time of ``task.scale`` is 1.
    x
        Shape (n, devices): columns, -1 where a supernode may not be.
    """

    task: Task
    program: Program
    x: Ints

    @property
    def unit(self) -> float:
        """The time that is 1 in the program."""
        return self.task.scale

    @property
    def cutoff(self) -> float:
        """The largest value of a solution of the program."""
        return self.task.cutoff

    def solution(self, values: Floats) -> list[Part]:
        """Return the parts that a solution describes, each supernode where its variable is largest."""
        there = np.where(self.x == ABSENT, -1.0, values[self.x])
        return parts_on(self.task.device_kinds, there.argmax(axis=1))


def formulate(task: Task) -> PlacementProgram:
    """Return the integer program of a task (paper, Figure 7, with nets in place of edges)."""
    builder = Builder()
    v = add_variables(builder, task)
    assignment(builder, v)
    memory(builder, v)
    covers(builder, v, task)
    touched_nets(builder, v)
    whole_nets(builder, v, task)
    loads(builder, v)
    range_of_sum(builder, v, task)
    contiguity(builder, v)
    limits(builder, v)
    return PlacementProgram(task, builder.program(v.load), v.x)
