"""The compiled parts: longest paths, costs of stages, and a step of the program over pairs of cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.virtual_stages.pass_graph import PassGraph
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.problem import Nets


@njit(cache=True, nogil=True)
def path_ends(graph: PassGraph, length: Floats, sent: Floats, fetched: Floats, end: Floats, via: Ints) -> int:
    """Return the last pass of the longest path; fill `end` and `via`.

    Parameters
    ----------
    graph
        The passes.
    length
        Shape (stages, 3): how long the device is busy with each kind of pass.
    sent, fetched
        Shape (stages, 3): how long a pass on another device waits after it, and before it, in addition.
    end, via
        Shape (n,): when each pass ends, and the pass that it waits for last, or -1.
    """
    stage, direction, last = graph.stage, graph.direction, 0
    for k in range(len(stage)):
        i, j = graph.before[k], graph.sender[k]
        start = 0.0 if i < 0 else end[i]
        via[k] = i
        if j >= 0:
            arrival = end[j] + sent[stage[j], direction[j]] + fetched[stage[k], direction[k]]
            if arrival > start:
                start = arrival
                via[k] = j
        end[k] = start + length[stage[k], direction[k]]
        if end[k] > end[last]:
            last = k
    return last


WORK, INTO, OUT = 0, 1, 2  # what stages cost: processing times, and transfers that they fetch and send


@njit(cache=True, nogil=True)
def stage_transfers(stage: Ints, rank: Ints, nets: Nets, costs: Floats) -> None:
    """Add the transfers of all nets to what stages cost.

    Parameters
    ----------
    stage, rank
        Shape (supernodes,): the stage of each, and shape (stages,): the number of its device.
    nets
        The nets.
    costs
        Shape (stages, 3, 2): what each stage costs in its forward and backward passes, transfers before the
        factor of its device.
    """
    first = np.full(rank.max() + 1, 2 * len(rank), np.int64)
    for e in range(len(nets.cost)):
        add_transfers(stage, rank, nets, e, 1, first, costs)


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def add_transfers(stage: Ints, rank: Ints, nets: Nets, e: int, sign: int, first: Ints, costs: Floats) -> None:
    """Add the transfers of net `e` to what stages cost, or subtract them if `sign` is -1.

    A device sends a tensor once, and fetches it once, in the first of its passes that reads it. `first`,
    shape (devices,), is twice the number of stages before and after.
    """
    pins, stages, source, cut = nets.pins, len(rank), stage[nets.source[e]], False
    cost = sign * nets.cost[e]
    for i in range(pins.start[e], pins.start[e + 1]):
        s = stage[pins.items[i]]
        d = rank[s]
        if d != rank[source]:
            cut = True
            first[d] = min(first[d], s if nets.read[i] == 0 else 2 * stages - 1 - s)
    if not cut:
        return
    costs[source, OUT, nets.made[e]] += cost
    for i in range(pins.start[e], pins.start[e + 1]):
        d = rank[stage[pins.items[i]]]
        if first[d] < stages:
            costs[first[d], INTO, 0] += cost
        elif first[d] < 2 * stages:
            costs[2 * stages - 1 - first[d], INTO, 1] += cost
        first[d] = 2 * stages


class PassModel(NamedTuple):
    """What the makespan of stages is estimated by.

    Parameters
    ----------
    graph
        The passes of a batch.
    rank
        Shape (stages,): the device of every stage.
    nets
        The nets of the supernodes, `cost` in time.
    time
        Shape (kinds, supernodes, 2): the times of the forward and backward passes.
    factor
        Shape (kinds,): the factor of transfers.
    share
        The part of a backward pass that the stage before waits for.
    sequential
        Whether devices are busy with their transfers.
    """

    graph: PassGraph
    rank: Ints
    nets: Nets
    time: Floats
    factor: Floats
    share: float
    sequential: bool


@njit(cache=True, nogil=True)
def estimated_makespan(model: PassModel, stage: Ints, kinds: Ints, costs: Floats) -> float:
    """Return the makespan of stages if every stage waits for its neighbours.

    Parameters
    ----------
    model
        The passes, times and nets.
    stage, kinds
        Shape (supernodes,) and (devices,): the stage of each supernode, and the kind of each device.
    costs
        Shape (stages, 3, 2): filled with what stages cost.
    """
    costs.fill(0.0)
    stage_transfers(stage, model.rank, model.nets, costs)
    for i in range(len(stage)):
        for direction in range(2):
            costs[stage[i], WORK, direction] += model.time[kinds[model.rank[stage[i]]], i, direction]
    found: float = makespan_by(model, costs, kinds)
    return found


@njit(cache=True, inner=True, forceinline=True)
def makespan_by(model: PassModel, costs: Floats, kinds: Ints) -> float:
    """Return the makespan by what stages cost, shape (stages, 3, 2)."""
    stages, passes = len(model.rank), len(model.graph.stage)
    end, via = np.empty(passes), np.empty(passes, np.int64)
    length, sent, fetched = np.zeros((stages, 3)), np.zeros((stages, 3)), np.zeros((stages, 3))
    for s in range(stages):
        factor, backward = model.factor[kinds[model.rank[s]]], costs[s, WORK, 1]
        length[s, 0], length[s, 1] = costs[s, WORK, 0], backward * model.share
        length[s, 2] = backward * (1 - model.share)
        for direction in range(2):
            coming, going = costs[s, INTO, direction] * factor, costs[s, OUT, direction] * factor
            if model.sequential:
                length[s, direction] += coming + going
            else:
                fetched[s, direction], sent[s, direction] = coming, going
    found: float = end[path_ends(model.graph, length, sent, fetched, end, via)]
    return found


class CutNets(NamedTuple):
    """Nets as seen from `m` cuts.

    Parameters
    ----------
    held, sent
        Shape (m, nets): how many pins of a net are before each cut, and whether its source is.
    pins, cost
        Shape (nets,): how many pins a net has, and its cost.
    """

    held: Ints
    sent: Ints
    pins: Ints
    cost: Floats


class NetReach(NamedTuple):
    """What is known of the pins of nets outside of a stage between two cuts.

    Parameters
    ----------
    far_before, far_after
        Shape (m, nets): whether a pin before the first cut, or after the last one, may be in another stage
        of the same device.
    near_before, near_after
        The same: whether a pin there cannot be in another stage of the device.
    part
        Shape (nets,): what each stage of a device that has pins pays at least, as a part of the cost, if
        another device has a pin.
    """

    far_before: Bools
    far_after: Bools
    near_before: Bools
    near_after: Bools
    part: Floats

    @classmethod
    def alone(cls, nets: CutNets) -> NetReach:
        """Return that no other stage of the device has pins."""
        none = np.zeros(nets.held.shape, dtype=bool)
        return cls(none, none, none, none, np.ones(len(nets.cost)))


@njit(cache=True, nogil=True)
def cut_transfers(
    nested: Bools, nets: CutNets, reach: NetReach, early: Ints, made: Ints, found: Floats
) -> None:
    """Add to `found`, shape (2, m, m), the least costs of nets that stages pay wherever others are.

    The costs of all stages of a device together are no more than those of the device.

    Parameters
    ----------
    nested
        Shape (m, m): whether there is a stage between two cuts.
    nets, reach
        The nets, and where their pins are outside of a stage.
    early, made
        Which of the two sums a cost is added to: `made`, shape (nets,), is that of stages with the source;
        of other stages it is the first for those with pins that `early`, shape (m, nets), counts before each
        cut, and the second for those without.
    """
    held, sent, cost = nets.held, nets.sent, nets.cost
    m = len(nested)
    for a in range(m):
        for b in range(m):
            if not nested[a, b]:
                continue
            for e in range(len(cost)):
                inside = held[b, e] - held[a, e]
                if inside == 0 or inside == nets.pins[e]:
                    continue
                paid = cost[e]
                if reach.far_before[a, e] or reach.far_after[b, e]:
                    near = reach.near_before[a, e] or reach.near_after[b, e]
                    paid = cost[e] * reach.part[e] if near else 0.0
                if sent[b, e] - sent[a, e] > 0:
                    found[made[e], a, b] += paid
                else:
                    found[0 if early[b, e] - early[a, e] > 0 else 1, a, b] += paid


class Modes(NamedTuple):
    """Modes in which stages run, each array of shape (modes,); those of a stage rise in their time.

    Parameters
    ----------
    slower
        The time in addition to that of the fastest mode of the stage.
    once, kept, workspace
        What is held once, the activations of a sample, and the largest workspace.
    """

    slower: Floats
    once: Floats
    kept: Floats
    workspace: Floats


class PairedStages(NamedTuple):
    """The stages between a cut and the next one that a device takes; each array has shape (..., m, m).

    Parameters
    ----------
    terms, busy
        The terms of the loads, and the processing time; infinity where there is no stage.
    start, items
        For every cut the next ones by the processing time between, as rows.
    first, end
        The modes of each stage in `modes`: those from ``first`` to ``end``.
    modes
        The modes of all stages.
    """

    terms: Floats
    busy: Floats
    start: Ints
    items: Ints
    first: Ints
    end: Ints
    modes: Modes


class JointLimits(NamedTuple):
    """What both stages of a device share.

    Parameters
    ----------
    nets
        The nets that are not in the terms of the stages.
    samples, room
        The combinations of samples in flight, shape (combinations, 2), and the memory.
    """

    nets: CutNets
    samples: Floats
    room: float


@njit(cache=True, nogil=True)
def next_device(
    value: Floats, limit: float, enough: Bools, front: PairedStages, back: PairedStages, joint: JointLimits,
    found: Floats, parent: Ints,
) -> int:  # fmt: skip
    """Extend plans by one device, which takes a stage at each of two places; return the number of steps.

    Parameters
    ----------
    value
        Shape (m, m): the least largest load of plans that have come to two cuts, at the front and at the
        back; infinity if there is none.
    limit
        Only loads below it count.
    enough
        Shape (m, m): whether the devices after this one can process what two cuts leave.
    front, back, joint
        The stages that the device may take at either place, and what both share.
    found, parent
        Shape (m, m): filled with the values after this device, and with the pair of cuts before it.
    """
    m, steps = len(value), 0
    nets, samples, room = joint.nets, joint.samples, joint.room
    first_terms, first_busy, first_start, first_items = front.terms, front.busy, front.start, front.items
    last_terms, last_busy, last_start, last_items = back.terms, back.busy, back.start, back.items
    for a in range(m):
        for b in range(m):
            if not value[a, b] < limit:
                continue
            for i in range(first_start[a], first_start[a + 1]):
                c = first_items[i]
                if first_busy[a, c] >= limit:
                    break
                if not first_terms[0, a, c] < limit:
                    continue
                for j in range(last_start[b], last_start[b + 1]):
                    d = last_items[j]
                    steps += 1
                    if first_busy[a, c] + last_busy[b, d] >= limit:
                        break
                    if not enough[c, d]:
                        continue
                    most = min(limit, found[c, d])
                    load = value[a, b]
                    for t in range(len(first_terms)):
                        load = max(load, first_terms[t, a, c] + last_terms[t, b, d])
                    if load >= most:
                        continue
                    own = with_nets(first_terms, last_terms, nets, a, c, b, d)
                    if own < most and room < np.inf:
                        ends = front.first[a, c], front.end[a, c], back.first[b, d], back.end[b, d]
                        own += slower_pair(front.modes, back.modes, ends, samples, room, most - own)
                    load = max(load, own)
                    if load < most:
                        found[c, d] = load
                        parent[c, d] = a * m + b
    return steps


@njit(cache=True, inner=True)
def with_nets(
    first_terms: Floats, last_terms: Floats, nets: CutNets, a: int, c: int, b: int, d: int
) -> float:
    """Return the load of a device with the stages from a to c and from b to d, or d to b, and all nets."""
    held, sent, pins, cost = nets
    into, out, load = 0.0, 0.0, 0.0
    for e in range(len(cost)):
        inside = held[c, e] - held[a, e] + abs(held[d, e] - held[b, e])
        if inside == 0 or inside == pins[e]:
            continue
        if sent[c, e] - sent[a, e] + abs(sent[d, e] - sent[b, e]) > 0:
            out += cost[e]
        else:
            into += cost[e]
    for t in range(len(first_terms)):
        term = first_terms[t, a, c] + last_terms[t, b, d]
        if len(first_terms) == 1 or (len(first_terms) == 2 and t == 1):
            term += into + out
        elif t > 0:
            term += into if t == 1 else out
        load = max(load, term)
    return load


@njit(cache=True, inner=True)
def slower_pair(
    front: Modes, back: Modes, ends: tuple[int, int, int, int], samples: Floats, room: float, most: float
) -> float:
    """Return the least time that two stages of a device lose by modes that its memory holds together.

    It is infinite if there are none below `most`. `ends` are the first mode of the first stage and the one
    after its last, and those of the second stage.
    """
    found = np.inf
    for i in range(ends[0], ends[1]):
        if front.slower[i] >= min(found, most):
            break
        for j in range(ends[2], ends[3]):
            slower = front.slower[i] + back.slower[j]
            if slower >= min(found, most):
                break
            held = front.once[i] + back.once[j] + max(front.workspace[i], back.workspace[j])
            largest = 0.0
            for s in range(len(samples)):
                largest = max(largest, samples[s, 0] * front.kept[i] + samples[s, 1] * back.kept[j])
            if held + largest <= room:
                found = slower
                break
    return found
