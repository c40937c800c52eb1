"""The compiled walk over the stages that begin at one ideal, and what it adds up on the way.

:func:`list_stages` writes the stages to a buffer, block by block: their loads by kind, their memory, the
transfers whose other ends are known. Small fills, such as :mod:`partitioner.methods.dp._fill_core`, read the
buffer and extend what holds the ideal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp._transfers_core import STAMP, add_nets, list_crossing, remove_nets
from partitioner.methods.dp.lattice import first_later_cover, mark, relocate
from partitioner.problem.arrays import Floats, Ints

# columns of sums, the first three as in `add_nets`
INTO, LEAVING, STAYING, SIZE, PARAMETERS, ACTIVATIONS, WORKSPACE, WEIGHTS = range(8)
NODES, PINNED, LAYERS, NEAR = range(4)  # columns of numbers
IN_BEFORE, OUT_BEFORE = range(2)  # columns of sure transfers
PLACE, DEPTH, FRONTIER = range(3)  # places in `StageWalk.at`, before `STAMP`
NOWHERE, LISTED = -1, -1
BLOCK = 256  # stages in the buffer


class StageDemand(NamedTuple):
    """The stages that the walk lists.

    Parameters
    ----------
    threshold
        Only stages whose load can be at most this one on some number of devices.
    widest
        Shape (K,): the most devices that a stage may have.
    lightest
        Shape (K, 2): the fewest samples in flight and versions of the weights that a stage must hold.
    remaining, above
        Shapes (I,) and (n,): weight of the supernodes outside an ideal, and weight that a walk can no longer
        add once it has skipped a supernode.
    open
        Shape (n,): whether the supernode may be in a stage.
    """

    threshold: float
    widest: Ints
    lightest: Floats
    remaining: Floats
    above: Floats
    open: NDArray[np.bool_]


class StageWalk(NamedTuple):
    """The work space of a walk over the stages that begin at one ideal; at depth d a stage has d supernodes.

    Parameters
    ----------
    at
        Shape (4,): the ideal that `before`, `touching` and `placed` are of; the depth, or :data:`LISTED`
        after the last stage; how many supernodes outside the ideal share an edge with it; and how many stages
        were listed with their crossing nets.
    cursor, end, blocked
        Shape (n + 2,): by depth, the next cover of the ideal, the one before which to end, and the weight
        that can no longer be added.
    load
        Shape (K,): the load of the current stage, as in :class:`StageRows`.
    compute, sums, number, sure
        Shapes (n + 2, K), (n + 2, 8), (n + 2, 4), (n + 2, 2): by depth, what a stage takes to process, its
        sums of memory and transfers, its numbers for the limits, and its transfers from and to the stage
        before it.
    inside, before, near, seen
        Shape (E,): the pins of each net in the stage and in the ideal; whether the only supernode below the
        ideal is one of them; and the stamp of the last stage whose crossing nets it was one of.
    layers, placed, touching, held, stage
        How often each layer is in the stage; whether a supernode is in the ideal, how many of its neighbours
        are, and whether it is in the stage; and the supernodes of the stage in the order in which they were
        added.
    """

    at: Ints
    cursor: Ints
    end: Ints
    blocked: Floats
    load: Floats
    compute: Floats
    sums: Floats
    number: Ints
    sure: Floats
    inside: Ints
    before: Ints
    near: NDArray[np.bool_]
    seen: Ints
    layers: Ints
    placed: NDArray[np.bool_]
    touching: Ints
    held: NDArray[np.bool_]
    stage: Ints


class StageRows(NamedTuple):
    """The buffer that the walk fills: B stages that begin at one ideal.

    Parameters
    ----------
    to, length, pinned
        Shape (B,): the ideal with the stage, its supernodes, and to how many devices they are pinned.
    busy, load
        Shape (B, K): what the stage takes to process, and its load on one device with all links of the factor
        1; the load is infinity on a kind that the stage cannot be on.
    sums
        Shape (B, 8): its sums of memory, weights and transfers.
    near
        Shape (B, 4): if linked, its transfers in and out, from and to the stage before it, then after it.
    first, crossing
        Shapes (B + 1,) and (C, 6): if listed, the nets that cross its borders, see :func:`list_crossing`.
    """

    to: Ints
    length: Ints
    pinned: Ints
    busy: Floats
    load: Floats
    sums: Floats
    near: Floats
    first: Ints
    crossing: Floats


@njit(cache=True, inner=True)
def new_walk(nodes, kinds, nets, layers, listed):  # type: ignore[no-untyped-def]
    """Return the work space of a walk, and an empty buffer with room for :data:`BLOCK` stages."""
    depths = nodes + 2
    walk = StageWalk(
        np.zeros(4, np.int64),
        np.zeros(depths, np.int64), np.zeros(depths, np.int64), np.zeros(depths, np.float64),
        np.zeros(kinds, np.float64),
        np.zeros((depths, kinds), np.float64), np.zeros((depths, 8), np.float64),
        np.zeros((depths, 4), np.int64), np.zeros((depths, 2), np.float64),
        np.zeros(nets, np.int64), np.zeros(nets, np.int64), np.zeros(nets, np.bool_),
        np.zeros(nets, np.int64),
        np.zeros(layers, np.int64), np.zeros(nodes, np.bool_), np.zeros(nodes, np.int64),
        np.zeros(nodes, np.bool_), np.zeros(depths, np.int64),
    )  # fmt: skip
    rows = StageRows(
        np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64),
        np.empty((BLOCK, kinds), np.float64), np.empty((BLOCK, kinds), np.float64),
        np.empty((BLOCK, 8), np.float64), np.empty((BLOCK, 4), np.float64),
        np.zeros(BLOCK + 1, np.int64), np.empty((2 * nets + BLOCK if listed else 0, 6), np.float64),
    )  # fmt: skip
    walk.at[DEPTH] = LISTED
    return walk, rows


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _begin(lattice, model, walk, start):  # type: ignore[no-untyped-def]
    """Move the walk to the stages that begin at an ideal."""
    costs, ends, limits = model.costs, model.ends, model.limits
    parent, added, place = lattice.parent, lattice.added, walk.at[PLACE]
    relocate(parent, added, costs.net_start, costs.net, walk.before, place, start)
    frontier = 0
    if limits.by_neighbours or ends.listed:
        mark(place, False, parent, added, walk.placed)
        mark(start, True, parent, added, walk.placed)
    if limits.by_neighbours:
        relocate(parent, added, limits.adjacent_start, limits.adjacent, walk.touching, place, start)
        for v in range(len(walk.touching)):
            frontier += walk.touching[v] > 0 and not walk.placed[v]
    if ends.linked:
        walk.near[:] = False
        below = ends.one_below[start]
        if below != NOWHERE:
            for i in range(costs.net_start[below], costs.net_start[below + 1]):
                walk.near[costs.net[i]] = True
    walk.at[PLACE], walk.at[DEPTH], walk.at[FRONTIER] = start, 0, frontier
    walk.cursor[0], walk.end[0] = lattice.start[start], lattice.start[start + 1]
    walk.blocked[0] = 0.0


@njit(cache=True, inner=True, _nrt=False)
def list_stages(lattice, model, demand, start, target, walk, rows):  # type: ignore[no-untyped-def]
    """Write the next stages that begin at ideal `start`, as many as the buffer holds.

    From the ideal the walk adds one supernode at a time, and so meets every larger ideal once and knows all
    on which load, memory and limits of the stage depend. It turns back where no larger stage can keep to the
    demand.

    Parameters
    ----------
    lattice, model
        See :mod:`partitioner.methods.dp.lattice` and :class:`partitioner.methods.dp.stages.StageTerms`.
    demand, target
        What stages must keep to, and the largest weight that may be outside the ideal with a stage.
    walk, rows
        The place to continue from; and the buffer, which is written.

    Returns
    -------
    tuple of int
        How many stages were written, and the supernodes added. If that were all, `walk.at` says so, and the
        next call begins anew.
    """
    if walk.at[DEPTH] == LISTED:
        _begin(lattice, model, walk, start)
    start_of, node, to, rank = lattice.start, lattice.node, lattice.to, lattice.rank
    costs, ends, memory_model, limits = model.costs, model.ends, model.memory, model.limits
    work, transfer_factor, communication = costs.work, costs.transfer_factor, costs.communication
    weights, bandwidth, message = costs.weights, costs.bandwidth, costs.message
    sizes, parameters, activations = memory_model.size, memory_model.parameters, memory_model.activations
    workspaces, memory = memory_model.workspace, memory_model.memory
    layer_start, layer_of, by_layers = limits.layer_start, limits.layer, limits.by_layers
    fewest_nodes, most_nodes = limits.fewest_nodes, limits.most_nodes
    fewest_layers, most_layers, by_neighbours = (
        limits.fewest_layers, limits.most_layers, limits.by_neighbours
    )  # fmt: skip
    threshold, widest, lightest = demand.threshold, demand.widest, demand.lightest
    remaining, above, opened = demand.remaining, demand.above, demand.open
    cursor, end, blocked = walk.cursor, walk.end, walk.blocked
    compute, sums, number, sure = walk.compute, walk.sums, walk.number, walk.sure
    inside, before, near, layers = walk.inside, walk.before, walk.near, walk.layers
    touching, held, stage, load = walk.touching, walk.held, walk.stage, walk.load
    linked, listed, upper = ends.linked, ends.listed, ends.upper
    kinds, room = len(memory), len(rows.crossing) - len(costs.pins)
    depth, frontier = walk.at[DEPTH], walk.at[FRONTIER]
    below = ends.one_below[start] if linked else NOWHERE
    count, steps = 0, 0
    rows.first[0] = 0
    while depth >= 0:
        e = cursor[depth]
        if e == end[depth] or blocked[depth] > target:
            # all stages with these supernodes have been listed: take the last one out again
            depth -= 1
            if depth >= 0:
                v = node[cursor[depth] - 1]
                held[v] = False
                remove_nets(costs, inside, v)
                remove_layers(layer_start, layer_of, layers, v, by_layers)
            continue
        cursor[depth] = e + 1
        v, ideal = node[e], to[e]
        if not opened[v]:
            continue
        # add the next supernode to what the stage is made of
        steps += 1
        held[v] = True
        add_nets(costs, costs.enter, costs.leave, before, inside, v, sums, depth)
        if linked:
            add_sure(costs, inside, near, below, upper, v, sure, depth)
        add_sums(sizes, parameters, activations, workspaces, weights, v, sums, depth)
        add_numbers(limits, touching, layers, v, number, depth)
        sum_of, number_of = sums[depth + 1], number[depth + 1]
        # a stage that is too large in one of these ways is so with every further supernode
        kept = number_of[NODES] <= most_nodes and number_of[LAYERS] <= most_layers
        possible = False
        for k in range(kinds):
            compute[depth + 1, k] = compute[depth, k] + work[k, v]
            load[k], bound = growing_load(
                compute[depth + 1, k], sum_of[INTO], sum_of[LEAVING], sum_of[STAYING],
                transfer_factor[k], communication,
            )  # fmt: skip
            if (
                kept
                and number_of[PINNED] <= widest[k]
                and takes(sum_of, lightest[k, 0], lightest[k, 1], memory[k], 0.0, 0.0, 0.0, 0.0)
                and can_spread(
                    bound, sum_of[WEIGHTS], widest[k], bandwidth[k], message[k], costs.added, threshold
                )
            ):  # fmt: skip
                possible = True
            else:
                load[k] = np.inf
        passed = max(blocked[depth], above[v])
        if by_neighbours and touching[v] > 0:
            passed = np.inf
        if not possible:
            held[v] = False
            remove_nets(costs, inside, v)
            remove_layers(layer_start, layer_of, layers, v, by_layers)
            blocked[depth] = passed
            continue
        # write the stage if the rest can be taken, and what it holds keeps to the limits from below
        stage[depth] = v
        offered = (
            remaining[ideal] <= target
            and number_of[NEAR] == frontier
            and number_of[NODES] >= fewest_nodes
            and number_of[LAYERS] >= fewest_layers
        )
        if offered:
            rows.to[count], rows.length[count], rows.pinned[count] = ideal, depth + 1, number_of[PINNED]
            for i in range(len(sum_of)):  # an assignment of slices would copy them first
                rows.sums[count, i] = sum_of[i]
            for k in range(kinds):
                rows.load[count, k] = load[k]
                if linked or listed:
                    rows.busy[count, k] = compute[depth + 1, k]
        if offered and linked:
            rows.near[count, 0], rows.near[count, 1] = sure[depth + 1, 0], sure[depth + 1, 1]
            rows.near[count, 2], rows.near[count, 3] = sure_after(
                costs, inside, held, near, ends.one_above[ideal], upper
            )  # fmt: skip
        if offered and listed:
            walk.at[STAMP] += 1
            rows.first[count + 1] = rows.first[count] + list_crossing(
                costs, ends, walk, depth + 1, start, ideal, rows.crossing[rows.first[count] :]
            )  # fmt: skip
        blocked[depth + 1] = blocked[depth]
        blocked[depth] = passed
        depth += 1
        end[depth] = start_of[ideal + 1]
        cursor[depth] = first_later_cover(start_of, node, rank, ideal, v)
        if offered:
            count += 1
            if count == BLOCK or (listed and rows.first[count] > room):
                break
    walk.at[DEPTH] = depth
    return count, steps


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def sent_by(weights, copies, message):  # type: ignore[no-untyped-def]
    """Return the weights whose exchange without latency takes as long as that of a stage with latency."""
    return weights + copies * message if weights > 0.0 else 0.0


@njit(cache=True, inner=True, _nrt=False)
def spread(work, weights, copies, bandwidth, message, added):  # type: ignore[no-untyped-def]
    """Return the mean time for a sample of a stage on `copies` devices, which exchange its weights."""
    exchange = (copies - 1) * sent_by(weights, copies, message) / (copies * bandwidth)
    return work / copies + exchange if added else max(work / copies, exchange)


@njit(cache=True, inner=True, _nrt=False)
def can_spread(work, weights, most, bandwidth, message, added, threshold):  # type: ignore[no-untyped-def]
    """Whether a stage of at least this work and weights can have a load up to the threshold.

    It may have up to `most` devices. If the exchange is added, the load of r devices is a / r + b r + c with
    b = message / bandwidth, which is least near the root of a / b, and monotone without latency; else the
    least number that the work allows is the best one.
    """
    if work <= threshold:
        return most > 0
    if most < 2 or work == np.inf:
        return False
    if added:
        first = most
        if message > 0.0 and weights > 0.0:
            first = int(min(np.sqrt(max(0.0, work * bandwidth - weights) / message), most))
    else:
        first = max(1, int(min(np.ceil(work / threshold), most + 1.0)) - 1) if threshold > 0 else most - 1
    for copies in range(max(1, first), min(most, first + 2) + 1):
        if spread(work, weights, copies, bandwidth, message, added) <= threshold:
            return True
    return False


@njit(cache=True, inner=True, _nrt=False)
def takes(sums, in_flight, versions, memory, size, parameters, activations, workspace):  # type: ignore[no-untyped-def]
    """Whether a stage with one more supernode fits in memory, with this many samples and versions."""
    need = sums[SIZE] + size + versions * (sums[PARAMETERS] + parameters)
    need += in_flight * (sums[ACTIVATIONS] + activations)
    return need + max(sums[WORKSPACE], workspace) <= memory


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def add_sums(sizes, parameters, activations, workspaces, weights, v, sums, depth):  # type: ignore[no-untyped-def]
    """Add the memory and the weights of `v` to those of the stage, and write them at `depth` + 1."""
    sums[depth + 1, SIZE] = sums[depth, SIZE] + sizes[v]
    sums[depth + 1, PARAMETERS] = sums[depth, PARAMETERS] + parameters[v]
    sums[depth + 1, ACTIVATIONS] = sums[depth, ACTIVATIONS] + activations[v]
    sums[depth + 1, WORKSPACE] = max(sums[depth, WORKSPACE], workspaces[v])
    sums[depth + 1, WEIGHTS] = sums[depth, WEIGHTS] + weights[v]


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def add_numbers(limits, touching, layers, v, number, depth):  # type: ignore[no-untyped-def]
    """Add the nodes, pins and new layers of `v`, and whether it has neighbours behind the stage."""
    number[depth + 1, NODES] = number[depth, NODES] + limits.nodes[v]
    number[depth + 1, PINNED] = number[depth, PINNED] + limits.pinned[v]
    number[depth + 1, NEAR] = number[depth, NEAR] + (1 if touching[v] > 0 else 0)
    found = number[depth, LAYERS]
    if limits.by_layers:
        for i in range(limits.layer_start[v], limits.layer_start[v + 1]):
            layer = limits.layer[i]
            layers[layer] += 1
            found += layers[layer] == 1
    number[depth + 1, LAYERS] = found


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def remove_layers(layer_start, layer_of, layers, v, by_layers):  # type: ignore[no-untyped-def]
    """Remove the layers of `v` from those of the stage."""
    if by_layers:
        for i in range(layer_start[v], layer_start[v + 1]):
            layers[layer_of[i]] -= 1


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def add_sure(costs, inside, near, below, upper, v, sure, depth):  # type: ignore[no-untyped-def]
    """Add the transfers of `v` from and to the stage before, and write their costs at `depth` + 1.

    `inside` already counts `v`. `below` is a supernode that the stage before holds, and `near` marks its
    nets. If values are upper bounds, a tensor that leaves counts only if there is no other reader.
    """
    source, into, out = costs.source, sure[depth, IN_BEFORE], sure[depth, OUT_BEFORE]
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        net = costs.net[i]
        if near[net]:
            if inside[net] == 1 and source[net] == below:
                into += costs.enter[net]
            if source[net] == v and (not upper or costs.pins[net] == 2):
                out += costs.leave[net]
    sure[depth + 1, IN_BEFORE], sure[depth + 1, OUT_BEFORE] = into, out


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def sure_after(costs, inside, held, near, above, upper):  # type: ignore[no-untyped-def]
    """Return the costs of transfers from and to the next stage, which holds the supernode `above`.

    `held` says which supernodes the stage holds. What :func:`add_sure` counts is left out.
    """
    source, into, out = costs.source, 0.0, 0.0
    if above == NOWHERE:
        return into, out
    for i in range(costs.net_start[above], costs.net_start[above + 1]):
        net = costs.net[i]
        if inside[net] == 0:
            continue
        if source[net] == above:
            into += costs.enter[net]
        elif held[source[net]] and not near[net] and (not upper or costs.pins[net] == 2):
            out += costs.leave[net]
    return into, out
