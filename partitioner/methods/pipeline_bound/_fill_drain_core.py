"""The compiled fill of a table of pipelines that are turned, whose stages each bound the makespan.

``length[s, I]`` has the least times that the stages of ideal I on the devices of state s, which run behind
the others, take for a sample, and the least lengths of the paths through them; ``outside[s, I]`` what the
stages outside I take at least, which is filled first, from the other end. A state may count idle devices as
devices behind: that only makes bounds lower, and covers pipelines with stages that cost nothing, whose
supernodes have been merged. The stages are those of :mod:`partitioner.methods.dp._walk_core`, with the
transfers of each pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import SEQUENTIAL, growing_load
from partitioner.methods.dp._stages_core import WEIGHTS, add_sums, sent_by, takes
from partitioner.methods.dp._transfers_core import (
    INTO,
    LEAVING,
    STAYING,
    PassNets,
    add_pass_nets,
    new_nets,
    remove_pass_nets,
)
from partitioner.methods.dp._walk_core import walk_of
from partitioner.methods.dp.lattice import relocate
from partitioner.methods.dp.stages import DeviceStates, MemoryModel, StageCosts
from partitioner.methods.pipeline_bound.paths import PHASES, STREAM, MakespanSpec, MakespanTable
from partitioner.problem.arrays import Floats, Ints


@njit(cache=True)
def add_returning(forwards, backwards, behind, forward, backward, transfers, found, room):  # type: ignore[no-untyped-def]
    """Write to `found` the labels of the stages that begin with a stage before those of labels `behind`.

    Parameters
    ----------
    forwards, backwards
        Shape (F + B, F + B): see :class:`partitioner.methods.pipeline_bound.paths.RowEvents`.
    behind, found
        Shape (F, B): the longest paths, minus infinity if there are none.
    forward, backward
        The times of both passes.
    transfers
        The time of the transfers of a sample that is not part of these.
    room
        Shape (F + B,): room for the longest paths on the way.
    """
    entries, exits = found.shape
    reach, arrival = room[:entries], room[entries:]
    for i in range(entries):
        for a in range(entries):
            reach[a] = -np.inf
            if forwards[i, a] >= 0:
                reach[a] = forwards[i, a] * forward + backwards[i, a] * backward
        for c in range(exits):
            arrival[c] = -np.inf
            for a in range(entries):
                arrival[c] = max(arrival[c], reach[a] + behind[a, c])
            if arrival[c] == -np.inf:
                continue
            q = entries + c
            for a in range(entries):
                if forwards[q, a] >= 0:
                    further = forwards[q, a] * forward + backwards[q, a] * backward
                    reach[a] = max(reach[a], arrival[c] + further)
        for j in range(exits):
            q, found[i, j] = entries + j, -np.inf
            if forwards[i, q] >= 0:
                found[i, j] = forwards[i, q] * forward + backwards[i, q] * backward
            for c in range(j + 1):
                p = entries + c
                if arrival[c] > -np.inf and forwards[p, q] >= 0:
                    further = forwards[p, q] * forward + backwards[p, q] * backward
                    found[i, j] = max(found[i, j], arrival[c] + further + transfers)


@njit(cache=True, _nrt=False)
def add_onward(rows, behind, forward, backward, found, count):  # type: ignore[no-untyped-def]
    """Write the labels to `found` where both passes lead to later stages.

    `rows` are the events, alike for all stages; `behind` and `found` have shape (F + B, N), of which the
    first `count` columns are in use.
    """
    forwards, backwards = rows.forwards[0], rows.backwards[0]
    for p in range(len(found)):
        for i in range(count):
            found[p, i] = -np.inf
        for q in range(len(found)):
            if forwards[p, q] >= 0:
                own = forwards[p, q] * forward + backwards[p, q] * backward
                for i in range(count):  # in vectors
                    length = own + behind[q, i]
                    found[p, i] = length if length > found[p, i] else found[p, i]


@njit(cache=True, inner=True, _nrt=False)
def keep(table, rule, ideal, state, found, last):  # type: ignore[no-untyped-def]
    """Keep the least lengths of stages that hold an ideal on the devices of a state.

    They are left out if those of a slot are no larger. If no slot is free, or one differs only by `close` in
    one direction, the slot that loses least gets the minima of both. `whole` is the number of the length that
    says whose stages are remembered: `last` is the last one, as the ideal and the slot before it, and the
    kind and number of its devices.
    """
    (whole, close), length, chosen, least = rule, table.length, -1, np.inf
    for i in range(length.shape[2]):
        if length[state, ideal, i, 0] == np.inf:
            chosen = i if chosen < 0 or least > close else chosen
            break
        above, below = 0.0, 0.0
        for j in range(len(found)):
            if length[state, ideal, i, j] > found[j]:
                above = max(above, length[state, ideal, i, j] - found[j])
            elif length[state, ideal, i, j] < found[j]:
                below = max(below, found[j] - length[state, ideal, i, j])
        if above == 0.0:
            return
        if min(above, below) < least:
            chosen, least = i, min(above, below)
    if found[whole] < length[state, ideal, chosen, whole]:
        for j in range(len(last)):
            table.last[state, ideal, chosen, j] = last[j]
    for j in range(len(found)):
        length[state, ideal, chosen, j] = min(length[state, ideal, chosen, j], found[j])


@njit(cache=True, inner=True, _nrt=False)
def longest_path(way, count, ahead, around, load, busy, longer, exchange):  # type: ignore[no-untyped-def]
    """Return a lower bound on the makespan of a schedule, by one of its stages.

    Parameters
    ----------
    way
        What a path through later stages leaves out.
    count, ahead
        How many samples a device of the stage runs, and how many devices behind it there are for each of its
        own, rounded up.
    around
        The times that the stages before and behind take for a sample.
    load, busy
        The time that the stage takes for a sample, with transfers in parallel if they are, and without
        transfers if they are.
    longer
        The longer of the processing times of the two passes of a sample.
    exchange
        The time of an exchange of weights.
    """
    before, behind = around
    if way == STREAM:
        return before + behind + count * load
    found = before + count * load + (count - 1) * exchange
    left_out = count - 1 if way == PHASES else min(ahead, count - 1)
    return max(found, before + behind + count * busy - left_out * (busy - longer))


EARLY, LATE, LONGEST = range(3)  # places in the last axis of `MakespanTally.outside`
NONE = np.int64(0)  # devices: no Python int, for which numba would compile `keep` once more
MOST, LESS = range(2)  # places in `MakespanTally.bounds`


class MakespanTally(NamedTuple):
    """The current stage of a walk, and the table that it is written to; at depth d it has d supernodes.

    Parameters
    ----------
    costs, memory, states
        What stages cost, what they hold, and the devices that they may have.
    spec, table
        See :mod:`partitioner.methods.pipeline_bound.paths`; the table is written if `back` is false.
    outside
        Shape (S, I, 3): for the stages outside an ideal, on the devices that a state leaves, the least time
        of all passes of a sample that lead to the ideal, and of backward passes that do so; and the least
        length of the longest path through one of these stages up to the ideal.
    nets
        Its tensors.
    compute, sums, time
        Shapes (n + 2, K, 2), (n + 2, 8) and (n + 2, 2): by depth its times in both passes, its sums of
        memory, and what a sample takes at least before and after it.
    load
        Shape (K,): its loads; infinity on a kind that it cannot be on.
    paths, room
        Shapes (1 + P,) and (F + B,): room for its lengths, and for those of paths on the way.
    behind, found, first
        Shapes (P, N), (P, N) and (S + 1,): where both passes lead to later stages, the lengths of paths of
        all N slots that it may be added to, what they are with it, and the first slot of each state.
    worthy, reached
        Shapes (K, S) and (K,): the states that reach the ideal at which it begins and may go on with a device
        of each kind, those first that then have the largest capacity, and how many there are.
    bounds
        Shape (2,): the largest load of a stage that the spine counts; and by how much less than the most
        that of an earlier one is.
    back
        Whether `outside` is filled rather than the table.
    """

    costs: StageCosts
    memory: MemoryModel
    states: DeviceStates
    spec: MakespanSpec
    table: MakespanTable
    outside: Floats
    nets: PassNets
    compute: Floats
    sums: Floats
    time: Floats
    load: Floats
    paths: Floats
    room: Floats
    behind: Floats
    found: Floats
    first: Ints
    worthy: Ints
    reached: Ints
    bounds: Floats
    back: bool


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def extend(tally, start, ideal, k, parts, counted, depth):  # type: ignore[no-untyped-def]
    """Add the stage between two ideals to the states of the first one, as far as the limit allows.

    `parts` are the processing times of both passes, the times of their transfers, and what the stage adds to
    the time of a sample behind others and as the last one. The times of `depth` are what a sample takes at
    least before and after a stage that the spine does not count; `less` is by how much less than the most the
    load of an earlier stage is that it does count.
    Returned is how often the stage was added to a slot.
    """
    costs, memory_model, states, spec = tally.costs, tally.memory, tally.states, tally.spec
    table, outside, paths, worthy = tally.table, tally.outside, tally.paths, tally.worthy
    length = table.length
    load, sum_of, apart, less = tally.load[k], tally.sums[depth], tally.time[depth], tally.bounds[LESS]
    forward, backward, transfers = parts[0], parts[1], parts[2] + parts[3]
    if costs.communication == SEQUENTIAL:  # a path that stays in a row has all transfers of its passes
        forward, backward, transfers = forward + parts[2], backward + parts[3], 0.0
    shape = len(spec.rows.forward), len(spec.rows.backward)
    added, rule, onward = 0, (spec.whole, spec.close), counted and spec.whole > 0 and not spec.returns
    if onward:
        add_onward(spec.rows, tally.behind, forward, backward, tally.found, tally.first[-1])
    for i in range(tally.reached[k]):
        s = worthy[k, i]
        if spec.remaining[ideal] > spec.capacity[s + states.stride[k]]:
            break
        for r in range(1, states.left[s, k] + 1):
            if load > spec.most * r:
                continue
            t = s + r * states.stride[k]
            if spec.remaining[ideal] > spec.capacity[t]:
                break
            if spec.remaining_on[ideal] > spec.capacity_on[t] - less * spec.price[t]:
                break
            before = outside[t, ideal, EARLY]
            if before == np.inf:
                continue
            held, versions = (
                memory_model.in_flight[states.behind[s], r],
                memory_model.versions[states.behind[s], r],
            )
            if not takes(sum_of, held, versions, memory_model.memory[k], 0.0, 0.0, 0.0, 0.0):
                continue
            exchange, own, ahead = 0.0, spec.samples, states.behind[s]
            if r > 1:
                own, ahead = -(-own // r), -(-ahead // r)
            if costs.added:
                exchange = (r - 1) * sent_by(sum_of[WEIGHTS], r, costs.message[k]) / costs.bandwidth[k]
            for n in range(tally.first[s], tally.first[s + 1]):
                slot = n - tally.first[s]
                behind, bound = length[s, start, slot, 0], apart[0] + own * load + (own - 1) * exchange
                if spec.way == STREAM:
                    bound += apart[1]
                if counted:
                    bound = longest_path(
                        spec.way, own, ahead, (before, behind), load, forward + backward,
                        max(forward, backward), exchange,
                    )  # fmt: skip
                added += 1
                if bound > spec.limit:
                    continue
                for j in range(1, len(paths)):  # an assignment of slices would copy them first
                    paths[j] = tally.found[j - 1, n] if onward else length[s, start, slot, j]
                paths[0] = behind
                if counted:
                    paths[0] += parts[4] if behind > 0 else parts[5]
                    if onward:
                        paths[1] = max(paths[1], spec.samples * load)
                        late = outside[t, ideal, LATE]
                        bound = max(before + paths[1], late + paths[1 + len(spec.rows.forward)])
                    elif spec.whole > 0:
                        row = spec.rows.number[states.behind[s]]
                        add_returning(
                            spec.rows.forwards[row], spec.rows.backwards[row],
                            length[s, start, slot, 1:].reshape(shape), forward, backward, transfers,
                            paths[1:].reshape(shape), tally.room,
                        )  # fmt: skip
                        paths[spec.whole] = max(paths[spec.whole], spec.samples * load)
                        bound = before + paths[spec.whole]
                if spec.way == STREAM:
                    bound = max(bound, paths[0] + outside[t, ideal, LONGEST])
                if bound <= spec.limit:
                    keep(table, rule, ideal, t, paths, (start, slot, k, r))
    return added


def _enter(tally, start, ideal, depth, v):  # type: ignore[no-untyped-def]
    costs, memory_model, spec, moved = tally.costs, tally.memory, tally.spec, tally.nets.moved
    compute, time, load, above = tally.compute, tally.time, tally.load, depth + 1
    add_pass_nets(costs, tally.nets, v, depth)
    time[above, 0] = max(time[depth, 0], spec.before[v])
    time[above, 1] = max(time[depth, 1], spec.after[v])
    add_sums(
        memory_model.size, memory_model.parameters, memory_model.activations, memory_model.workspace,
        costs.weights, v, tally.sums, depth,
    )  # fmt: skip
    most = tally.bounds[MOST] if spec.spine[ideal] > spec.spine[start] else spec.most
    between, wanted = spec.between, False
    for k in range(len(load)):
        compute[above, k, 0] = compute[depth, k, 0] + spec.forward[k, v]
        compute[above, k, 1] = compute[depth, k, 1] + spec.backward[k, v]
        for i in range(between.start[v], between.start[v + 1]):
            if tally.nets.before[between.net[i]] == 0:
                compute[above, k, 0] += between.forward[k, i]
                compute[above, k, 1] += between.backward[k, i]
        load[k], bound = growing_load(
            compute[above, k, 0] + compute[above, k, 1], moved[above, INTO] + moved[above, INTO + 1],
            moved[above, LEAVING] + moved[above, LEAVING + 1],
            moved[above, STAYING] + moved[above, STAYING + 1],
            costs.transfer_factor[k], costs.communication,
        )  # fmt: skip
        if bound <= most * spec.widest[k] and takes(
            tally.sums[above], spec.least_in_flight, spec.least_versions, memory_model.memory[k],
            0.0, 0.0, 0.0, 0.0,
        ):  # fmt: skip
            wanted = True
        else:
            load[k] = np.inf
    if not wanted:
        remove_pass_nets(costs, tally.nets, v)
    return wanted


def _leave(tally, v):  # type: ignore[no-untyped-def]
    remove_pass_nets(tally.costs, tally.nets, v)


@njit(cache=True, inner=True, _nrt=False)
def _put_before(tally, start, ideal, k, parts, counted):  # type: ignore[no-untyped-def]
    """Lower what is known of the stages outside ideal `start` by those that end with the stage to `ideal`."""
    spec, states, outside, load = tally.spec, tally.states, tally.outside, tally.load[k]
    early, late, behind = 0.0, 0.0, 0.0
    if counted:
        early, late, behind = parts[0] + parts[2], parts[1] + parts[3], parts[5]
        if spec.returns:
            early, late = early + late, 0.0
    fewest = max(1, int(np.ceil(load / spec.most - 1e-6)))
    for i in range(tally.reached[k]):
        s = tally.worthy[k, i]
        if spec.remaining[ideal] > spec.capacity[s + states.stride[k]]:
            break
        for r in range(fewest, states.left[s, k] + 1):
            t = s + r * states.stride[k]
            first, last, most = outside[t, ideal, EARLY], outside[t, ideal, LATE], outside[t, ideal, LONGEST]
            own = spec.samples if r == 1 else -(-spec.samples // r)  # a division takes long
            most = max(most + behind, first + own * load if counted else 0.0)
            outside[s, start, EARLY] = min(outside[s, start, EARLY], early + first)
            outside[s, start, LATE] = min(outside[s, start, LATE], late + last)
            outside[s, start, LONGEST] = min(outside[s, start, LONGEST], most)


def _reach(tally, start, ideal, depth, target):  # type: ignore[no-untyped-def]
    spec, moved, compute, steps = tally.spec, tally.nets.moved, tally.compute, 0
    counted, in_row = spec.spine[ideal] > spec.spine[start], tally.costs.communication == SEQUENTIAL
    for k in range(len(tally.load) if spec.remaining[ideal] <= target else 0):
        if tally.load[k] == np.inf:
            continue
        factor = tally.costs.transfer_factor[k]
        forward, backward = compute[depth, k, 0], compute[depth, k, 1]
        sent = factor * (moved[depth, INTO] + moved[depth, LEAVING])
        returned = factor * (moved[depth, INTO + 1] + moved[depth, LEAVING + 1])
        whole = forward + backward + (sent + returned)
        alone = whole if spec.returns else backward + returned
        last = alone
        if spec.turns:  # a sample turns at the last stage, for which only what comes in is sent
            into = factor * (moved[depth, INTO] + moved[depth, INTO + 1])
            last = whole - into if in_row else forward + backward
        parts = forward, backward, sent, returned, alone, last
        if tally.back:
            _put_before(tally, start, ideal, k, parts, counted)
        else:
            steps += extend(tally, start, ideal, k, parts, counted, depth)
    return steps


def _lost(tally, v):  # type: ignore[no-untyped-def]
    return tally.spec.above[v]


_walk = walk_of(_enter, _leave, _reach, _lost)


def new_tally(  # the arguments are fields of the tally
    costs: StageCosts, memory: MemoryModel, devices: DeviceStates, spec: MakespanSpec, table: MakespanTable,
    outside: Floats, back: bool,
) -> MakespanTally:  # fmt: skip
    """Return an empty stage, and room for the states that reach an ideal."""
    nodes, kinds, depths = len(memory.size), len(memory.memory), len(memory.size) + 2
    (slots, lengths), states = table.length.shape[2:], len(spec.capacity)
    shape = (0, 0) if spec.returns or spec.whole == 0 else (lengths - 1, states * slots)
    return MakespanTally(
        costs, memory, devices, spec, table, outside, new_nets(nodes, len(costs.pins)),
        np.zeros((depths, kinds, 2)), np.zeros((depths, 8)), np.zeros((depths, 2)), np.empty(kinds),
        np.empty(lengths), np.empty(len(spec.rows.forward) + len(spec.rows.backward)),
        np.empty(shape), np.empty(shape), np.zeros(states + 1, np.int64),
        np.empty((kinds, states), np.int64), np.zeros(kinds, np.int64), np.zeros(2), back,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def sweep(lattice, tally, path, first, step, budget):  # type: ignore[no-untyped-def]
    """Add one stage to those that hold ideals `first`, `first` + `step`, ...

    Parameters
    ----------
    lattice, tally, path
        See :mod:`partitioner.methods.dp.lattice`, :func:`new_tally` and
        :mod:`partitioner.methods.dp._walk_core`.
    first, step
        The ideal to start with; 1 to make pipelines up to the last ideal, -1 to fill `outside` from there
        down to ideal 0.
    budget
        Return after the ideal at which this many steps have been walked, or stages added to others.

    Returns
    -------
    tuple of int
        The next ideal to start with (the last one or -1 when done), and the steps walked.
    """
    costs, spec, outside, parent, added = (
        tally.costs, tally.spec, tally.outside, lattice.parent, lattice.added
    )  # fmt: skip
    in_row, further, last = costs.communication == SEQUENTIAL, spec.samples - 1.0, len(parent) - 1
    tally.nets.before[:] = 0
    steps, place, start = 0, 0, first
    while 0 <= start < last:
        if steps > budget:
            return start, steps
        most, later = spec.most, spec.most
        target, behind, through = list_states(tally, start)
        if step > 0 and further > 0 and spec.widest.max() == 1 and in_row:
            most, later = min(most, (spec.limit - through) / further), spec.most - behind / spec.samples
            if spec.way == STREAM and spec.returns:
                later = min(later, (spec.limit - outside[0, 0, EARLY]) / further)
        if target >= 0:
            relocate(parent, added, costs.net_start, costs.net, tally.nets.before, place, start)
            place = start
            tally.bounds[MOST], tally.bounds[LESS] = most, spec.most - later
            steps += _walk(lattice, path, start, target, tally)
        start += step
    return start, steps


@njit(cache=True, inner=True)
def list_states(tally, ideal):  # type: ignore[no-untyped-def]
    """List the states that reach an ideal and their slots, after idle devices have been added to each.

    Returned are the largest weight that their next stage may leave, -1 if no state has devices left, and,
    of what a path does not leave out, the least time of a sample of their stages, and of all stages.
    """
    table, spec, behind, first = tally.table, tally.spec, tally.behind, tally.first
    left, stride, worthy, reached = tally.states.left, tally.states.stride, tally.worthy, tally.reached
    length, rule, target, least, through = table.length, (spec.whole, spec.close), -1.0, np.inf, np.inf
    reached[:], first[0] = 0, 0
    for s in range(len(left)):
        used = 0
        if tally.back and spec.remaining[0] - spec.remaining[ideal] <= spec.taken[s]:
            used = 1 if spec.remaining[ideal] <= spec.capacity[s] else 0
        while not tally.back and used < length.shape[2] and length[s, ideal, used, 0] < np.inf:
            time = length[s, ideal, used, 0] if spec.way == STREAM else 0.0
            least, through = min(least, time), min(through, time + tally.outside[s, ideal, EARLY])
            for j in range(len(behind)):
                behind[j, first[s] + used] = length[s, ideal, used, 1 + j]
            used += 1
        first[s + 1] = first[s] + used
        for k in range(left.shape[1] if used > 0 else 0):
            if left[s, k] == 0:
                continue
            t, i = s + stride[k], reached[k]
            target = max(target, spec.capacity[t])
            while i > 0 and spec.capacity[worthy[k, i - 1] + stride[k]] < spec.capacity[t]:
                worthy[k, i] = worthy[k, i - 1]
                i -= 1
            worthy[k, i] = s
            reached[k] += 1
            for slot in range(used if spec.idle and not tally.back else 0):
                keep(table, rule, ideal, t, length[s, ideal, slot], (ideal, slot, k, NONE))
    return target, least, through
