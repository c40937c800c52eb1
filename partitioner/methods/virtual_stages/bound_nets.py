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
    # What is known of the nets that cross each cut; all others have no pins on one of its sides. And what a
    # stage that begins or ends there pays for each in both passes, if that does not cross its other cut.
    early, late = np.zeros(len(cut_nets), np.int64), np.zeros(len(cut_nets), np.int64)
    begins, ends = np.zeros((len(cut_nets), 2)), np.zeros((len(cut_nets), 2))
    entry = np.full(len(nets.made), -1)  # the place in `cut_nets` of those that cross the cut before a stage
    for stage in range(stages):
        d, own = rank[stage], rank[stage] * words
        for c in range(m):
            reaches = reached[0, stage, c] or reached[1, stage + 1, c]
            for i in range(crossing[c], crossing[c + 1] if reaches else 0):
                e, early[i], late[i] = cut_nets[i], 0, 0
                for w in range(words):
                    before, after = where[0, stage, c, own + w], where[1, stage + 1, c, own + w]
                    inside, outside = nets.pins[e, w] & member[c, w], nets.pins[e, w] & ~member[c, w]
                    early[i] |= THERE if inside & before else 0
                    early[i] |= ELSEWHERE if inside & ~before else 0
                    late[i] |= THERE if outside & after else 0
                    late[i] |= ELSEWHERE if outside & ~after else 0
                sent, read = nets.sent[c, e], nets.early[c, e]
                ends[i, 0], ends[i, 1] = paid(nets, d, e, sent > 0, read > 0, late[i])
                begins[i, 0], begins[i, 1] = paid(nets, d, e, sent == 0, nets.early[-1, e] > read, early[i])
        for a in range(m):
            if not reached[0, stage, a]:
                continue
            forward, backward = 0.0, 0.0
            for i in range(crossing[a], crossing[a + 1]):
                entry[cut_nets[i]] = i
                forward, backward = forward + begins[i, 0], backward + begins[i, 1]
            for i in range(arcs.start[stage, a], arcs.end[stage, a]):
                c = arcs.items[i]
                if reached[1, stage + 1, c]:
                    more = pay_at_end(nets, d, a, c, entry, (early, late), (begins, ends))
                    arcs.surely[0, i] += forward + more[0]
                    arcs.surely[1, i] += backward + more[1]
            for i in range(crossing[a], crossing[a + 1]):
                entry[cut_nets[i]] = -1


@njit(cache=True, inner=True, forceinline=True)
def pay_at_end(
    nets: JointNets, d: int, a: int, c: int, entry: Ints, known: tuple[Ints, Ints],
    alone: tuple[Floats, Floats],
) -> tuple[float, float]:  # fmt: skip
    """Return what a stage surely pays in both passes for the nets that cross the cut `c` at its end.

    Of those that cross cut `a` too, what it would pay if they did not cross `c` is subtracted. `entry` has
    their places, see :func:`fill_sure`; `known` is what is known of nets at each cut, and `alone` what they
    cost a stage that begins or ends there.
    """
    start, items = nets.crossing
    forward, backward = 0.0, 0.0
    for j in range(start[c], start[c + 1]):
        e = items[j]
        i = entry[e]
        if i < 0:
            forward, backward = forward + alone[1][j, 0], backward + alone[1][j, 1]
            continue
        forward, backward = forward - alone[0][i, 0], backward - alone[0][i, 1]
        if nets.held[c, e] > nets.held[a, e]:
            sent, read = nets.sent[c, e] > nets.sent[a, e], nets.early[c, e] > nets.early[a, e]
            both = paid(nets, d, e, sent, read, known[0][i] | known[1][j])
            forward, backward = forward + both[0], backward + both[1]
    return forward, backward


@njit(cache=True, inner=True, forceinline=True)
def paid(nets: JointNets, d: int, e: int, sent: bool, read: bool, where: int) -> tuple[float, float]:
    """Return what a stage on device `d` surely pays for net `e` in both passes.

    `sent` says whether the stage has its source, `read` whether some of its pins read it in a forward pass,
    and `where`, by :data:`THERE` and :data:`ELSEWHERE`, on which devices the others may be.
    """
    pays = where & ELSEWHERE != 0 if sent else where & THERE == 0
    forward = nets.made[e] == 0 if sent else read
    cost = nets.cost[d, e] if pays else 0.0
    return (cost, 0.0) if forward else (0.0, cost)
