"""The compiled search: the best state of each number of stages in turn is extended by one stage.

The stages of a state are enumerated depth first. Candidates are taken in one order, and those that become
ready are put at the end, so that every set of supernodes is met once. A stage counts if its load keeps to
the threshold, the rest may still fit the devices that are left, and it cannot take one more supernode
without harm to other stages. States are in skew heaps in two arrays: the states below each one.

The walk of :mod:`partitioner.methods.dp._walk_core` follows the covers of a lattice, which is what does not
fit in memory here: so this one keeps the supernodes that are ready instead.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp._transfers_core import add_nets, remove_nets
from partitioner.methods.dp.lattice import Ints32
from partitioner.problem.arrays import Floats, Ints


@njit(cache=True, inner=True)
def slot_of(pool, key, ideal):
    """Return the slot of the states with this ideal, shape (W,), or the empty slot where they belong."""
    mask = len(pool.slot) - 1
    place = np.int64(key & np.uint64(mask))
    while True:
        state = pool.slot[place]
        if state < 0:
            return place
        if pool.key[state] == key:
            same = True
            for w in range(len(ideal)):
                if pool.ideal[state, w] != ideal[w]:
                    same = False
                    break
            if same:
                return place
        place = (place + 1) & mask


@njit(cache=True, inner=True)
def dominated(pool, left, first, used):
    """Whether one of the states alike, from `first` on, leaves no fewer devices of any kind than `used`."""
    state = first
    while state >= 0:
        mine = pool.used[state]
        no_fewer = True
        for k in range(left.shape[1]):
            if left[mine, k] < left[used, k]:
                no_fewer = False
                break
        if no_fewer:
            return True
        state = pool.alike[state]
    return False


@njit(cache=True, nogil=True)
def fill_slots(pool, count):
    """Enter the first `count` states in the slots, which are empty."""
    for state in range(count):
        place = slot_of(pool, pool.key[state], pool.ideal[state])
        pool.alike[state] = pool.slot[place]
        pool.slot[place] = state


Words = NDArray[np.uint64]
Ints16 = NDArray[np.int16]


class SearchGraph(NamedTuple):
    """The precedence in the direction of the search, of n supernodes.

    Parameters
    ----------
    after_start, after
        Rows over supernodes: those that directly follow each in this direction.
    before
        Shape (n,): how many supernodes directly precede each.
    order
        Shape (n,): all supernodes, those first that a stage takes first.
    hash
        Shape (n,): a random word for each supernode; the key of an ideal is the exclusive or of its words.
    """

    after_start: Ints
    after: Ints
    before: Ints
    order: Ints
    hash: Words


class Demand(NamedTuple):
    """What decides whether the rest of a graph can still fit the devices that are left, at one threshold.

    Parameters
    ----------
    threshold
        No load may exceed this.
    weight, capacity
        Shapes (B, n) and (B, S): B additive bounds; the supernodes outside an ideal must not weigh more than
        the capacity of the devices that a state leaves.
    toll
        Weight in the first bound that a net adds for each unit of its cost if it has supernodes both inside
        and outside the ideal.
    left, following
        Shapes (S, K): devices of each kind that a state leaves; the state with one more device of a kind in
        use, -1 if none is left.
    growth
        Shape (K, n): by how much a supernode may raise the load of a stage that takes it; infinity if that
        may raise the load of another stage, see :func:`partitioner.methods.dp.chain.growth_of`.
    """

    threshold: float
    weight: Floats
    capacity: Floats
    toll: float
    left: Ints
    following: Ints
    growth: Floats


class Pool(NamedTuple):
    """The states found so far, room for P of them; a state is an ideal and the devices in use.

    Parameters
    ----------
    ideal
        Shape (P, W): the supernodes of the ideal as bits.
    key
        Shape (P,): the key of the ideal.
    used, kind, parent
        Shape (P,): the vector of devices in use, the kind of the last stage, and the state before it.
    priority
        Shape (P,): the least is expanded first among states with equally many stages.
    one, other
        Shape (P,): the two heaps below a state in the heap of its number of stages, -1 if empty.
    alike
        Shape (P,): another state with the same ideal, or -1.
    slot
        Shape (a power of two,): a state for each hash value, or -1.
    top
        Shape (most stages + 1,): the state on top of the heap of each number of stages, or -1.
    """

    ideal: Words
    key: Words
    used: Ints32
    kind: Ints16
    parent: Ints32
    priority: Floats
    one: Ints32
    other: Ints32
    alike: Ints32
    slot: Ints32
    top: Ints32


class Expansion(NamedTuple):
    """Work space for expanding one state; E nets, K kinds.

    Parameters
    ----------
    placed, missing
        Shape (n,): whether a supernode is in the ideal or the stage; how many that precede it are not.
    candidate
        Shape (n,): the supernodes that can follow, in the order in which the stage takes them.
    position, ready
        Shape (n + 2,): at each depth, the next candidate, and how many candidates there are.
    before, inside
        Shape (E,): pins of each net in the ideal, and in the stage.
    compute, size, transfer, weight
        Shapes (n + 2, K), (n + 2,), (n + 2, 3), (n + 2, B): of the stage at each depth; `transfer` as in
        :mod:`partitioner.methods.dp._chain_core`.
    key
        Shape (n + 2,): the key of the ideal with the stage at each depth.
    """

    placed: NDArray[np.bool_]
    missing: Ints
    candidate: Ints
    position: Ints
    ready: Ints
    before: Ints
    inside: Ints
    compute: Floats
    size: Floats
    transfer: Floats
    weight: Floats
    key: Words


@njit(cache=True, inner=True)
def meld(one, other, priority, a, b):
    """Return the top of the heap that holds all states of the heaps with tops `a` and `b`; -1 if empty."""
    if a < 0 or b < 0:
        return max(a, b)
    if priority[b] < priority[a]:
        a, b = b, a
    top = a
    while True:
        rest = other[a]
        other[a] = one[a]
        if rest < 0:
            one[a] = b
            return top
        if priority[b] < priority[rest]:
            rest, b = b, rest
        one[a] = rest
        a = rest


EXHAUSTED, PAUSED, FOUND, FULL = range(4)
ENTERED = 16  # supernodes that take about as long as a step when a state is entered
COUNT, LEVEL, STEPS, EXPANDED, CUT_SHORT, LAST = range(6)  # places in `at`


@njit(cache=True, nogil=True)
def search(graph, model, demand, pool, work, at, limits):
    """Expand states until one holds every supernode, none is left, or a limit is reached.

    Parameters
    ----------
    graph, model, demand, pool, work
        See :mod:`partitioner.methods.dp._anytime_core`, and :mod:`partitioner.methods.dp.chain`.
    at
        Shape (6,): number of states, level to continue with, steps, states expanded, how many of these were
        cut short, and the state that holds everything.
    limits
        Shape (4,): steps at which to pause; steps and stages for one state; room that the pool must have.

    Returns
    -------
    int
        EXHAUSTED, PAUSED, FOUND, or FULL if the pool must grow.
    """
    levels, empty = len(pool.top) - 1, 0
    while empty < levels:
        if at[STEPS] >= limits[0]:
            return PAUSED
        if at[COUNT] + limits[3] > len(pool.key):
            return FULL
        level = at[LEVEL]
        at[LEVEL] = (level + 1) % levels
        if pool.top[level] < 0:
            empty += 1
            continue
        empty = 0
        state = pool.top[level]  # the one of least priority, which leaves the heap of the level
        pool.top[level] = meld(pool.one, pool.other, pool.priority, pool.one[state], pool.other[state])
        at[EXPANDED] += 1
        at[STEPS] += 1 + len(graph.order) // ENTERED
        _enter(graph, model, demand, pool, work, state)
        if _stages(graph, model, demand, pool, work, at, limits, (state, level)):
            return FOUND
    return EXHAUSTED


@njit(cache=True, inner=True)
def _enter(graph, model, demand, pool, work, state):
    """Prepare the work space for the stages that start at a state."""
    n = len(graph.order)
    work.before[:] = 0
    overwrite(work.missing, graph.before)
    work.weight[0, :] = 0.0
    for v in range(n):
        bit = (pool.ideal[state, v >> 6] >> np.uint64(v & 63)) & np.uint64(1)
        work.placed[v] = bit == 1
        if work.placed[v]:
            for e in range(graph.after_start[v], graph.after_start[v + 1]):
                work.missing[graph.after[e]] -= 1
            for i in range(model.net_start[v], model.net_start[v + 1]):
                work.before[model.net[i]] += 1
        else:
            for b in range(len(demand.weight)):
                work.weight[0, b] += demand.weight[b, v]
    crossing = 0.0
    for net in range(len(work.before)):
        if 0 < work.before[net] < model.pins[net]:
            crossing += model.cost[net]
    work.weight[0, 0] += demand.toll * crossing
    count = 0
    for i in range(n):
        v = graph.order[i]
        if work.missing[v] == 0 and not work.placed[v]:
            work.candidate[count] = v
            count += 1
    work.ready[0], work.position[0] = count, 0
    work.compute[0, :] = 0.0
    work.size[0] = 0.0
    work.transfer[0, :] = 0.0
    work.key[0] = pool.key[state]


@njit(cache=True, inner=True)
def _stages(graph, model, demand, pool, work, at, limits, place):
    """Enumerate the stages that start at a state; return whether one completes the chain.

    Helpers that are called for every step are inlined, because passing tuples of arrays
    takes more time than they do.
    """
    state = place[0]
    after_start, after, hashes = graph.after_start, graph.after, graph.hash
    net_start, net_of, pins, cost = model.net_start, model.net, model.pins, model.cost
    times, sizes, memory = model.work, model.size, model.memory
    factor, communication = model.transfer_factor, model.communication
    threshold, toll, growth = demand.threshold, demand.toll, demand.growth
    weights, capacity, following = demand.weight, demand.capacity, demand.following[pool.used[state]]
    placed, missing, candidate, before = work.placed, work.missing, work.candidate, work.before
    inside, position, ready, key = work.inside, work.position, work.ready, work.key
    compute, size, transfer, rest = work.compute, work.size, work.transfer, work.weight
    kinds, bounds = len(memory), len(weights)
    most = min(limits[2], len(pool.key) - at[COUNT] - kinds + 1)  # stages that there is room for
    depth, steps, found, full = 0, 0, 0, False
    while depth >= 0:
        i = position[depth]
        if i >= ready[depth] or steps >= limits[1] or found >= most:
            full = full or i < ready[depth]
            # all stages with these supernodes have been met: take the last one out again
            depth -= 1
            if depth >= 0:
                v = candidate[position[depth] - 1]
                remove_nets(model, inside, v)
                placed[v] = False
                for e in range(after_start[v], after_start[v + 1]):
                    missing[after[e]] += 1
            continue
        position[depth] = i + 1
        v = candidate[i]
        steps += 1
        add_nets(model, cost, cost, before, inside, v, transfer, depth)
        size[depth + 1] = size[depth] + sizes[v]
        # the stage with the next candidate; it is not followed if no device left can run it or a larger one
        possible = False
        for k in range(kinds):
            compute[depth + 1, k] = compute[depth, k] + times[k, v]
            if following[k] >= 0 and size[depth + 1] <= memory[k]:
                _, least = growing_load(
                    compute[depth + 1, k],
                    transfer[depth + 1, 0], transfer[depth + 1, 1], transfer[depth + 1, 2],
                    factor[k], communication,
                )  # fmt: skip
                possible = possible or least <= threshold
        if not possible:
            remove_nets(model, inside, v)
            continue
        depth += 1
        placed[v] = True
        # the ideal with the stage: its hash, and by each bound what the devices left must take of the rest
        key[depth] = key[depth - 1] ^ hashes[v]
        for b in range(bounds):
            rest[depth, b] = rest[depth - 1, b] - weights[b, v]
        if toll > 0:
            for e in range(net_start[v], net_start[v + 1]):
                net = net_of[e]
                held = before[net] + inside[net]
                if held == 1 and pins[net] > 1:
                    rest[depth, 0] += toll * cost[net]
                elif held == pins[net] and held > 1:
                    rest[depth, 0] -= toll * cost[net]
        # candidates that wait for no other supernode any more come after those of the smaller stage
        ready[depth], position[depth] = ready[depth - 1], i + 1
        for e in range(after_start[v], after_start[v + 1]):
            missing[after[e]] -= 1
            if missing[after[e]] == 0:
                candidate[ready[depth]] = after[e]
                ready[depth] += 1
        for k in range(kinds):
            # a state after this stage is entered if its devices can take the rest and it is maximal
            used = following[k]
            if used < 0 or size[depth] > memory[k]:
                continue
            fits = True
            for b in range(bounds):
                fits = fits and rest[depth, b] <= capacity[b, used]
            if not fits:
                continue
            load, _ = growing_load(
                compute[depth, k], transfer[depth, 0], transfer[depth, 1], transfer[depth, 2],
                factor[k], communication,
            )  # fmt: skip
            if load > threshold:
                continue
            larger = False  # whether the stage can take another candidate without harm to any stage
            for c in range(ready[depth]):
                w = candidate[c]
                if not placed[w] and load + growth[k, w] <= threshold and size[depth] + sizes[w] <= memory[k]:
                    larger = True
                    break
            if not larger:
                found += _remember(demand, pool, work, at, place, depth, k, used)
        if at[LAST] >= 0:
            at[STEPS] += steps
            return True
    at[STEPS] += steps
    at[CUT_SHORT] += full
    return False


@njit(cache=True, inner=True)
def _remember(demand, pool, work, at, place, depth, k, used):
    """Enter the state after the stage, unless a state with the same ideal leaves as many devices."""
    state, level = place
    new = at[COUNT]
    overwrite(pool.ideal[new], pool.ideal[state])
    for d in range(depth):
        v = work.candidate[work.position[d] - 1]
        pool.ideal[new, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
    key = work.key[depth]
    slot = slot_of(pool, key, pool.ideal[new])
    if dominated(pool, demand.left, pool.slot[slot], used):
        return 0
    pool.key[new], pool.used[new], pool.kind[new], pool.parent[new] = key, used, k, state
    pool.alike[new], pool.slot[slot] = pool.slot[slot], new
    pool.one[new] = pool.other[new] = -1
    pool.priority[new] = work.weight[depth, 0]
    at[COUNT] = new + 1
    if work.ready[depth] == depth:  # no candidate is left
        at[LAST] = new
    elif level + 2 < len(pool.top):
        pool.top[level + 1] = meld(pool.one, pool.other, pool.priority, pool.top[level + 1], new)
    return 1
