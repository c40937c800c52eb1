"""The variables of the program, and the columns of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.ip.task import Mask, Task
from partitioner.methods.solvers.program import Builder
from partitioner.problem.arrays import Floats, Ints
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
