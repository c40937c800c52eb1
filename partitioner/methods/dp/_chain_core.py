"""The compiled walk up the lattice that fills the table of the dynamic program.

``value[I, c]`` is the smallest largest load of a chain that covers ideal I with c devices, c a vector
of counts by kind in mixed radix. From every ideal the walk adds one supernode at a time, and so meets
every larger ideal once and knows the load of the difference.

The helpers are inlined, because passing a tuple of arrays to a compiled function takes more time than the
function itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp.lattice import first_later_cover, relocate
from partitioner.problem.arrays import Bools, Floats, Ints


class ChainMoves(NamedTuple):
    """Room for the useful moves (kind, next state) from an ideal: M moves at most.

    Parameters
    ----------
    reached
        Shape (S,): the smallest load with which fewer devices reach the ideal.
    move, least
        Shapes (M, 2) and (M,): kind and next state, and the largest load of the chain before the move.
    useful
        Shape (K,): whether a move is to a device of the kind.
    """

    reached: Floats
    move: Ints
    least: Floats
    useful: Bools


@njit(cache=True)
def sweep(lattice, model, search, table, first, budget):  # type: ignore[no-untyped-def]
    """Extend the chains that end in ideals `first`, `first` + 1, ... by one stage.

    Parameters
    ----------
    lattice, model, search, table
        See :mod:`partitioner.methods.dp.lattice` and :mod:`partitioner.methods.dp.chain`; the table is
        written.
    first
        The ideal to start with.
    budget
        Return after the ideal at which this many steps have been walked.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals when done), and the steps walked.
    """
    start_of, node, to, rank = lattice.start, lattice.node, lattice.to, lattice.rank
    parent, added = lattice.parent, lattice.added
    work, sizes, memory = model.work, model.size, model.memory
    transfer_factor, communication = model.transfer_factor, model.communication
    threshold, capacity = search.threshold, search.capacity
    remaining, above = search.remaining, search.above
    growth, easiest = search.growth, search.easiest
    value, origin, kind = table.value, table.origin, table.kind
    ideals, nodes, kinds = len(parent), len(sizes), len(memory)
    move, least = np.empty((len(capacity) * kinds, 2), np.int64), np.empty(len(capacity) * kinds)
    useful = np.empty(kinds, np.bool_)
    moves = ChainMoves(np.empty(len(capacity)), move, least, useful)
    load = np.empty(kinds, np.float64)
    cursor = np.empty(nodes + 2, np.int64)
    end = np.empty(nodes + 2, np.int64)
    blocked = np.empty(nodes + 2, np.float64)
    compute = np.zeros((nodes + 2, kinds), np.float64)
    size = np.zeros(nodes + 2, np.float64)
    transfer = np.zeros((nodes + 2, 3), np.float64)  # in, out, and nets that stay cut
    inside = np.zeros(len(model.pins), np.int64)
    before = np.zeros(len(model.pins), np.int64)  # pins inside the ideal `place`
    place, steps = 0, 0
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        count, target = list_moves(value[start], search, moves)
        if count == 0:
            continue
        relocate(parent, added, model.net_start, model.net, before, place, start)
        place = start
        depth = 0
        cursor[0], end[0], blocked[0] = start_of[start], start_of[start + 1], 0.0
        while depth >= 0:
            e = cursor[depth]
            if e == end[depth] or blocked[depth] > target:
                # all stages with these supernodes have been read: take the last one out again
                depth -= 1
                if depth >= 0:
                    take_from_stage(model, inside, node[cursor[depth] - 1])
                continue
            cursor[depth] = e + 1
            v, ideal = node[e], to[e]
            steps += 1
            add_to_stage(model, before, inside, v, depth, transfer)
            size[depth + 1] = size[depth] + sizes[v]
            # a stage that no kind can run within the threshold can do so with no further supernode
            possible = False
            for k in range(kinds):
                compute[depth + 1, k] = compute[depth, k] + work[k, v]
                load[k], bound = growing_load(
                    compute[depth + 1, k],
                    transfer[depth + 1, 0], transfer[depth + 1, 1], transfer[depth + 1, 2],
                    transfer_factor[k], communication,
                )  # fmt: skip
                if size[depth + 1] > memory[k]:
                    load[k] = np.inf
                elif useful[k] and bound <= threshold:
                    possible = True
            passed = max(blocked[depth], above[v])
            if not possible:
                take_from_stage(model, inside, v)
                blocked[depth] = passed
                continue
            if remaining[ideal] <= target:
                # a stage is left out if it can take one more supernode without a larger load of any later
                # stage, and without a load above the least of its chain: it is at most `room` then
                for k in range(kinds):
                    easy = easiest[k, ideal]
                    fits = easy >= 0 and size[depth + 1] + sizes[easy] <= memory[k]
                    room = load[k] + growth[k, easy] if fits else np.inf
                    for m in range(count if load[k] <= threshold else 0):
                        t = move[m, 1]
                        if move[m, 0] == k and remaining[ideal] <= capacity[t] and room > least[m]:
                            largest = max(least[m], load[k])
                            if largest < value[ideal, t]:
                                value[ideal, t] = largest
                                origin[ideal, t] = start
                                kind[ideal, t] = k
            blocked[depth + 1] = blocked[depth]
            blocked[depth] = passed
            depth += 1
            end[depth] = start_of[ideal + 1]
            cursor[depth] = first_later_cover(start_of, node, rank, ideal, v)
    return ideals, steps


@njit(cache=True, inline="always")
def list_moves(value, search, moves):  # type: ignore[no-untyped-def]
    """List the useful moves from an ideal of these values.

    A state is useless if another one reaches the same ideal with fewer devices and no larger load, or no
    load above the floor. Returned are the number of moves, and the largest weight that they may leave.
    """
    following, reached, useful = search.following, moves.reached, moves.useful
    states, kinds = following.shape
    count, target = 0, -1.0
    useful[:] = False
    reached[:] = np.inf  # smallest load with which fewer devices reach the ideal
    for s in range(states):
        mine = max(value[s], search.floor)
        worthy = mine <= search.threshold and reached[s] > mine
        for k in range(kinds):
            t = following[s, k]
            if t >= 0:
                reached[t] = min(reached[t], min(reached[s], mine))
                if worthy:
                    moves.move[count, 0], moves.move[count, 1] = k, t
                    moves.least[count] = mine
                    count += 1
                    useful[k] = True
                    target = max(target, search.capacity[t])
    return count, target


@njit(cache=True, inline="always")
def add_to_stage(model, before, inside, v, depth, transfer):  # type: ignore[no-untyped-def]
    """Add `v` to the stage and write the transfers of the stage at `depth` + 1."""
    net_of, pins, cost, source = model.net, model.pins, model.cost, model.source
    into, out, stay = transfer[depth, 0], transfer[depth, 1], transfer[depth, 2]
    for i in range(model.net_start[v], model.net_start[v + 1]):
        net = net_of[i]
        inside[net] += 1
        if inside[net] == 1:
            if source[net] == v:
                out += cost[net]
            else:
                into += cost[net]
            if before[net] > 0:
                stay += cost[net]
        elif source[net] == v:
            into -= cost[net]
            out += cost[net]
        if inside[net] == pins[net]:
            out -= cost[net]
    transfer[depth + 1, 0], transfer[depth + 1, 1], transfer[depth + 1, 2] = into, out, stay


@njit(cache=True, inline="always")
def take_from_stage(model, inside, v):  # type: ignore[no-untyped-def]
    """Take `v` from the stage again."""
    for i in range(model.net_start[v], model.net_start[v + 1]):
        inside[model.net[i]] -= 1
