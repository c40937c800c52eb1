"""The compiled walk that adds stages to pipelines over explicit groups of devices.

It is the walk of :mod:`partitioner.methods.dp.pipeline.kernel`, in which a pipeline that holds an ideal also
knows the group of its last stage and that of the stage to come. So the time of a transfer between stages
that follow each other is known when the stage is placed. A tensor that may come from or go to a stage
further away is priced by ``LinkCosts.unknown``.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp.ideals import first_later_cover, mark
from partitioner.methods.dp.kernel import relocate
from partitioner.methods.dp.pipeline.groups.net_kernel import (
    SUMS,
    add_sure,
    linked_load,
    mark_nets,
    sure_after,
)
from partitioner.methods.dp.pipeline.kernel import STATES_A_STEP, list_states
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


@njit(cache=True, nogil=True)
def sweep_groups(  # type: ignore[no-untyped-def]
    lattice, costs, links, memory_model, stage_limits, states, spec, table, first, last, budget
):
    """Add one stage to those that hold ideals `first`, `first` + 1, ... up to `last` - 1.

    Parameters
    ----------
    lattice, costs, memory_model, stage_limits, states, spec
        See :mod:`partitioner.methods.dp.pipeline.arrays`; `easiest` and `open` are not read.
    links, table
        See :mod:`partitioner.methods.dp.pipeline.groups.arrays`; the table is written.
    first, last
        The ideal to start with, and the one before which to end, the full one.
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
    group, link, unknown, upper = links.group, links.link, links.unknown, links.upper
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
    value, origin, kind, copies, previous = table.value, table.origin, table.kind, table.copies, table.before
    nodes, kinds, groups, count_of_states = len(sizes), len(memory), len(link), len(capacity)
    reached = np.empty(count_of_states, np.float64)
    worthy = np.empty((groups * groups, count_of_states), np.int64)
    least = np.empty((groups * groups, count_of_states), np.float64)
    counts = np.empty(groups * groups, np.int64)
    widest, widest_of = np.zeros(kinds, np.int64), np.empty(kinds, np.int64)
    lightest, lightest_of = np.empty((kinds, 2), np.float64), np.empty((kinds, 2), np.float64)
    cursor = np.empty(nodes + 2, np.int64)
    end = np.empty(nodes + 2, np.int64)
    blocked = np.empty(nodes + 2, np.float64)
    compute = np.zeros((nodes + 2, kinds), np.float64)
    sums = np.zeros((nodes + 2, 8), np.float64)
    number = np.zeros((nodes + 2, 4), np.int64)
    sure = np.zeros((nodes + 2, SUMS), np.float64)
    near = np.zeros(len(pins), np.bool_)
    held = np.zeros(nodes, np.bool_)
    fits = np.empty(kinds, np.bool_)
    loads = np.empty(left.max() + 1 if count_of_states else 1, np.float64)
    inside = np.zeros(len(pins), np.int64)
    before = np.zeros(len(pins), np.int64)
    layers = np.zeros(layer_of.max() + 1 if len(layer_of) else 0, np.int64)
    covered = np.zeros(nodes, np.bool_)
    touching = np.zeros(nodes, np.int64)
    place, steps = 0, 0
    for start in range(first, last):
        if steps > budget:
            return start, steps
        target, total_count = -1.0, 0
        widest[:] = 0
        lightest[:] = np.inf
        for pair in range(groups * groups):
            counts[pair], far = list_states(
                value[start, pair], floor, limit - rest[start] if summed else limit, left, stride, hop,
                dominance, capacity, memory_model.least_in_flight, memory_model.least_versions,
                reached, worthy[pair], least[pair], widest_of, lightest_of,
            )  # fmt: skip
            k_group = pair % groups
            for k in range(kinds):
                if group[k] == k_group:
                    widest[k] = max(widest[k], widest_of[k])
                    lightest[k, 0] = min(lightest[k, 0], lightest_of[k, 0])
                    lightest[k, 1] = min(lightest[k, 1], lightest_of[k, 1])
            target, total_count = max(target, far), total_count + counts[pair]
        steps += groups * groups * count_of_states // STATES_A_STEP
        if total_count == 0:
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
        below = links.one_below[start]
        mark_nets(net_start, net_of, near, below, True)
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
            add_nets(net_start, net_of, pins, enter, leave, source, before, inside, v, sums, depth)
            add_sure(
                net_start, net_of, pins, source, enter, leave, inside, near, below, upper, v, sure, depth
            )  # fmt: skip
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
                    and takes(sum_of, lightest[k, 0], lightest[k, 1], memory[k], 0.0, 0.0, 0.0, 0.0)
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
                after = sure_after(
                    net_start, net_of, pins, source, enter, leave, inside, held, near,
                    links.one_above[ideal], upper,
                )  # fmt: skip
                sure_before = (sure[depth + 1, 0], sure[depth + 1, 1])
                for task in range(kinds * groups * groups):
                    k, ends = task // (groups * groups), task % (groups * groups)
                    here, come_from, go_to = group[k], ends // groups, ends % groups
                    pair = come_from * groups + here
                    if not fits[k] or counts[pair] == 0 or (ideal == last and go_to > 0):
                        continue
                    steps += counts[pair] // STATES_A_STEP
                    load = linked_load(
                        compute[depth + 1, k], sum_of[INTO], sum_of[LEAVING], sure_before, after,
                        link[come_from, here], link[here, go_to], unknown[here], transfer_factor[k],
                        communication,
                    )  # fmt: skip
                    fewest = max(1, number_of[PINNED])
                    for r in range(fewest, widest[k] + 1):
                        loads[r] = spread(load, sum_of[WEIGHTS], r, bandwidth[k], follows)
                    while fewest <= widest[k] and loads[fewest] > threshold:
                        fewest += 1
                    most = widest[k]
                    while most >= fewest and loads[most] > threshold:
                        most -= 1
                    goal = here * groups + go_to
                    for i in range(counts[pair]):
                        s, known = worthy[pair, i], least[pair, i]
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
                            total = known + loads[r] if summed else max(known, loads[r])
                            if total < value[ideal, goal, t]:
                                value[ideal, goal, t] = total
                                origin[ideal, goal, t] = start
                                kind[ideal, goal, t] = k
                                copies[ideal, goal, t] = r
                                previous[ideal, goal, t] = come_from
                            if loads[r] <= known and not summed and dominance:
                                break
            blocked[depth + 1] = blocked[depth]
            blocked[depth] = passed
            depth += 1
            end[depth] = start_of[ideal + 1]
            cursor[depth] = first_later_cover(start_of, node, rank, ideal, v)
        mark_nets(net_start, net_of, near, below, False)
    return last, steps
