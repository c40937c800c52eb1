"""The compiled step of the search: partial chains grow by one supernode, in the open stage or a new one."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.bounds.relaxation import SLACK
from partitioner.methods.communication_kernel import SEQUENTIAL, growing_load
from partitioner.methods.dp._sparse_core import SPREAD
from partitioner.problem.arrays import Bools, Floats, Ints

BITS = 60  # supernodes in each word of a set
FIGURES = 9  # columns of `PartialChains.real`
BUSY, SIZE, INTO, OUT, STAY, REST, SPARE, SHARE, OUTSIDE = range(FIGURES)


class PartialChains(NamedTuple):
    """Partial chains of equally many supernodes, one a row: K kinds, sets in W words of 60 bits.

    A partial chain ends in a stage that may still grow, the open one.

    Parameters
    ----------
    held
        Shape (C, 3 W): the supernodes of the chain; those that can follow; those of its closed stages.
    used
        Shape (C, K): how many devices of each kind are used, with that of the open stage.
    kind
        Shape (C,): that of the open stage; -1 for the empty chain.
    real
        Shape (C, 9): of the open stage processing time, memory, transfers in, out and of nets that stay
        cut; the weight of all other supernodes; the capacity of the devices that are not used; the shares of
        the open stage and of all supernodes outside of the chain.
    key
        Shape (C, 3): hashes of the supernodes, of those of the closed stages, and of all that is compared.
    score
        Shape (C,): the weight of the rest as a fraction of the capacity that is left.
    parent, node, opened
        Shape (C,): the partial chain that was extended, by which supernode, and whether in a new stage.
    """

    held: Ints
    used: NDArray[np.int16]
    kind: NDArray[np.int16]
    real: Floats
    key: Ints
    score: Floats
    parent: NDArray[np.int32]
    node: NDArray[np.int32]
    opened: Bools

    @property
    def room(self) -> int:
        """How many partial chains the arrays hold."""
        return len(self.kind)

    def best(self, count: int, most: int) -> PartialChains:
        """Return copies of the first `count` rows, or of the `most` ones of least score among these."""
        kept: Ints | slice = slice(count)
        if count > most:
            kept = np.argpartition(self.score[:count], most)[:most]
        return PartialChains._make(array[kept].copy() for array in self)

    def grown(self) -> PartialChains:
        """Return the rows in arrays of twice the room."""
        return PartialChains._make(np.concatenate((array, np.empty_like(array))) for array in self)


class Network(NamedTuple):
    """Supernodes and nets: most fields are as in ``StageModel`` and ``Problem``.

    Parameters
    ----------
    most
        Shape (K,): how many devices of each kind there are.
    before_start, before, after_start, after, pin_start, pin
        Rows over supernodes, what comes before and after each; and rows over nets, the pins of each.
    growth
        Shape (K, n): as in ``ChainSearchSpec``.
    code
        Shape (n,): random numbers, whose exclusive or is the hash of a set.
    """

    work: Floats
    size: Floats
    memory: Floats
    transfer_factor: Floats
    communication: int
    most: Ints
    before_start: Ints
    before: Ints
    after_start: Ints
    after: Ints
    net_start: Ints
    net: Ints
    pin_start: Ints
    pin: Ints
    source: Ints
    growth: Floats
    code: Ints


class Threshold(NamedTuple):
    """What one search is given: the largest load of a stage and the bounds that follow from it.

    Parameters
    ----------
    load
        Only stages of at most this load count.
    cost
        Shape (nets,): the cost of each net, clipped to twice the threshold.
    rows
        Whether there is a row of prices for every set of kinds; else there is one for all.
    time_price, memory_price, capacity
        Shape (rows, K): the prices, and what a device can take at the threshold.
    weight
        Shape (rows, n): the least cost of each supernode on any kind of the set.
    share, most_share
        Shapes (n,) and (K,): further weights of supernodes, and the most that a stage of each kind can hold
        of these; zeros where none are known.
    """

    load: float
    cost: Floats
    rows: bool
    time_price: Floats
    memory_price: Floats
    capacity: Floats
    weight: Floats
    share: Floats
    most_share: Floats


@njit(cache=True, inner=True)
def is_new(held, used, key, i, words, closed):
    """Whether no chain of the same supernodes and devices is in table `closed`; chain `i` is entered then."""
    mask = len(closed) - 1
    mixed = key[i, 0] * SPREAD
    for other in range(used.shape[1]):
        mixed = (mixed ^ (mixed >> 29) ^ used[i, other]) * SPREAD
    slot = (mixed ^ (mixed >> 31)) & mask
    while closed[slot] >= 0:
        j = closed[slot]
        same = key[j, 0] == key[i, 0]
        for other in range(used.shape[1]):
            same = same and used[j, other] == used[i, other]
        for word in range(words):
            same = same and held[j, word] == held[i, word]
        if same:
            return False
        slot = (slot + 1) & mask
    closed[slot] = i
    return True


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def find_place(new, sets, uses, k, figures, mixed, slots, count):
    """Return the row to write a chain to: that of a chain that it dominates, or `count`; -1 if dominated.

    `sets`, `uses`, `k`, `figures` and `mixed` are what the columns `held`, `used`, `kind`, `real` and the
    last one of `key` say of the chains that are `new`.

    Chains are compared if they have the same supernodes, devices and kind of the last stage, and if that kind
    pays for transfers, the same last stage. Then the one with less time and memory dominates.
    """
    mask, place = len(slots) - 1, count
    slot = mixed & mask
    while slots[slot] >= 0:
        j = slots[slot]
        slot = (slot + 1) & mask
        same = new.key[j, 2] == mixed and new.kind[j] == k
        if same:
            for each in range(len(sets)):
                same = same and new.held[j, each] == sets[each]
            for other in range(len(uses)):
                same = same and new.used[j, other] == uses[other]
        if same:
            if new.real[j, BUSY] <= figures[BUSY] and new.real[j, SIZE] <= figures[SIZE]:
                place = -1
                break
            if new.real[j, BUSY] >= figures[BUSY] and new.real[j, SIZE] >= figures[SIZE]:
                place = j
                break
    if place == count:
        slots[slot] = count
    return place


@njit(cache=True, inner=True)
def list_ready(held, i, words, ready):
    """List the supernodes that can follow chain `i`; return how many there are."""
    found = 0
    for word in range(words):
        left, v = held[i, words + word], word * BITS
        while left:
            if left & 1:
                ready[found] = v
                found += 1
            left >>= 1
            v += 1
    return found


@njit(cache=True, inner=True)
def list_extensions(net, bar, old, i, ready, readies, choice):
    """List the supernodes that may join the open stage of chain `i`; return how many, and whether to close.

    A stage that pays for transfers grows by supernodes of ascending number, so that each is met once. A stage
    need not close while it can take a supernode without a larger load of any later stage.
    """
    work, sizes, memory, factor, growth = net.work, net.size, net.memory, net.transfer_factor, net.growth
    communication, threshold, real = net.communication, bar.load, old.real
    k, last = old.kind[i], old.node[i]
    choices = 0
    if k < 0:
        return choices, True
    load, _ = growing_load(
        real[i, BUSY], real[i, INTO], real[i, OUT], real[i, STAY], factor[k], communication
    )
    closing = load <= threshold
    for r in range(readies):
        v = ready[r]
        if real[i, SIZE] + sizes[v] <= memory[k]:
            if load + growth[k, v] <= threshold:
                closing = False
            if real[i, BUSY] + work[k, v] <= threshold and (factor[k] == 0.0 or v > last):
                choice[choices, 0], choice[choices, 1] = k, v
                choices += 1
    return choices, closing


@njit(cache=True, inner=True)
def list_openings(net, bar, old, i, ready, readies, choice, choices):
    """Add the supernodes that may begin a stage on each kind with devices left; return the length."""
    work, sizes, memory, most = net.work, net.size, net.memory, net.most
    threshold, used = bar.load, old.used
    for k in range(len(most)):
        for r in range(readies):
            v = ready[r]
            if used[i, k] < most[k] and work[k, v] <= threshold and sizes[v] <= memory[k]:
                choice[choices, 0], choice[choices, 1] = k, v
                choices += 1
    return choices


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def add_transfers(net, costs, held, i, begun_at, v, figures):
    """Add the nets of `v` to the transfers of the last stage of chain `i`.

    The supernodes of its closed stages are in the words of `held` from `begun_at` on.
    """
    pin_start, pin, source = net.pin_start, net.pin, net.source
    for e in range(net.net_start[v], net.net_start[v + 1]):
        each = net.net[e]
        inside, before, pins = 0, 0, pin_start[each + 1] - pin_start[each]
        for p in range(pin_start[each], pin_start[each + 1]):
            word, bit = pin[p] // BITS, pin[p] % BITS
            if (held[i, begun_at + word] >> bit) & 1:
                before += 1
            elif (held[i, word] >> bit) & 1:
                inside += 1
        if inside == 0:
            if source[each] == v:
                figures[OUT] += costs[each]
            else:
                figures[INTO] += costs[each]
            if before > 0:
                figures[STAY] += costs[each]
        elif source[each] == v:
            figures[INTO] -= costs[each]
            figures[OUT] += costs[each]
        if inside + 1 == pins:
            figures[OUT] -= costs[each]


@njit(cache=True, inner=True)
def add_supernode(before_start, before, after_start, after, sets, v, words):
    """Add `v` to a chain, and to those that can follow the supernodes that wait for no other."""
    sets[v // BITS] |= 1 << (v % BITS)
    sets[words + v // BITS] &= ~(1 << (v % BITS))
    for e in range(after_start[v], after_start[v + 1]):
        w = after[e]
        free = True
        for b in range(before_start[w], before_start[w + 1]):
            if not (sets[before[b] // BITS] >> (before[b] % BITS)) & 1:
                free = False
                break
        if free:
            sets[words + w // BITS] |= 1 << (w % BITS)


@njit(cache=True, nogil=True)
def expand(net, bar, old, span, new, count, tables, last_level):
    """Extend partial chains `first`, `first` + 1, ... of `old` by one supernode each way; fill `new`.

    Parameters
    ----------
    net, bar
        See :mod:`partitioner.methods.dp._many_kinds_core`.
    old, span
        The partial chains, and the first and the end of those to extend.
    new, count
        The extended chains, and how many of them there are before.
    tables
        Hash tables of the rows of `new`, and of the rows of `old` whose last stage was closed; -1 is free.
    last_level
        Whether one more supernode completes a chain; then only chains within the threshold are kept.

    Returns
    -------
    tuple of int
        The chain of `old` to continue with, and how many there are in `new`. Fewer than the
        span are extended if arrays are full.
    """
    (first, rows), (slots, closed) = span, tables
    work, sizes, memory, factor, most = net.work, net.size, net.memory, net.transfer_factor, net.most
    communication, code = net.communication, net.code
    threshold, weight, capacity = bar.load, bar.weight, bar.capacity
    share, most_share = bar.share, bar.most_share
    share_slack = SLACK * (share.sum() + most_share.sum())
    time_price, memory_price, by_set, costs = bar.time_price, bar.memory_price, bar.rows, bar.cost
    before_start, before, after_start, after = net.before_start, net.before, net.after_start, net.after
    held, used, kind, real, key = old.held, old.used, old.kind, old.real, old.key
    held_by, used_by, kind_by, real_by, key_by = new.held, new.used, new.kind, new.real, new.key
    score_of, parent_of, node_of, opened_of = new.score, new.parent, new.node, new.opened
    kinds, n = work.shape
    words = held.shape[1] // 3
    ready = np.empty(n, np.int64)
    choice = np.empty((n * (kinds + 1), 2), np.int64)
    sets = np.empty(3 * words, np.int64)
    uses = np.empty(kinds, np.int64)
    figures = np.empty(FIGURES, np.float64)
    full = min(len(kind_by), len(slots) // 2)
    for i in range(first, rows):
        if count + len(choice) > full:
            return i, count
        # what may join the open stage, and if that may close, what may begin a new one
        readies = list_ready(held, i, words, ready)
        extensions, closing = list_extensions(net, bar, old, i, ready, readies, choice)
        choices, row, rest, spare = extensions, 0, real[i, REST], real[i, SPARE]
        open_row, open_rest, open_spare, unused_share = 0, 0.0, 0.0, 0.0
        for other in range(kinds):
            unused_share += (most[other] - used[i, other]) * most_share[other]
            if by_set and used[i, other] < most[other]:
                open_row |= 1 << other
        if by_set:
            row = open_row if kind[i] < 0 else open_row | 1 << kind[i]
        if closing and is_new(held, used, key, i, words, closed):
            for v in range(n):
                if not (held[i, v // BITS] >> (v % BITS)) & 1:
                    open_rest += weight[open_row, v]
            for k in range(kinds):
                open_spare += (most[k] - used[i, k]) * capacity[open_row, k]
            if open_rest <= open_spare + SLACK * open_spare:
                choices = list_openings(net, bar, old, i, ready, readies, choice, choices)
        for c in range(choices):
            # the figures of the open stage with the supernode
            k, v, opened = choice[c, 0], choice[c, 1], c >= extensions
            for each in range(FIGURES):
                figures[each] = 0.0 if opened else real[i, each]
            figures[SHARE] += share[v]
            figures[OUTSIDE] = real[i, OUTSIDE] - share[v]
            share_room = unused_share - share[v] if opened else unused_share + most_share[k] - figures[SHARE]
            if figures[OUTSIDE] > share_room + share_slack:
                continue
            if opened:
                row, rest, spare = open_row, open_rest, open_spare - capacity[open_row, k]
            figures[BUSY] += work[k, v]
            if memory[k] < np.inf:  # else memory does not count in what dominates
                figures[SIZE] += sizes[v]
            if factor[k] > 0.0:
                begun_at = 0 if opened else 2 * words
                add_transfers(net, costs, held, i, begun_at, v, figures)
            load, least = growing_load(
                figures[BUSY], figures[INTO], figures[OUT], figures[STAY], factor[k], communication
            )
            # the devices left and the room on this one must be able to take all the rest
            figures[REST], figures[SPARE] = rest - weight[row, v], spare
            spent = least if communication == SEQUENTIAL else figures[BUSY]
            room = spare + capacity[row, k] - time_price[row, k] * spent
            room -= memory_price[row, k] * figures[SIZE]
            over = least > threshold or (last_level and load > threshold)
            if over or figures[REST] > room + SLACK * (rest + spare):
                continue
            # the supernodes, the devices and the hash by which chains are compared
            for word in range(words):
                sets[word], sets[words + word], sets[2 * words + word] = (
                    held[i, word],
                    held[i, words + word],
                    0,
                )
                if factor[k] > 0.0:
                    sets[2 * words + word] = held[i, word] if opened else held[i, 2 * words + word]
            begun = 0
            if factor[k] > 0.0:
                begun = key[i, 0] if opened else key[i, 1]
            mixed = (key[i, 0] ^ code[v] ^ (begun * SPREAD)) * SPREAD
            for other in range(kinds):
                uses[other] = used[i, other]
                if opened and other == k:
                    uses[other] += 1
                mixed = (mixed ^ (mixed >> 29) ^ uses[other]) * SPREAD
            mixed = (mixed ^ (mixed >> 31) ^ k) * SPREAD
            mixed ^= mixed >> 31
            add_supernode(before_start, before, after_start, after, sets, v, words)
            # the chain is written in place of one that it dominates, or as a new row
            place = find_place(new, sets, uses, k, figures, mixed, slots, count)
            if place < 0:
                continue
            count = max(count, place + 1)
            for each in range(len(sets)):
                held_by[place, each] = sets[each]
            for other in range(kinds):
                used_by[place, other] = uses[other]
            for each in range(FIGURES):
                real_by[place, each] = figures[each]
            kind_by[place], node_of[place], parent_of[place], opened_of[place] = k, v, i, opened
            key_by[place, 0], key_by[place, 1], key_by[place, 2] = key[i, 0] ^ code[v], begun, mixed
            guess = room + time_price[row, k] * (spent - load)  # what is cut now is likely to stay cut
            score_of[place] = figures[REST] / guess if guess > 0.0 else np.inf
            if share_room > 0.0:
                score_of[place] = max(score_of[place], figures[OUTSIDE] / share_room)
    return rows, count
