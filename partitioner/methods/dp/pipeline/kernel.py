"""The compiled walk that adds stages to pipelines, as :mod:`partitioner.methods.dp.kernel` to chains.

``value[I, s]`` is the smallest value of stages that hold ideal I on the devices of state s. From every
ideal the walk adds one supernode at a time, and so meets every larger ideal once and knows all on which
load, memory and limits of the stage depend.

If memory depends on how many devices are behind a stage, the lattice is that of the turned problem, so
that the stages placed before run behind the current one.

A *segment* of a pipeline, from one ideal to a larger one, is swept like a whole pipeline: `first` and
`last` are these ideals, values are in the row of the first one, `open` is True only for supernodes in
between, `enter` and `leave` are the costs to the segment's stages, and `in_flight`, `versions` and the
states' numbers of stages count from the devices behind the segment.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp.ideals import first_later_cover, mark
from partitioner.methods.dp.kernel import relocate
from partitioner.methods.dp.pipeline.stage_kernel import (
    INTO,
    LAYERS,
    LEAVING,
    NEAR,
    NODES,
    PINNED,
    STAYING,
    WEIGHTS,
    add_layers,
    add_nets,
    add_numbers,
    add_sums,
    can_spread,
    remove_layers,
    remove_nets,
    spread,
    takes,
)

STATES_A_STEP = 32  # a step takes about as long as this number of states


@njit(cache=True, nogil=True)
def sweep(lattice, costs, memory_model, stage_limits, states, spec, table, first, last, budget):  # type: ignore[no-untyped-def]
    """Add one stage to those that hold ideals `first`, `first` + 1, ... up to `last` - 1.

    Parameters
    ----------
    lattice, costs, memory_model, stage_limits, states, spec, table
        See :mod:`partitioner.methods.dp.pipeline.arrays`; the table is written.
    first, last
        The ideal to start with, and the one before which to end.
    budget
        Return after the ideal at which this many steps have been walked; many states count as further steps.

    Returns
    -------
    tuple of int
        The next ideal to start with (`last` when done), and the steps walked.
    """
    start_of, node, to, rank = lattice.start, lattice.node, lattice.to, lattice.rank
    parent, added = lattice.parent, lattice.added
    work, transfer_factor, communication = costs.work, costs.transfer_factor, costs.communication
    net_start, net_of, pins, source = costs.net_start, costs.net, costs.pins, costs.source
    enter, leave, weights = costs.enter, costs.leave, costs.weights
    bandwidth, follows = costs.bandwidth, costs.added
    sizes, parameters, activations = memory_model.size, memory_model.parameters, memory_model.activations
    workspaces, memory = memory_model.workspace, memory_model.memory
    in_flight, versions = memory_model.in_flight, memory_model.versions
    node_counts, pinned = stage_limits.nodes, stage_limits.pinned
    fewest_nodes, most_nodes = stage_limits.fewest_nodes, stage_limits.most_nodes
    fewest_layers, most_layers = stage_limits.fewest_layers, stage_limits.most_layers
    by_layers, layer_start, layer_of = stage_limits.by_layers, stage_limits.layer_start, stage_limits.layer
    adjacent_start, adjacent, by_neighbours = (
        stage_limits.adjacent_start, stage_limits.adjacent, stage_limits.by_neighbours
    )  # fmt: skip
    left, stride, hop, behind, dominance = (
        states.left, states.stride, states.hop, states.behind, states.dominance
    )  # fmt: skip
    summed, threshold, limit, floor = spec.summed, spec.threshold, spec.limit, spec.floor
    capacity, remaining, above, rest = spec.capacity, spec.remaining, spec.above, spec.rest
    growth, easiest, opened = spec.growth, spec.easiest, spec.open
    value, origin, kind, copies = table.value, table.origin, table.kind, table.copies
    nodes, kinds = len(sizes), len(memory)
    reached = np.empty(len(capacity), np.float64)
    worthy = np.empty(len(capacity), np.int64)
    least = np.empty(len(capacity), np.float64)
    widest = np.empty(kinds, np.int64)
    lightest = np.empty((kinds, 2), np.float64)  # samples in flight, versions of the weights
    cursor = np.empty(nodes + 2, np.int64)
    end = np.empty(nodes + 2, np.int64)
    blocked = np.empty(nodes + 2, np.float64)
    compute = np.zeros((nodes + 2, kinds), np.float64)
    sums = np.zeros((nodes + 2, 8), np.float64)
    number = np.zeros((nodes + 2, 4), np.int64)
    load = np.empty(kinds, np.float64)
    loads = np.empty(left.max() + 1 if len(capacity) else 1, np.float64)
    inside = np.zeros(len(pins), np.int64)
    before = np.zeros(len(pins), np.int64)  # pins inside the ideal `place`
    layers = np.zeros(layer_of.max() + 1 if len(layer_of) else 0, np.int64)
    covered = np.zeros(nodes, np.bool_)  # by the current ideal, while its frontier is counted
    touching = np.zeros(nodes, np.int64)  # supernodes of the ideal that share an edge with each
    place, steps = 0, 0
    for start in range(first, last):
        if steps > budget:
            return start, steps
        count, target = list_states(
            value[start], floor, limit - rest[start] if summed else limit, left, stride, hop, dominance,
            capacity, memory_model.least_in_flight, memory_model.least_versions,
            reached, worthy, least, widest, lightest,
        )  # fmt: skip
        steps += len(capacity) // STATES_A_STEP
        if count == 0:
            continue
        relocate(parent, added, net_start, net_of, before, place, start)
        frontier = 0
        if by_neighbours:
            relocate(parent, added, adjacent_start, adjacent, touching, place, start)
            mark(start, True, parent, added, covered)
            for v in range(nodes):
                frontier += touching[v] > 0 and not covered[v]
            mark(start, False, parent, added, covered)
        place = start
        depth = 0
        cursor[0], end[0], blocked[0] = start_of[start], start_of[start + 1], 0.0
        while depth >= 0:
            e = cursor[depth]
            if e == end[depth] or blocked[depth] > target:
                depth -= 1
                if depth >= 0:
                    v = node[cursor[depth] - 1]
                    remove_nets(net_start, net_of, inside, v)
                    remove_layers(layer_start, layer_of, layers, v, by_layers)
                continue
            cursor[depth] = e + 1
            v, ideal = node[e], to[e]
            if not opened[v]:
                continue
            steps += 1
            add_nets(net_start, net_of, pins, enter, leave, source, before, inside, v, sums, depth)
            add_sums(sizes, parameters, activations, workspaces, weights, v, sums, depth)
            add_numbers(node_counts, pinned, touching, v, number, depth)
            add_layers(layer_start, layer_of, layers, v, by_layers, number, depth)
            sum_of, number_of = sums[depth + 1], number[depth + 1]
            kept = number_of[NODES] <= most_nodes and number_of[LAYERS] <= most_layers
            possible = False
            for k in range(kinds):
                compute[depth + 1, k] = compute[depth, k] + work[k, v]
                load[k], bound = growing_load(
                    compute[depth + 1, k], sum_of[INTO], sum_of[LEAVING], sum_of[STAYING],
                    transfer_factor[k], communication,
                )  # fmt: skip
                if not takes(sum_of, lightest[k, 0], lightest[k, 1], memory[k], 0.0, 0.0, 0.0, 0.0):
                    load[k] = np.inf
                elif (
                    kept
                    and number_of[PINNED] <= widest[k]
                    and can_spread(bound, sum_of[WEIGHTS], widest[k], bandwidth[k], follows, threshold)
                ):
                    possible = True
                else:
                    load[k] = np.inf
            passed = max(blocked[depth], above[v])
            if by_neighbours and touching[v] > 0:
                passed = np.inf
            if not possible:
                remove_nets(net_start, net_of, inside, v)
                remove_layers(layer_start, layer_of, layers, v, by_layers)
                blocked[depth] = passed
                continue
            if (
                remaining[ideal] <= target
                and number_of[NEAR] == frontier
                and number_of[NODES] >= fewest_nodes
                and number_of[LAYERS] >= fewest_layers
            ):
                for k in range(kinds):
                    if load[k] == np.inf:
                        continue
                    steps += count // STATES_A_STEP
                    fewest = max(1, number_of[PINNED])
                    for r in range(fewest, widest[k] + 1):
                        loads[r] = spread(load[k], sum_of[WEIGHTS], r, bandwidth[k], follows)
                    while fewest <= widest[k] and loads[fewest] > threshold:
                        fewest += 1
                    most = widest[k]
                    while most >= fewest and loads[most] > threshold:
                        most -= 1
                    easy = easiest[k, ideal]
                    for i in range(count):
                        s = worthy[i]
                        best = np.inf
                        for r in range(fewest, min(most, left[s, k]) + 1):
                            t = s + r * stride[k] + hop
                            if remaining[ideal] > capacity[t]:
                                break
                            if loads[r] >= best or loads[r] > threshold:
                                continue
                            samples, kept_versions = in_flight[behind[s], r], versions[behind[s], r]
                            if memory_model.staged and not takes(
                                sum_of, samples, kept_versions, memory[k], 0.0, 0.0, 0.0, 0.0
                            ):
                                continue
                            if dominance:
                                best = loads[r]
                            done = loads[r] <= least[i] and not summed and dominance
                            if done and easy >= 0 and spread(
                                load[k] + growth[k, easy], sum_of[WEIGHTS] + weights[easy],
                                r, bandwidth[k], follows,
                            ) <= least[i] and takes(
                                sum_of, samples, kept_versions, memory[k],
                                sizes[easy], parameters[easy], activations[easy], workspaces[easy],
                            ):  # fmt: skip
                                break
                            total = least[i] + loads[r] if summed else max(least[i], loads[r])
                            if total < value[ideal, t]:
                                value[ideal, t] = total
                                origin[ideal, t] = start
                                kind[ideal, t] = k
                                copies[ideal, t] = r
                            if done:
                                break
            blocked[depth + 1] = blocked[depth]
            blocked[depth] = passed
            depth += 1
            end[depth] = start_of[ideal + 1]
            cursor[depth] = first_later_cover(start_of, node, rank, ideal, v)
    return last, steps


@njit(cache=True, inline="always")
def list_states(  # type: ignore[no-untyped-def]
    value, floor, limit, left, stride, hop, dominance, capacity, least_in_flight, least_versions,
    reached, worthy, least, widest, lightest,
):  # fmt: skip
    """List the useful states of an ideal, and the `least` value of pipelines that extend each.

    A state is useless if another one reaches the same ideal with fewer devices and no larger value, or no
    value above the floor. Returned are the number of states, and the largest weight that their next stage
    may leave; written are, for each kind, the largest number of replicas, and the fewest samples and
    versions of weights that a stage must hold.
    """
    states, kinds = left.shape
    count, target = 0, -1.0
    widest[:] = 0
    lightest[:] = np.inf
    reached[:] = np.inf  # smallest value with which fewer devices reach the ideal
    for s in range(states):
        mine = max(value[s], floor)
        fewer = reached[s]
        good = mine <= limit and not (dominance and fewer <= mine)
        for k in range(kinds):
            if left[s, k] > 0:
                t = s + stride[k]
                reached[t] = min(reached[t], min(fewer, mine))
                if good:
                    widest[k] = max(widest[k], left[s, k])
                    lightest[k, 0] = min(lightest[k, 0], least_in_flight[s, k])
                    lightest[k, 1] = min(lightest[k, 1], least_versions[s, k])
                    target = max(target, capacity[t + hop])
        if good:
            worthy[count], least[count] = s, mine
            count += 1
    return count, target
