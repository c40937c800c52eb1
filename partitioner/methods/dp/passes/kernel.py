"""The compiled walk that adds stages to chains, with a load in each of two passes.

``value[I, s]`` is the smallest largest load, in one pass or the sum of both, of stages that hold ideal I on
the devices of state s, among those in which no load in the other pass and no sum of both exceeds a limit.
The walk is that of :mod:`partitioner.methods.dp.kernel`: from every ideal it adds one supernode at a time,
and so meets every larger ideal once and knows both loads of the difference, its memory, and the numbers that
the user's limits are about.

Numbers that helpers are given are ``np.int64`` from the start, because a helper is compiled once more for a
literal 0.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp._fill_core import list_states
from partitioner.methods.dp._stages_core import (
    LAYERS,
    NEAR,
    NODES,
    PINNED,
    add_layers,
    add_numbers,
    remove_layers,
)
from partitioner.methods.dp.kernel import relocate
from partitioner.methods.dp.lattice import first_later_cover, mark

INTO, LEAVING, STAYING = 0, 2, 4  # each for the forward pass; the backward pass is the next number
AMOUNTS = 6


@njit(cache=True)
def add_nets(  # type: ignore[no-untyped-def]
    net_start, net_of, read, pins, cost, source, made, before, inside, early, holds, v, transfer, depth
):
    """Add `v` to the nets of the stage, and write the transfers of the stage at `depth` + 1.

    A tensor leaves in the pass in which it is made. It arrives in the forward pass if the stage holds an
    `early` reader, one that reads it forward. `STAYING` is the cost of what every larger stage with the same
    start transfers in that pass, too.
    """
    above = depth + 1
    for amount in range(AMOUNTS):
        transfer[above, amount] = transfer[depth, amount]
    for i in range(net_start[v], net_start[v + 1]):
        net, fresh = net_of[i], inside[net_of[i]] == 0
        due, old = made[net], 0 if early[net] > 0 else 1
        inside[net] += 1
        if source[net] == v:
            holds[net] = True
            transfer[above, LEAVING + due] += cost[net]
            if not fresh:
                transfer[above, INTO + old] -= cost[net]
            if before[net] > 0 and (fresh or old != due):
                transfer[above, STAYING + due] += cost[net]
        else:
            early[net] += 1 - read[i]
            if not holds[net] and (fresh or (read[i] == 0 and old == 1)):
                transfer[above, INTO + read[i]] += cost[net]
                if not fresh:
                    transfer[above, INTO + 1] -= cost[net]
                if before[net] > 0 and read[i] == due:
                    transfer[above, STAYING + due] += cost[net]
        if inside[net] == pins[net]:
            transfer[above, LEAVING + due] -= cost[net]


@njit(cache=True)
def remove_nets(net_start, net_of, read, source, inside, early, holds, v):  # type: ignore[no-untyped-def]
    """Remove `v` from the nets of the stage."""
    for i in range(net_start[v], net_start[v + 1]):
        net = net_of[i]
        inside[net] -= 1
        if source[net] == v:
            holds[net] = False
        else:
            early[net] -= 1 - read[i]


SUM = 2  # the number of the sum of both loads, after those of the passes


@njit(cache=True, nogil=True)
def sweep(lattice, costs, stage_limits, states, spec, table, first, budget):  # type: ignore[no-untyped-def]
    """Add one stage to those that hold ideals `first`, `first` + 1, ...

    Parameters
    ----------
    lattice, costs, stage_limits, states, spec, table
        See :mod:`partitioner.methods.dp.lattice`, :mod:`partitioner.methods.dp.passes.tables` and
        :mod:`partitioner.methods.dp.stages`; the table is written.
    first
        The ideal to start with.
    budget
        Return after the ideal at which this many steps have been walked.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals less one when done), and the steps walked.
    """
    start_of, node, to, rank = lattice.start, lattice.node, lattice.to, lattice.rank
    parent, added = lattice.parent, lattice.added
    work, sizes, memory = costs.work, costs.size, costs.memory
    transfer_factor, communication = costs.transfer_factor, costs.communication
    net_start, net_of, read = costs.net_start, costs.net, costs.read
    pins, cost, source, made = costs.pins, costs.cost, costs.source, costs.made
    layer_start, layer_of = stage_limits.layer_start, stage_limits.layer
    adjacent_start, adjacent = stage_limits.adjacent_start, stage_limits.adjacent
    by_layers, by_neighbours = stage_limits.by_layers, stage_limits.by_neighbours
    left, stride, dominance = states.left, states.stride, states.dominance
    limits, least_load = spec.limits, spec.least
    threshold = limits[least_load]
    capacity, remaining, above = spec.capacity, spec.remaining, spec.above
    growth, easiest = spec.growth, spec.easiest
    value, origin, kind, copies = table.value, table.origin, table.kind, table.copies
    ideals, nodes, kinds = len(parent), len(sizes), len(memory)
    nothing = np.zeros(left.shape, np.float64)
    reached = np.empty(len(capacity), np.float64)
    worthy = np.empty(len(capacity), np.int64)
    least = np.empty(len(capacity), np.float64)
    widest = np.empty(kinds, np.int64)
    lightest = np.empty((kinds, 2), np.float64)
    load = np.empty((3, kinds), np.float64)
    cursor = np.empty(nodes + 2, np.int64)
    end = np.empty(nodes + 2, np.int64)
    blocked = np.empty(nodes + 2, np.float64)
    compute = np.zeros((nodes + 2, 2, kinds), np.float64)
    size = np.zeros(nodes + 2, np.float64)
    transfer = np.zeros((nodes + 2, AMOUNTS), np.float64)
    number = np.zeros((nodes + 2, 4), np.int64)
    inside = np.zeros(len(pins), np.int64)
    early = np.zeros(len(pins), np.int64)
    holds = np.zeros(len(pins), np.bool_)
    before = np.zeros(len(pins), np.int64)  # pins inside the ideal `place`
    layers = np.zeros(count_layers(layer_of), np.int64)
    covered = np.zeros(nodes, np.bool_)  # by the current ideal, while its frontier is counted
    touching = np.zeros(nodes, np.int64)  # supernodes of the ideal that share an edge with each
    steps, place = 0, int(np.int64(0))
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        count, target = list_states(
            value[start], spec.floor, threshold, left, stride, 0, dominance, capacity, nothing, nothing,
            reached, worthy, least, widest, lightest,
        )  # fmt: skip
        if count == 0:
            continue
        relocate(parent, added, net_start, net_of, before, place, start)
        frontier = 0
        if by_neighbours:
            frontier = count_frontier(
                parent, added, adjacent_start, adjacent, touching, covered, place, start
            )
        place = start
        depth = np.int64(0)
        cursor[0], end[0], blocked[0] = start_of[start], start_of[start + 1], 0.0
        while depth >= 0:
            e = cursor[depth]
            if e == end[depth] or blocked[depth] > target:
                depth -= 1
                if depth >= 0:
                    v = node[cursor[depth] - 1]
                    remove_nets(net_start, net_of, read, source, inside, early, holds, v)
                    remove_layers(layer_start, layer_of, layers, v, by_layers)
                continue
            cursor[depth] = e + 1
            v, ideal = node[e], to[e]
            steps += 1
            add_nets(
                net_start, net_of, read, pins, cost, source, made, before, inside, early, holds,
                v, transfer, depth,
            )  # fmt: skip
            size[depth + 1] = size[depth] + sizes[v]
            add_numbers(stage_limits.nodes, stage_limits.pinned, touching, v, number, depth)
            add_layers(layer_start, layer_of, layers, v, by_layers, number, depth)
            kept = (
                number[depth + 1, NODES] <= stage_limits.most_nodes
                and number[depth + 1, LAYERS] <= stage_limits.most_layers
                and number[depth + 1, PINNED] <= 1
            )
            possible = False
            for k in range(kinds):
                within = kept and widest[k] > 0 and size[depth + 1] <= memory[k]
                least_total = 0.0
                for w in range(2):
                    compute[depth + 1, w, k] = compute[depth, w, k] + work[w, k, v]
                    load[w, k], bound = growing_load(
                        compute[depth + 1, w, k], transfer[depth + 1, INTO + w],
                        transfer[depth + 1, LEAVING + w], transfer[depth + 1, STAYING + w],
                        transfer_factor[k], communication,
                    )  # fmt: skip
                    within = within and bound <= limits[w]
                    least_total += bound
                load[SUM, k] = load[0, k] + load[1, k]
                within = within and least_total <= limits[SUM]
                possible = possible or within
                if not within:
                    load[least_load, k] = np.inf
            if (
                possible
                and remaining[ideal] <= target
                and number[depth + 1, NEAR] == frontier
                and number[depth + 1, NODES] >= stage_limits.fewest_nodes
                and number[depth + 1, LAYERS] >= stage_limits.fewest_layers
            ):
                extend(
                    start, ideal, load, size[depth + 1], sizes, memory, growth, easiest, least_load, limits,
                    dominance, remaining[ideal], capacity, left, stride, worthy, least, np.int64(count),
                    value, origin, kind, copies,
                )  # fmt: skip
            passed = max(blocked[depth], above[v])
            if by_neighbours and touching[v] > 0:
                passed = np.inf
            blocked[depth + 1] = blocked[depth]
            blocked[depth] = passed
            depth += 1
            end[depth] = start_of[ideal + 1]
            cursor[depth] = first_later_cover(start_of, node, rank, ideal, v) if possible else end[depth]
    return ideals - 1, steps


@njit(cache=True)
def extend(  # type: ignore[no-untyped-def]
    start, end, load, size, sizes, memory, growth, easiest, least_load, limits, dominance,
    remains, capacity, left, stride, worthy, least, count, value, origin, kind, copies,
):  # fmt: skip
    """Write the stage from ideal `start` to ideal `end` to the table for the states that allow it.

    A stage is left out if it can take one more supernode without a larger load of any later stage, without a
    load above the `least` of its chain, and within all limits.
    """
    for k in range(len(memory)):
        if load[0, k] > limits[0] or load[1, k] > limits[1] or load[SUM, k] > limits[SUM]:
            continue
        mine, easy = load[least_load, k], easiest[k, end]
        room = np.inf
        if dominance and easy >= 0 and size + sizes[easy] <= memory[k]:
            room = mine + growth[least_load, k, easy]
            for w in range(3):
                if w != least_load and load[w, k] + growth[w, k, easy] > limits[w]:
                    room = np.inf
        for i in range(count):
            state = worthy[i] + stride[k]
            if left[worthy[i], k] > 0 and remains <= capacity[state] and room > least[i]:
                largest = max(least[i], mine)
                if largest < value[end, state]:
                    value[end, state] = largest
                    origin[end, state] = start
                    kind[end, state] = k
                    copies[end, state] = 1


@njit(cache=True)
def count_frontier(parent, added, adjacent_start, adjacent, touching, covered, place, start):  # type: ignore[no-untyped-def]
    """Return how many supernodes outside ideal `start` share an edge with it; update `touching` to it."""
    relocate(parent, added, adjacent_start, adjacent, touching, place, start)
    mark(start, True, parent, added, covered)
    frontier = 0
    for v in range(len(touching)):
        frontier += touching[v] > 0 and not covered[v]
    mark(start, False, parent, added, covered)
    return frontier


@njit(cache=True)
def count_layers(layer_of):  # type: ignore[no-untyped-def]
    """Return the number of layers, which are numbered from 0."""
    count = 0
    for layer in layer_of:
        count = max(count, layer + 1)
    return count
