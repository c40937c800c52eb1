"""The compiled fill of the table of the dynamic program over pipelines.

``value[I, p, s]`` is the smallest value of stages that hold ideal I on the devices of state s:

    value[J, s + r of k] = min over I of value[I, s] (+ or max) load of the stage J - I on r devices of kind k

and p is the pair of the groups of the last stage and of the stage to come; without groups there is one pair.
So the time of a transfer between stages that follow each other is known when the stage is placed. A tensor
that may come from or go to a stage further away is priced by ``TensorEnds.unknown``.

If memory depends on how many devices are behind a stage, the lattice is that of the turned problem, so
that the stages placed before run behind the current one.

A *segment* of a pipeline, from one ideal to a larger one, is swept like a whole pipeline: `first` and
`last` are these ideals, values are in the row of the first one, `open` is True only for supernodes in
between, `enter` and `leave` are the costs to the segment's stages, and `in_flight`, `versions` and the
states' numbers of stages count from the devices behind the segment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.dp._stages_core import (
    DEPTH,
    INTO,
    LEAVING,
    LISTED,
    WEIGHTS,
    StageDemand,
    list_stages,
    new_walk,
    spread,
    takes,
)
from partitioner.problem.arrays import Floats, Ints

STATES_A_STEP = 32  # a step takes about as long as this number of states


class UsefulStates(NamedTuple):
    """Room for the useful states of an ideal, of S states and K kinds.

    Parameters
    ----------
    reached
        Shape (S,): the smallest value with which fewer devices reach the ideal.
    worthy, least
        Shape (S,): the useful states, and the least value of pipelines that extend each.
    widest
        Shape (K,): the largest number of replicas of their next stage.
    lightest
        Shape (K, 2): the fewest samples and versions of weights that it must hold.
    """

    reached: Floats
    worthy: Ints
    least: Floats
    widest: Ints
    lightest: Floats


class StatesByPair(NamedTuple):
    """The useful states of an ideal by pair of groups, as in :class:`UsefulStates`.

    Parameters
    ----------
    found, worthy, least
        Shapes (pairs,), (pairs, S), (pairs, S): how many there are, the states, and their least values.
    widest
        Shape (K,): the most replicas of the next stage on a kind, over all pairs.
    loads
        Shape (most replicas + 1,): room for the loads of a stage by its replicas.
    """

    found: Ints
    worthy: Ints
    least: Floats
    widest: Ints
    loads: Floats


@njit(cache=True, nogil=True)
def sweep(lattice, model, states, spec, table, first, last, budget):  # type: ignore[no-untyped-def]
    """Add one stage to those that hold ideals `first`, `first` + 1, ... up to `last` - 1.

    Parameters
    ----------
    lattice, model
        See :mod:`partitioner.methods.dp.lattice` and :class:`partitioner.methods.dp.stages.StageTerms`.
    states, spec, table
        See :mod:`partitioner.methods.dp.stages`; the table, of pairs of groups, is written.
    first, last
        The ideal to start with, and the one before which to end.
    budget
        Return after the ideal at which this many steps have been walked; many states count as further steps.

    Returns
    -------
    tuple of int
        The next ideal to start with (`last` when done), and the steps walked.
    """
    costs, ends, memory_model = model.costs, model.ends, model.memory
    kinds, groups, count_of_states = len(memory_model.memory), len(ends.link), len(spec.capacity)
    pairs = groups * groups
    reached = np.empty(count_of_states, np.float64)
    widest, widest_of = np.zeros(kinds, np.int64), np.empty(kinds, np.int64)
    lightest, lightest_of = np.empty((kinds, 2), np.float64), np.empty((kinds, 2), np.float64)
    useful = StatesByPair(
        np.empty(pairs, np.int64), np.empty((pairs, count_of_states), np.int64),
        np.empty((pairs, count_of_states), np.float64), widest,
        np.empty(states.left.max() + 1 if count_of_states else 1, np.float64),
    )  # fmt: skip
    value, summed, limit, rest, group = table.value, spec.summed, spec.limit, spec.rest, ends.group
    fewest = memory_model.least_in_flight, memory_model.least_versions
    layer_of = model.limits.layer
    layers = layer_of.max() + 1 if len(layer_of) else 0
    walk, rows = new_walk(len(memory_model.size), kinds, len(costs.pins), layers, ends.listed)
    demand = StageDemand(spec.threshold, widest, lightest, spec.remaining, spec.above, spec.open)
    steps = 0
    for start in range(first, last):
        if steps > budget:
            return start, steps
        target, total_count = -1.0, 0
        widest[:] = 0
        lightest[:] = np.inf
        for pair in range(pairs):
            room = UsefulStates(reached, useful.worthy[pair], useful.least[pair], widest_of, lightest_of)
            useful.found[pair], far = list_states(
                value[start, pair], spec.floor, limit - rest[start] if summed else limit, states,
                spec.capacity, fewest, room,
            )  # fmt: skip
            for k in range(kinds):
                if group[k] == pair % groups:
                    widest[k] = max(widest[k], widest_of[k])
                    lightest[k, 0] = min(lightest[k, 0], lightest_of[k, 0])
                    lightest[k, 1] = min(lightest[k, 1], lightest_of[k, 1])
            target, total_count = max(target, far), total_count + useful.found[pair]
        steps += pairs * count_of_states // STATES_A_STEP
        if total_count == 0:
            continue
        more = True
        while more:
            found, walked = list_stages(lattice, model, demand, start, target, walk, rows)
            more = walk.at[DEPTH] != LISTED
            steps += walked + extend(model, states, spec, table, rows, (found, start, last), useful)
    return last, steps


@njit(cache=True, inner=True, _nrt=False)
def extend(model, states, spec, table, rows, block, useful):  # type: ignore[no-untyped-def]
    """Add the listed stages to the useful states of an ideal; return the steps that these states count as.

    `block` has the number of the listed stages, the ideal at which they begin, and the last ideal of all.
    """
    found, start, last = block
    counts, worthy, least, widest, loads = (
        useful.found, useful.worthy, useful.least, useful.widest, useful.loads
    )  # fmt: skip
    costs, ends, memory_model = model.costs, model.ends, model.memory
    left, stride, jump, behind, dominance = (
        states.left, states.stride, states.jump, states.behind, states.dominance
    )  # fmt: skip
    summed, threshold, capacity = spec.summed, spec.threshold, spec.capacity
    bandwidth, message, follows, memory = costs.bandwidth, costs.message, costs.added, memory_model.memory
    in_flight, versions = memory_model.in_flight, memory_model.versions
    weights, sizes, parameters = costs.weights, memory_model.size, memory_model.parameters
    activations, workspaces = memory_model.activations, memory_model.workspace
    value, origin, kind, copies, previous = table.value, table.origin, table.kind, table.copies, table.before
    link, unknown, group, linked = ends.link, ends.unknown, ends.group, ends.linked
    growth, easiest, staged = spec.growth, spec.easiest, memory_model.staged
    groups, kinds, steps = len(link), len(memory), 0
    for i in range(found):
        sum_of, ideal = rows.sums[i], rows.to[i]
        remaining, goals = spec.remaining[ideal], 1 if ideal == last else groups
        for k in range(kinds):
            here, load, easy = group[k], rows.load[i, k], easiest[k, ideal]
            if load == np.inf:
                continue
            # for each group of the stage before and of the one to come
            for ends_at in range(goals * groups):
                come_from, go_to = (0, 0) if groups == 1 else (ends_at // goals, ends_at % goals)
                pair, goal = come_from * groups + here, here * groups + go_to
                if counts[pair] == 0:
                    continue
                steps += counts[pair] // STATES_A_STEP
                if linked:
                    easy = -1
                    links = link[come_from, here], link[here, go_to], unknown[here]
                    load = linked_load(
                        rows.busy[i, k], sum_of[INTO], sum_of[LEAVING], rows.near[i], links,
                        costs.transfer_factor[k], costs.communication,
                    )  # fmt: skip
                # the numbers of devices on which the load keeps to the threshold lie in one range
                fewest, most = max(states.fewest[k], rows.pinned[i]), widest[k]
                for r in range(fewest, most + 1):
                    loads[r] = spread(load, sum_of[WEIGHTS], r, bandwidth[k], message[k], follows)
                while fewest <= most and loads[fewest] > threshold:
                    fewest += 1
                while most >= fewest and loads[most] > threshold:
                    most -= 1
                if fewest > most:
                    continue
                # extend each useful state by the stage on every number of devices that it leaves
                for w in range(counts[pair]):
                    s, known, best = worthy[pair, w], least[pair, w], np.inf
                    for r in range(fewest, min(most, left[s, k]) + 1):
                        t = s + r * stride[k] + jump[k]
                        if remaining > capacity[t]:
                            break
                        if loads[r] >= best or loads[r] > threshold:
                            continue
                        samples, kept_versions = in_flight[behind[s], r], versions[behind[s], r]
                        if staged and not takes(
                            sum_of, samples, kept_versions, memory[k], 0.0, 0.0, 0.0, 0.0
                        ):
                            continue
                        if dominance:
                            best = loads[r]
                        # a stage that can take one more supernode without a larger value is left out
                        done = loads[r] <= known and not summed and dominance
                        if done and easy >= 0 and spread(
                            load + growth[k, easy], sum_of[WEIGHTS] + weights[easy], r, bandwidth[k],
                            message[k], follows,
                        ) <= known and takes(
                            sum_of, samples, kept_versions, memory[k], sizes[easy], parameters[easy],
                            activations[easy], workspaces[easy],
                        ):  # fmt: skip
                            break
                        total = known + loads[r] if summed else max(known, loads[r])
                        if total < value[ideal, goal, t]:
                            value[ideal, goal, t] = total
                            origin[ideal, goal, t] = start
                            kind[ideal, goal, t] = k
                            copies[ideal, goal, t] = r
                            if linked:
                                previous[ideal, goal, t] = come_from
                        if done:
                            break
    return steps


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def linked_load(busy, into, out, near, links, factor, communication):  # type: ignore[no-untyped-def]
    """Return the load of a stage.

    `into` and `out` are the costs of all its transfers; `near` has those from and to the stages next to it,
    (into, out) each. `links` has the factors of the links to the stage before, to the one after, and to
    stages that are not known.
    """
    link_before, link_after, unknown = links
    if factor == 0.0:
        return busy
    rest = max(0.0, into - near[0] - near[2])
    arriving = near[0] * link_before + near[2] * link_after + rest * unknown
    rest = max(0.0, out - near[1] - near[3])
    leaving = near[1] * link_before + near[3] * link_after + rest * unknown
    return joint_load(busy, factor * arriving, factor * leaving, communication)


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def list_states(value, floor, limit, states, capacity, fewest, room):  # type: ignore[no-untyped-def]
    """List the useful states of an ideal; return their number, and what their next stage may leave.

    A state is useless if another one reaches the same ideal with fewer devices and no larger value, or no
    value above the floor.

    Parameters
    ----------
    value, floor, limit
        Shape (S,): the values of the states; up to the floor they count as equal, above the limit as none.
    states, capacity
        The devices by state, and shape (S,): what those that it leaves can take.
    fewest
        Two of shape (S, K): the fewest samples in flight and versions of weights by state.
    room
        Is written: a :class:`UsefulStates`.
    """
    reached, worthy, least = room.reached, room.worthy, room.least
    widest, lightest, left, stride = room.widest, room.lightest, states.left, states.stride
    least_in_flight, least_versions = fewest
    count_of_states, kinds = left.shape
    count, target = 0, -1.0
    widest[:] = 0
    lightest[:] = np.inf
    reached[:] = np.inf  # smallest value with which fewer devices reach the ideal
    for s in range(count_of_states):
        mine = max(value[s], floor)
        fewer = reached[s]
        good = mine <= limit and not (states.dominance and fewer <= mine)
        for k in range(kinds):
            if left[s, k] > 0:
                t = s + stride[k]
                reached[t] = min(reached[t], min(fewer, mine))
                if good:
                    widest[k] = max(widest[k], left[s, k])
                    lightest[k, 0] = min(lightest[k, 0], least_in_flight[s, k])
                    lightest[k, 1] = min(lightest[k, 1], least_versions[s, k])
                    target = max(target, capacity[t + states.jump[k]])
        if good:
            worthy[count], least[count] = s, mine
            count += 1
    return count, target
