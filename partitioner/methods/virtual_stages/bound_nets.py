"""The transfers that stages of a device may share, which depend on more than the two cuts of a stage.

A stage with the source of a tensor sends it if a supernode elsewhere is surely on another device; one without
it fetches it if no other supernode of the net may be on its device. On which devices a supernode may be is
known for each stage and the cut at which it begins, from the stages that there may be before and after.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.virtual_stages.bound_arcs import LESS, SEQUENTIAL, ArcLists, Dealing, early_pins
from partitioner.methods.virtual_stages.cut_costs import StageCuts
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints, Rows, rows_of
from partitioner.problem.problem import Nets

FORWARD, BACKWARD, EITHER = range(3)  # in which passes the pins of a net read it
MOST_DEVICES = 63  # the bits of a set of devices
THERE, ELSEWHERE = 1, 2  # some pins may be on a device, and some surely are not
Bits = NDArray[np.uint64]


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
    pins, member
        Shapes (nets, words) and (m, words): the supernodes of each net and before each cut, as bits.
    crossing
        The nets with pins before and after each cut.
    """

    held: Ints
    sent: Ints
    early: Ints
    cost: Floats
    made: Ints
    read: Ints
    rank: Ints
    pins: Bits
    member: Bits
    crossing: Rows


def joint_of(model: VirtualModel) -> Bools:
    """Return the nets that are not in the times of the stages of each device, shape (devices, nets)."""
    counted = model.problem.communication == SEQUENTIAL and model.devices <= MOST_DEVICES
    return np.asarray((model.shared | model.last_of_vee[:, None]) & counted)


def joint_nets(model: VirtualModel, cuts: StageCuts, nets: Nets, joint: Bools, dealing: Dealing) -> JointNets:
    """Return the nets that are not in the times of stages between some cuts; none if they cost no time.

    `joint`, shape (devices, nets), says which of the nets these are on each device.
    """
    problem, devices = replace(model.problem, nets=nets), range(model.devices)
    factor = [min(problem.transfer_factor[model.costs[place].kind] for place in dealing[d]) for d in devices]
    which = np.asarray(joint.any(axis=0))
    seen = replace(model.costs[0], problem=problem, cuts=cuts).nets(which)
    read = [_read_in(nets, e) for e in np.flatnonzero(which).tolist()]
    cost = np.where(joint, nets.cost, 0.0) * np.array(factor)[:, None]
    cut, crossing = np.nonzero((seen.held > 0) & (seen.held < seen.pins))
    pins = np.zeros((len(which), problem.n), dtype=bool)
    pins[nets.pins.owners(), nets.pins.items] = True
    return JointNets(
        seen.held,
        seen.sent,
        np.ascontiguousarray(early_pins(nets, cuts.member)[:, which]),
        np.ascontiguousarray(cost[:, which]),
        nets.made[which],
        np.array(read, dtype=np.int64),
        model.ranks,
        _as_bits(pins[which]),
        _as_bits(cuts.member),
        rows_of(cut, crossing, len(seen.held)),
    )


def _as_bits(rows: Bools) -> Bits:
    """Return rows of booleans as bits, shape (rows, words)."""
    found = np.packbits(rows, axis=1, bitorder="little")
    return np.pad(found, ((0, 0), (0, -found.shape[1] % 8))).view(np.uint64)


def _read_in(nets: Nets, e: int) -> int:
    """Return in which passes a net is read on other devices than that of its source."""
    row = slice(nets.pins.start[e], nets.pins.start[e + 1])
    passes = nets.read[row][nets.pins.items[row] != nets.source[e]]
    return int(passes[0]) if len(passes) and (passes == passes[0]).all() else EITHER


def with_sure_transfers(arcs: ArcLists, nets: JointNets) -> ArcLists:
    """Return the same stages with the transfers of shared nets that each of them surely pays."""
    if not len(nets.made):
        return arcs
    shape = arcs.stages + 1, arcs.cuts, len(nets.cost) * nets.member.shape[1]
    found = arcs._replace(surely=arcs.times.copy())
    fill_sure(found, nets, np.zeros((2, *shape), dtype=np.uint64), np.zeros((2, *shape[:2]), dtype=bool))
    if found.surely.dtype == np.float32:
        found.surely[:] *= np.float32(LESS)  # once more, for the transfers
    return found


@njit(cache=True, nogil=True)
def fill_sure(arcs: ArcLists, nets: JointNets, where: Bits, reached: Bools) -> None:
    """Add to the times of stages the transfers that they surely pay.

    Parameters
    ----------
    arcs, nets
        The stages, and the nets that are not in their times.
    where
        Shape (2, stages + 1, m, devices x words), zeros: filled with the supernodes before and after each cut
        that may be on each device if a stage begins there.
    reached
        Shape (2, stages + 1, m), false: filled with whether stages lead to each cut from the first one, and
        from it to the last one.
    """
    stages, m, rank, member = len(arcs.start), len(nets.member), nets.rank, nets.member
    words, crossing, cut_nets = member.shape[1], nets.crossing.start, nets.crossing.items
    reached[0, 0, 0], reached[1, stages, m - 1] = True, True
    for side in range(2):
        for step in range(stages):
            stage = stages - 1 - step if side else step
            for a in range(m):
                for i in range(arcs.start[stage, a], arcs.end[stage, a] if reached[0, stage, a] else 0):
                    c = arcs.items[i]
                    known, at, found, to = (stage + 1, c, stage, a) if side else (stage, a, stage + 1, c)
                    if not reached[side, known, at]:
                        continue
                    reached[side, found, to] = True
                    for x in range(where.shape[3]):
                        where[side, found, to, x] |= where[side, known, at, x]
                    for w in range(words):
                        where[side, found, to, rank[stage] * words + w] |= member[c, w] & ~member[a, w]
    # What is known of the nets that cross each cut; all others have no pins on one of its sides.
    early, late = np.zeros((2, m, len(nets.made)), np.int64)
    for stage in range(stages):
        own = rank[stage] * words
        for c in range(m):
            reaches = reached[0, stage, c] or reached[1, stage + 1, c]
            for i in range(crossing[c], crossing[c + 1] if reaches else 0):
                e = cut_nets[i]
                early[c, e], late[c, e] = 0, 0
                for w in range(words):
                    before, after = where[0, stage, c, own + w], where[1, stage + 1, c, own + w]
                    inside, outside = nets.pins[e, w] & member[c, w], nets.pins[e, w] & ~member[c, w]
                    early[c, e] |= THERE if inside & before else 0
                    early[c, e] |= ELSEWHERE if inside & ~before else 0
                    late[c, e] |= THERE if outside & after else 0
                    late[c, e] |= ELSEWHERE if outside & ~after else 0
        for a in range(m):
            for i in range(arcs.start[stage, a], arcs.end[stage, a] if reached[0, stage, a] else 0):
                c = arcs.items[i]
                if reached[1, stage + 1, c]:
                    pay_sure(nets, rank[stage], a, c, early[a], late[c], arcs.surely[:, i])


@njit(cache=True, inner=True)
def pay_sure(nets: JointNets, d: int, a: int, c: int, early: Ints, late: Ints, times: Floats) -> None:
    """Add to the times of a stage from cut `a` to cut `c` on device `d` the transfers that it surely pays.

    `early` and `late`, shape (nets,), are :data:`THERE` and :data:`ELSEWHERE` for the pins of nets before and
    after it.
    """
    start, items = nets.crossing
    i, j, forward, backward = start[a], start[c], 0.0, 0.0
    while i < start[a + 1] or j < start[c + 1]:  # the nets that cross either cut, ascending
        e = items[i] if j == start[c + 1] or (i < start[a + 1] and items[i] <= items[j]) else items[j]
        i += i < start[a + 1] and items[i] == e
        j += j < start[c + 1] and items[j] == e
        cost, where = nets.cost[d, e], early[e] | late[e]
        if nets.held[c, e] == nets.held[a, e] or cost == 0:
            continue
        if nets.sent[c, e] > nets.sent[a, e]:
            pays, direction = where & ELSEWHERE != 0, nets.made[e]
        else:
            pays, direction = where & THERE == 0, 0 if nets.early[c, e] > nets.early[a, e] else 1
        forward += cost if pays and direction == 0 else 0.0
        backward += cost if pays and direction != 0 else 0.0
    times[0], times[1] = times[0] + forward, times[1] + backward
