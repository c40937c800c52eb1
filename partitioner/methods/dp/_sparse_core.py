"""The compiled list of the stages whose load may keep to a threshold, by the groups of their neighbours."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partitioner.base.compiled import njit, stable_order
from partitioner.methods.bounds.relaxation import SLACK
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.dp._stages_core import DEPTH, LISTED, WEIGHTS, list_stages, new_walk, spread, takes
from partitioner.methods.dp._transfers_core import joint_transfers
from partitioner.problem.arrays import Bools, Floats

SPREAD = 0x9E3779B97F4A7C15 - 2**64  # odd, so that a product with it spreads over the bits
COUNT, IDEAL, CUT = range(3)  # entries of `at`: pipelines in the pool, the ideal to go on with, any left out


class Entry(NamedTuple):
    """A pipeline to be entered in a pool, see :class:`partitioner.methods.dp.sparse_tables.PartialPool`."""

    ideal: int
    last: int
    mask: int | np.signedinteger[Any]
    behind: int
    spare: float
    slack: float
    parent: int
    stage: int


class DevicePrices(NamedTuple):
    """The prices of devices.

    Parameters
    ----------
    price, total
        Shape (K,): the price of a device of each kind; and that of all devices.
    least
        What :func:`least_prices` writes.
    """

    price: Floats
    total: float
    least: Floats


class Neighbours(NamedTuple):
    """Work space for a stage by the groups of its neighbours, and how many of these there are.

    Parameters
    ----------
    froms, goes
        The groups that the stage before and the next one may be in.
    load
        Shape (G, G): its load.
    moved, known
        Shapes (G, G, G, 2) and (G,): costs of its transfers in and out by its own group, and whether they are
        written.
    """

    froms: int
    goes: int
    load: Floats
    moved: Floats
    known: Bools


@njit(cache=True, inner=True)
def hash_of(ideal, last, used):
    """Return the hash of an ideal, the group of the last stage and packed counts, or of columns of each."""
    mixed = (ideal * 64 + last + 1) * SPREAD
    for w in range(len(used)):
        mixed = (mixed ^ (mixed >> 29) ^ used[w]) * SPREAD
    return mixed ^ (mixed >> 31)


@njit(cache=True, inner=True)
def enter(pool, at, width, used, new):
    """Enter a pipeline, unless one with the same devices may go to as many groups; the pool has room."""
    ideal, last, mask, slack = new.ideal, new.last, new.mask, new.slack
    if slack < pool.cutoff[ideal]:
        at[CUT] = 1
        return
    limit = len(pool.slot) - 1
    slot = hash_of(ideal, last, used) & limit
    place = -1
    while pool.slot[slot] >= 0 and place < 0:
        j = pool.slot[slot]
        same = pool.ideal[j] == ideal and pool.last[j] == last
        for w in range(len(used)):
            same = same and pool.used[j, w] == used[w]
        if same and (pool.mask[j] | mask) == pool.mask[j]:
            return
        if same and (pool.mask[j] | mask) == mask:
            place = j
        slot = (slot + 1) & limit
    if place < 0:
        place = at[COUNT]
        at[COUNT] += 1
        pool.slot[slot] = place
        pool.other[place], pool.head[ideal] = pool.head[ideal], place
        pool.members[ideal] += 1
        pool.ideal[place], pool.last[place], pool.behind[place] = ideal, last, new.behind
        for w in range(len(used)):
            pool.used[place, w] = used[w]
    pool.mask[place], pool.spare[place], pool.slack[place] = mask, new.spare, slack
    pool.parent[place], pool.stage[place] = new.parent, new.stage
    if pool.members[ideal] >= pool.check[ideal]:
        raise_cutoff(pool, ideal, width)


@njit(cache=True, inner=True)
def raise_cutoff(pool, ideal, width):
    """Let only the best `width` pipelines of an ideal be kept."""
    slack = np.empty(pool.members[ideal], np.float64)
    j, count = pool.head[ideal], 0
    while j >= 0:
        slack[count] = pool.slack[j]
        count += 1
        j = pool.other[j]
    pool.cutoff[ideal] = slack[stable_order(slack)[count - width]]
    pool.check[ideal] = count + 3 * width


@njit(cache=True, inner=True)
def best_of(pool, ideal, width, guard, exact, rows):
    """List the pipelines of an ideal to extend in `rows`; return how many, and whether others are left out.

    A pipeline is left out without loss if another one has the same last group, uses no more devices of any
    kind and may go to as many groups.
    """
    count, j = 0, pool.head[ideal]
    total = pool.members[ideal]
    every, slack = np.empty(total, np.int64), np.empty(total, np.float64)
    while j >= 0:
        if pool.slack[j] >= pool.cutoff[ideal]:
            every[count], slack[count] = j, -pool.slack[j]
            count += 1
        j = pool.other[j]
    order = stable_order(slack[:count])
    kept, words = 0, len(guard)
    for i in order:
        j = every[i]
        dominated = False
        for other in range(kept if not exact else 0):
            a = rows[other]
            if pool.last[a] != pool.last[j] or (pool.mask[a] | pool.mask[j]) != pool.mask[a]:
                continue
            fewer = True
            for w in range(words):
                fewer = fewer and (((pool.used[j, w] | guard[w]) - pool.used[a, w]) & guard[w]) == guard[w]
            if fewer:
                dominated = True
                break
        if dominated:
            continue
        if kept == width:
            return kept, True
        rows[kept] = j
        kept += 1
    return kept, False


@njit(cache=True, nogil=True)
def enter_rows(hashes, slots):
    """Enter rows by their hashes, one after another, in the slots of a hash table, which are empty."""
    mask = len(slots) - 1
    for row in range(len(hashes)):
        slot = hashes[row] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


DONE, PAUSED, FULL = range(3)


@njit(cache=True, nogil=True)
def extend(stages, counts, prices, pool, at, width, budget):
    """Extend pipelines ideal by ideal, from the one in `at` on.

    Parameters
    ----------
    stages, counts
        The list of stages, and how devices are counted.
    prices
        The prices of devices, and what pipelines still need.
    pool, at
        The pool, which is written, and the state of the search.
    width
        How many pipelines of each ideal are extended.
    budget
        Return after the ideal at which this many pipelines have been tried.

    Returns
    -------
    int
        DONE: the full ideal is reached; PAUSED; or FULL: the pool must grow.
    """
    price, total, least = prices.price, prices.total, prices.least
    last = least.shape[0] - 1
    kinds, words = len(price), len(counts.guard)
    rows = np.empty(width, np.int64)
    used = np.empty(words, np.int64)
    counted = counts.most[kinds] > 0
    steps = 0
    while at[IDEAL] < last:
        if steps > budget:
            return PAUSED
        ideal = at[IDEAL]
        ahead = stages.first[ideal + 1] - stages.first[ideal]
        if pool.head[ideal] < 0 or ahead == 0:
            at[IDEAL] += 1
            continue
        kept, more = best_of(pool, ideal, width, counts.guard, counts.exact, rows)
        at[CUT] |= more
        steps += pool.members[ideal] + kept * ahead
        for i in range(kept):
            j = rows[i]
            p = pool.last[j]
            if at[COUNT] + ahead > len(pool.mask):
                return FULL  # what is entered again does no harm
            if (
                counted
                and ((pool.used[j, counts.word[kinds]] >> counts.shift[kinds]) & counts.bits[kinds])
                == counts.most[kinds]
            ):
                continue
            for e in range(stages.first[ideal], stages.first[ideal + 1]):
                k, to = stages.kind[e], stages.to[e]
                here, copies = stages.group[e], stages.copies[e]
                if not (pool.mask[j] >> here) & 1 or pool.behind[j] > stages.behind[e]:
                    continue
                have = (pool.used[j, counts.word[k]] >> counts.shift[k]) & counts.bits[k]
                if have + copies > counts.most[k]:
                    continue
                spare = pool.spare[j] - copies * price[k]
                mask, slack = np.int64(0), -np.inf
                bits, q = stages.mask[e, p], 0
                while bits:
                    if bits & 1 and least[to, here, q] <= spare + SLACK * total:
                        mask |= np.int64(1) << q
                        slack = max(slack, spare - least[to, here, q])
                    bits >>= 1
                    q += 1
                if mask == 0:
                    continue
                for w in range(words):
                    used[w] = pool.used[j, w]
                used[counts.word[k]] += np.int64(copies) << counts.shift[k]
                if counted:
                    used[counts.word[kinds]] += np.int64(1) << counts.shift[kinds]
                behind = pool.behind[j] + copies
                enter(pool, at, width, used, Entry(to, here, mask, behind, spare, slack, j, e))
        at[IDEAL] += 1
    return DONE


@njit(cache=True, nogil=True)
def least_prices(stages, price, least):
    """Write the least price of the devices that complete a pipeline.

    Parameters
    ----------
    stages
        The list of stages.
    price
        Shape (K,): the price of a device of each kind.
    least
        Shape (I, G, G): by ideal, group of the last stage and group of the next one; it is written. Infinity
        if no listed stages complete a pipeline.
    """
    ideals, groups = least.shape[0], least.shape[1]
    last = ideals - 1
    least[:] = np.inf
    least[last] = 0.0
    for start in range(last - 1, -1, -1):
        froms = 1 if start == 0 else groups
        for e in range(stages.first[start], stages.first[start + 1]):
            k, ideal = stages.kind[e], stages.to[e]
            here, cost = stages.group[e], stages.copies[e] * price[k]
            for p in range(froms):
                best, bits, q = np.inf, stages.mask[e, p], 0
                while bits:
                    if bits & 1:
                        best = min(best, least[ideal, here, q])
                    bits >>= 1
                    q += 1
                if cost + best < least[start, p, here]:
                    least[start, p, here] = cost + best


@njit(cache=True, nogil=True)
def follow_prices(stages, price, least, chosen):
    """Write the stages of a cheapest pipeline to `chosen`; return how many there are."""
    last, groups = least.shape[0] - 1, least.shape[1]
    at, p, count = 0, 0, 0
    mask = np.int64((1 << groups) - 1)
    while at < last:
        goal, next_group = np.inf, 0
        for q in range(groups):
            if (mask >> q) & 1 and least[at, p, q] < goal:
                goal, next_group = least[at, p, q], q
        found = -1
        for e in range(stages.first[at], stages.first[at + 1]):
            k, ideal = stages.kind[e], stages.to[e]
            if stages.group[e] != next_group or found >= 0:
                continue
            best, bits, q = np.inf, stages.mask[e, p], 0
            while bits:
                if bits & 1:
                    best = min(best, least[ideal, next_group, q])
                bits >>= 1
                q += 1
            if stages.copies[e] * price[k] + best <= goal:
                found = e
        chosen[count] = found
        count += 1
        mask = stages.mask[found, p]
        at, p = stages.to[found], next_group
    return count


LOADS_A_STEP = 8  # a step takes about as long as this number of loads


@njit(cache=True, nogil=True)
def list_within(lattice, model, demand, target, found, first, last, budget):
    """List the stages that begin at ideals `first`, `first` + 1, ... up to `last` - 1.

    Parameters
    ----------
    lattice, model, demand, target
        See :func:`partitioner.methods.dp._stages_core.list_stages`.
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
    ends, memory_model, layer_of = model.ends, model.memory, model.limits.layer
    kinds, groups = len(memory_model.memory), len(ends.link)
    layers = layer_of.max() + 1 if len(layer_of) else 0
    walk, rows = new_walk(len(memory_model.size), kinds, len(model.costs.pins), layers, ends.listed)
    load = np.empty((groups, groups), np.float64)
    moved = np.empty((ends.real, groups, groups, 2), np.float64)  # in and out, by the group of the stage
    known = np.empty(ends.real, np.bool_)
    steps = 0
    for start in range(first, last):
        if steps > budget:
            return start, False
        count = found.first[start]
        more = True
        while more:
            listed, walked = list_stages(lattice, model, demand, start, target, walk, rows)
            more = walk.at[DEPTH] != LISTED
            steps += walked
            for i in range(listed):
                known[:] = False
                goes = 1 if rows.to[i] == last else groups
                near = Neighbours(1 if start == 0 else groups, goes, load, moved, known)
                count, some = _add_stage(model, demand, rows, i, near, found, count)
                if count < 0:
                    return start, True
                steps += some
        found.first[start + 1] = count
    return last, False


@njit(cache=True, inner=True, _nrt=False)
def _add_stage(model, demand, rows, i, near, found, count):
    """Write listed stage `i` on every kind and number of devices; return the new count, and the steps taken.

    The count is -1 if there is no room.
    """
    froms, goes, load, moved, known = near.froms, near.goes, near.load, near.moved, near.known
    costs, ends, memory_model = model.costs, model.ends, model.memory
    threshold, widest, communication = demand.threshold, demand.widest, costs.communication
    in_flight, versions, memory = memory_model.in_flight, memory_model.versions, memory_model.memory
    most_behind, sum_of, steps = len(in_flight) - 1, rows.sums[i], 0
    crossing = rows.crossing[rows.first[i] : rows.first[i + 1]]
    for k in range(len(memory)):
        if rows.load[i, k] == np.inf:
            continue
        here, factor = ends.group[k], costs.transfer_factor[k]
        if not known[here]:
            steps += froms * goes * len(crossing) // LOADS_A_STEP
            joint_transfers(crossing, ends, here, froms, goes, moved[here])
            known[here] = True
        for p in range(froms):
            for q in range(goes):
                load[p, q] = rows.busy[i, k]
                if factor > 0.0:
                    load[p, q] = joint_load(
                        rows.busy[i, k], factor * moved[here, p, q, 0], factor * moved[here, p, q, 1],
                        communication,
                    )  # fmt: skip
        for r in range(max(1, rows.pinned[i]), widest[k] + 1):
            behind = -1
            while behind < most_behind and takes(
                sum_of, in_flight[behind + 1, r], versions[behind + 1, r], memory[k], 0.0, 0.0, 0.0, 0.0
            ):
                behind = behind + 1 if memory_model.staged else most_behind
            if count == len(found.to):
                return -1, steps
            some = 0
            for p in range(froms):
                bits = 0
                for q in range(goes):
                    spread_load = spread(
                        load[p, q], sum_of[WEIGHTS], r, costs.bandwidth[k], costs.message[k], costs.added
                    )
                    if spread_load <= threshold:
                        bits |= 1 << q
                found.mask[count, p] = bits
                some |= bits
            if some and behind >= 0:
                found.to[count], found.kind[count] = rows.to[i], k
                found.copies[count], found.behind[count] = r, behind
                found.group[count] = here + ends.real * (rows.length[i] <= ends.window)
                count += 1
    return count, steps
