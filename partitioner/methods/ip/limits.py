"""The user's limits on parts, and pins to devices, as constraints of the program.

The variable `used` of a device is the largest x on it. Where edges may only join neighbouring parts, the
devices of the program stand in a line: at every position there is one of each kind, and at most one of
these is used.
"""

from __future__ import annotations

import numpy as np

from partitioner.methods.ip.variables import ABSENT, Variables
from partitioner.methods.solvers.program import Builder
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.pipeline import UNLIMITED, Pipeline


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
