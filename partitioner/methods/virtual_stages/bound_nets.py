"""The transfers that stages of a device may share, which depend on more than the two cuts of a stage.

A stage with the source of a tensor sends it if a supernode elsewhere is surely on another device; one without
it fetches it if no other supernode of the net may be on its device. On which devices a supernode may be is
known for each stage and the cut at which it begins, from the stages that there may be before and after.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.virtual_stages.bound_arcs import SEQUENTIAL, ArcLists, Dealing, early_pins
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.problem import Nets

FORWARD, BACKWARD, EITHER = range(3)  # in which passes the pins of a net read it
MOST_DEVICES = 63  # the bits of a set of devices


class JointNets(NamedTuple):
    """The nets that are not in the times of stages.

    Parameters
    ----------
    held, sent, early
        Shape (m, nets): how many pins of a net are before each cut, whether its source is, and how many pins
        that read it in a forward pass.
    cost
        Shape (devices, nets): what a transfer takes on a device; 0 if it is in the times of its stages.
    made, read
        Shape (nets,): in which pass it is made, and read.
    rank
        Shape (stages,): the device of every stage.
    pin_start, pins
        Rows over nets: the supernodes of each.
    member
        Shape (m, n): the supernodes before each cut.
    """

    held: Ints
    sent: Ints
    early: Ints
    cost: Floats
    made: Ints
    read: Ints
    rank: Ints
    pin_start: Ints
    pins: Ints
    member: Bools


def joint_nets(model: VirtualModel, dealing: Dealing) -> JointNets:
    """Return the nets that are not in the times of stages; none if they cost no time, or devices are many."""
    problem, devices = model.problem, range(model.devices)
    last = model.schedule.vee & (np.arange(model.devices) == model.devices - 1)
    counted = problem.communication == SEQUENTIAL and model.devices <= MOST_DEVICES
    which = (model.shared | last[:, None]) & counted
    factor = [min(problem.transfer_factor[model.costs[place].kind] for place in dealing[d]) for d in devices]
    joint = which.any(axis=0)
    nets = model.costs[0].nets(joint)
    read = [_read_in(problem.nets, e) for e in np.flatnonzero(joint).tolist()]
    cost = np.where(which, problem.nets.cost, 0.0) * np.array(factor)[:, None]
    rows = problem.nets.pins.lists()
    pins = [rows[e] for e in np.flatnonzero(joint).tolist()]
    start = np.append(0, np.cumsum([len(row) for row in pins], dtype=np.int64))
    return JointNets(
        nets.held,
        nets.sent,
        early_pins(problem.nets, model.cuts.member)[:, joint],
        cost[:, joint],
        problem.nets.made[joint],
        np.array(read, dtype=np.int64),
        model.ranks,
        start,
        np.concatenate([*pins, np.empty(0, dtype=np.int64)]),
        model.cuts.member,
    )


def _read_in(nets: Nets, e: int) -> int:
    """Return in which passes a net is read on other devices than that of its source."""
    row = slice(nets.pins.start[e], nets.pins.start[e + 1])
    passes = nets.read[row][nets.pins.items[row] != nets.source[e]]
    return int(passes[0]) if len(passes) and (passes == passes[0]).all() else EITHER


def with_sure_transfers(arcs: ArcLists, nets: JointNets) -> ArcLists:
    """Return the same stages with the transfers of shared nets that each of them surely pays."""
    if not len(nets.made):
        return arcs
    shape = arcs.stages + 1, arcs.cuts, nets.member.shape[1]
    before, after = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    found = arcs._replace(surely=arcs.times.copy())
    fill_sure(found, nets, before, after)
    return found


@njit(cache=True, nogil=True)
def fill_sure(arcs: ArcLists, nets: JointNets, before: Ints, after: Ints) -> None:
    """Add to the times of stages the transfers that they surely pay.

    Parameters
    ----------
    arcs, nets
        The stages, and the nets that are not in their times.
    before, after
        Shape (stages + 1, m, n), zeros: filled with the devices, as bits, on which supernodes before and
        after each cut may be if a stage begins there.
    """
    stages, m, rank, member = len(arcs.start), before.shape[1], nets.rank, nets.member
    begun, ended = np.zeros((stages + 1, m), np.bool_), np.zeros((stages + 1, m), np.bool_)
    begun[0, 0], ended[stages, m - 1] = True, True
    for stage in range(stages):
        for a in range(m):
            for i in range(arcs.start[stage, a], arcs.start[stage, a + 1] if begun[stage, a] else 0):
                c = arcs.items[i]
                begun[stage + 1, c] = True
                for v in range(member.shape[1]):
                    if member[c, v]:
                        before[stage + 1, c, v] |= before[stage, a, v] if member[a, v] else 1 << rank[stage]
    for stage in range(stages - 1, -1, -1):
        for a in range(m):
            for i in range(arcs.start[stage, a], arcs.start[stage, a + 1] if begun[stage, a] else 0):
                c = arcs.items[i]
                if not ended[stage + 1, c]:
                    continue
                ended[stage, a] = True
                for v in range(member.shape[1]):
                    if not member[a, v]:
                        after[stage, a, v] |= 1 << rank[stage] if member[c, v] else after[stage + 1, c, v]
    for stage in range(stages):
        for a in range(m):
            for i in range(arcs.start[stage, a], arcs.start[stage, a + 1] if begun[stage, a] else 0):
                c = arcs.items[i]
                if ended[stage + 1, c]:
                    pay_sure(nets, stage, a, c, before[stage, a], after[stage + 1, c], arcs.surely[i])


@njit(cache=True, inner=True)
def pay_sure(nets: JointNets, stage: int, a: int, c: int, before: Ints, after: Ints, times: Floats) -> None:
    """Add to the times of a stage from cut `a` to cut `c` the transfers that it surely pays.

    `before` and `after`, shape (n,), are the devices on which supernodes before and after it may be.
    """
    d, member = nets.rank[stage], nets.member
    for e in range(len(nets.made)):
        inside, cost = nets.held[c, e] - nets.held[a, e], nets.cost[d, e]
        if inside == 0 or cost == 0 or inside == nets.pin_start[e + 1] - nets.pin_start[e]:
            continue
        others, elsewhere = False, False  # pins that may be on the device, and that surely are not
        for j in range(nets.pin_start[e], nets.pin_start[e + 1]):
            v = nets.pins[j]
            if member[a, v] or not member[c, v]:
                where = before[v] if member[a, v] else after[v]
                others |= (where >> d & 1) == 1
                elsewhere |= (where >> d & 1) == 0
        if nets.sent[c, e] > nets.sent[a, e]:
            if elsewhere:
                times[nets.made[e]] += cost
        elif not others:
            times[0 if nets.early[c, e] > nets.early[a, e] else 1] += cost
