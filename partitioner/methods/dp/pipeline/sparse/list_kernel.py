"""The compiled walk that lists the stages whose load may keep to a threshold."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load, joint_load
from partitioner.methods.dp.ideals import first_later_cover, mark
from partitioner.methods.dp.kernel import relocate
from partitioner.methods.dp.pipeline.sparse.crossing_kernel import joint_transfers, list_crossing
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

LOADS_A_STEP = 8  # a step takes about as long as this number of loads


@njit(cache=True, nogil=True)
def list_stages(  # type: ignore[no-untyped-def]
    lattice, costs, ends, memory_model, stage_limits, widest, threshold, target, remaining, above, found,
    first, last, budget,
):  # fmt: skip
    """List the stages that begin at ideals `first`, `first` + 1, ... up to `last` - 1.

    Parameters
    ----------
    lattice, costs, memory_model, stage_limits
        See :mod:`partitioner.methods.dp.pipeline.arrays`.
    ends
        What is known of the other ends of tensors, see :mod:`partitioner.methods.dp.pipeline.sparse.arrays`.
    widest
        Shape (K,): the most devices that a stage may have.
    threshold, target
        The largest load, and the largest weight that may be outside the ideal with a stage.
    remaining, above
        See :class:`partitioner.methods.dp.pipeline.arrays.PipelineSearchSpec`.
    found
        The list of stages, which is written; those of ideals before `first` are known.
    first, last
        The ideal to start with, and the one before which to end, the full one.
    budget
        Return after the ideal at which this many steps have been walked.

    Returns
    -------
    tuple
        The next ideal to start with, and whether there was no room for its stages.
    """
    start_of, node, to, rank = lattice.start, lattice.node, lattice.to, lattice.rank
    parent, added = lattice.parent, lattice.added
    work, transfer_factor, communication = costs.work, costs.transfer_factor, costs.communication
    net_start, net_of, pins, source = costs.net_start, costs.net, costs.pins, costs.source
    enter, leave, weights = costs.enter, costs.leave, costs.weights
    bandwidth, follows = costs.bandwidth, costs.added
    group, real = ends.group, ends.real
    sizes, parameters, activations = memory_model.size, memory_model.parameters, memory_model.activations
    workspaces, memory = memory_model.workspace, memory_model.memory
    in_flight, versions, staged = memory_model.in_flight, memory_model.versions, memory_model.staged
    lightest, fewest_versions = memory_model.least_in_flight, memory_model.least_versions
    node_counts, pinned = stage_limits.nodes, stage_limits.pinned
    fewest_nodes, most_nodes = stage_limits.fewest_nodes, stage_limits.most_nodes
    fewest_layers, most_layers = stage_limits.fewest_layers, stage_limits.most_layers
    by_layers, layer_start, layer_of = stage_limits.by_layers, stage_limits.layer_start, stage_limits.layer
    adjacent_start, adjacent, by_neighbours = (
        stage_limits.adjacent_start, stage_limits.adjacent, stage_limits.by_neighbours
    )  # fmt: skip
    nodes, kinds, groups, most_behind = len(sizes), len(memory), len(ends.link), len(in_flight) - 1
    cursor = np.empty(nodes + 2, np.int64)
    end = np.empty(nodes + 2, np.int64)
    blocked = np.empty(nodes + 2, np.float64)
    compute = np.zeros((nodes + 2, kinds), np.float64)
    sums = np.zeros((nodes + 2, 8), np.float64)
    number = np.zeros((nodes + 2, 4), np.int64)
    load = np.empty((groups, groups), np.float64)
    moved = np.empty((real, groups, groups, 2), np.float64)  # in and out, by the group of the stage
    known = np.empty(real, np.bool_)
    crossing = np.empty((len(pins), 6), np.float64)
    seen = np.zeros(len(pins), np.int64)
    placed = np.zeros(nodes, np.bool_)
    stage = np.empty(nodes + 2, np.int64)
    held = np.zeros(nodes, np.bool_)
    fits = np.empty(kinds, np.bool_)
    inside = np.zeros(len(pins), np.int64)
    before = np.zeros(len(pins), np.int64)
    layers = np.zeros(layer_of.max() + 1 if len(layer_of) else 0, np.int64)
    touching = np.zeros(nodes, np.int64)
    place, steps, stamp = 0, 0, 0
    for start in range(first, last):
        if steps > budget:
            return start, False
        count = found.first[start]
        relocate(parent, added, net_start, net_of, before, place, start)
        frontier = 0
        mark(start, True, parent, added, placed)
        if by_neighbours:
            relocate(parent, added, adjacent_start, adjacent, touching, place, start)
            for v in range(nodes):
                frontier += touching[v] > 0 and not placed[v]
        place = start
        depth = 0
        cursor[0], end[0], blocked[0] = start_of[start], start_of[start + 1], 0.0
        while depth >= 0:
            e = cursor[depth]
            if e == end[depth] or blocked[depth] > target:
                depth -= 1
                if depth >= 0:
                    v = node[cursor[depth] - 1]
                    held[v] = False
                    remove_nets(net_start, net_of, inside, v)
                    remove_layers(layer_start, layer_of, layers, v, by_layers)
                continue
            cursor[depth] = e + 1
            v, ideal = node[e], to[e]
            steps += 1
            held[v] = True
            stage[depth] = v
            add_nets(net_start, net_of, pins, enter, leave, source, before, inside, v, sums, depth)
            add_sums(sizes, parameters, activations, workspaces, weights, v, sums, depth)
            add_numbers(node_counts, pinned, touching, v, number, depth)
            add_layers(layer_start, layer_of, layers, v, by_layers, number, depth)
            sum_of, number_of = sums[depth + 1], number[depth + 1]
            kept = number_of[NODES] <= most_nodes and number_of[LAYERS] <= most_layers
            possible = False
            for k in range(kinds):
                compute[depth + 1, k] = compute[depth, k] + work[k, v]
                _, bound = growing_load(
                    compute[depth + 1, k], sum_of[INTO], sum_of[LEAVING], sum_of[STAYING],
                    transfer_factor[k], communication,
                )  # fmt: skip
                fits[k] = (
                    kept
                    and number_of[PINNED] <= widest[k]
                    and takes(sum_of, lightest[0, k], fewest_versions[0, k], memory[k], 0.0, 0.0, 0.0, 0.0)
                    and can_spread(bound, sum_of[WEIGHTS], widest[k], bandwidth[k], follows, threshold)
                )
                possible = possible or fits[k]
            passed = max(blocked[depth], above[v])
            if by_neighbours and touching[v] > 0:
                passed = np.inf
            if not possible:
                held[v] = False
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
                stamp += 1
                count_of_nets = list_crossing(
                    net_start, net_of, pins, source, enter, leave, ends, inside, held, placed, seen, stamp,
                    stage, depth + 1, start, ideal, crossing,
                )  # fmt: skip
                known[:] = False
                froms, goes = 1 if start == 0 else groups, 1 if ideal == last else groups
                for k in range(kinds):
                    if not fits[k]:
                        continue
                    here = group[k]
                    if not known[here]:
                        steps += froms * goes * count_of_nets // LOADS_A_STEP
                        joint_transfers(crossing, count_of_nets, ends, here, froms, goes, moved[here])
                        known[here] = True
                    for p in range(froms):
                        for q in range(goes):
                            load[p, q] = compute[depth + 1, k]
                            if transfer_factor[k] > 0.0:
                                load[p, q] = joint_load(
                                    compute[depth + 1, k], transfer_factor[k] * moved[here, p, q, 0],
                                    transfer_factor[k] * moved[here, p, q, 1], communication,
                                )  # fmt: skip
                    for r in range(max(1, number_of[PINNED]), widest[k] + 1):
                        behind = -1
                        while behind < most_behind and takes(
                            sum_of, in_flight[behind + 1, r], versions[behind + 1, r], memory[k],
                            0.0, 0.0, 0.0, 0.0,
                        ):  # fmt: skip
                            behind = behind + 1 if staged else most_behind
                        if count == len(found.to):
                            return start, True
                        some = 0
                        for p in range(froms):
                            bits = 0
                            for q in range(goes):
                                if spread(load[p, q], sum_of[WEIGHTS], r, bandwidth[k], follows) <= threshold:
                                    bits |= 1 << q
                            found.mask[count, p] = bits
                            some |= bits
                        if some and behind >= 0:
                            found.to[count], found.kind[count] = ideal, k
                            found.copies[count], found.behind[count] = r, behind
                            found.group[count] = here + real * (depth < ends.window)
                            count += 1
            blocked[depth + 1] = blocked[depth]
            blocked[depth] = passed
            depth += 1
            end[depth] = start_of[ideal + 1]
            cursor[depth] = first_later_cover(start_of, node, rank, ideal, v)
        mark(start, False, parent, added, placed)
        found.first[start + 1] = count
    return last, False
