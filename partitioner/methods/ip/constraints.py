"""The constraints of the program, one function for each family (paper, Figure 7)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.communication import joint_terms
from partitioner.methods.ip.task import Task
from partitioner.methods.ip.variables import ABSENT, Variables, terms
from partitioner.methods.solvers.program import Builder
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Region


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
