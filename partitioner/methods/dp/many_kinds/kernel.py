"""The compiled step of the search: partial chains grow by one supernode, in the open stage or a new one."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import SEQUENTIAL, growing_load
from partitioner.methods.dp.many_kinds.arrays import BITS, BUSY, INTO, OUT, REST, SIZE, SPARE, STAY
from partitioner.methods.dp.many_kinds.hash_kernel import SPREAD, find_place, is_new
from partitioner.methods.dp.many_kinds.move_kernel import (
    add_supernode,
    add_transfers,
    list_extensions,
    list_openings,
    list_ready,
)

SLACK = 1e-9


@njit(cache=True, nogil=True)
def expand(net, bar, old, first, rows, new, count, slots, closed, last_level):
    """Extend partial chains `first`, `first` + 1, ... of `old` by one supernode each way; fill `new`.

    Parameters
    ----------
    net, bar
        See :mod:`partitioner.methods.dp.many_kinds.arrays`.
    old, first, rows
        The partial chains, and the range of those to extend.
    new, count
        The extended chains, and how many of them there are before.
    slots, closed
        Hash tables of the rows of `new`, and of the rows of `old` whose last stage was closed; -1 is free.
    last_level
        Whether one more supernode completes a chain; then only chains within the threshold are kept.

    Returns
    -------
    tuple of int
        The chain of `old` to continue with, and how many there are in `new`. Fewer than `rows` are
        extended if arrays are full.
    """
    work, sizes, memory, factor, most = net.work, net.size, net.memory, net.transfer_factor, net.most
    communication, growth, code = net.communication, net.growth, net.code
    threshold, weight, capacity = bar.load, bar.weight, bar.capacity
    time_price, memory_price, by_set, costs = bar.time_price, bar.memory_price, bar.rows, bar.cost
    net_start, net_of, pin_start, pin, source = net.net_start, net.net, net.pin_start, net.pin, net.source
    before_start, before, after_start, after = net.before_start, net.before, net.after_start, net.after
    held, used, kind, real, node, key = old.held, old.used, old.kind, old.real, old.node, old.key
    held_by, used_by, kind_by, real_by, key_by = new.held, new.used, new.kind, new.real, new.key
    score_of, parent_of, node_of, opened_of = new.score, new.parent, new.node, new.opened
    kinds, n = work.shape
    words = held.shape[1] // 3
    ready = np.empty(n, np.int64)
    choice = np.empty((n * (kinds + 1), 2), np.int64)
    sets = np.empty(3 * words, np.int64)
    uses = np.empty(kinds, np.int64)
    figures = np.empty(7, np.float64)
    full = min(len(kind_by), len(slots) // 2)
    for i in range(first, rows):
        if count + len(choice) > full:
            return i, count
        readies = list_ready(held, i, words, ready)
        extensions, closing = list_extensions(
            work, sizes, memory, factor, communication, growth, threshold,
            kind[i], node[i], real, i, ready, readies, choice,
        )  # fmt: skip
        choices, row, rest, spare = extensions, 0, real[i, REST], real[i, SPARE]
        open_row, open_rest, open_spare = 0, 0.0, 0.0
        if by_set:
            row, open_row = _row_of(used, most, i, int(kind[i])), _row_of(used, most, i, -1)
        if closing and is_new(held, used, key, i, words, closed):
            for v in range(n):
                if not (held[i, v // BITS] >> (v % BITS)) & 1:
                    open_rest += weight[open_row, v]
            for k in range(kinds):
                open_spare += (most[k] - used[i, k]) * capacity[open_row, k]
            if open_rest <= open_spare + SLACK * open_spare:
                choices = list_openings(
                    work, sizes, memory, threshold, most, used, i, ready, readies, choice, choices
                )
        for c in range(choices):
            k, v, opened = choice[c, 0], choice[c, 1], c >= extensions
            for each in range(7):
                figures[each] = 0.0 if opened else real[i, each]
            if opened:
                row, rest, spare = open_row, open_rest, open_spare - capacity[open_row, k]
            figures[BUSY] += work[k, v]
            if memory[k] < np.inf:  # else memory does not count in what dominates
                figures[SIZE] += sizes[v]
            if factor[k] > 0.0:
                begun_at = 0 if opened else 2 * words
                add_transfers(
                    net_start, net_of, pin_start, pin, source, costs, held, i, begun_at, v, figures
                )  # fmt: skip
            load, least = growing_load(
                figures[BUSY], figures[INTO], figures[OUT], figures[STAY], factor[k], communication
            )
            figures[REST], figures[SPARE] = rest - weight[row, v], spare
            spent = least if communication == SEQUENTIAL else figures[BUSY]
            room = spare + capacity[row, k] - time_price[row, k] * spent
            room -= memory_price[row, k] * figures[SIZE]
            over = least > threshold or (last_level and load > threshold)
            if over or figures[REST] > room + SLACK * (rest + spare):
                continue
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
            place = find_place(
                held_by, used_by, kind_by, real_by, key_by, sets, uses, k, figures, mixed, slots, count
            )  # fmt: skip
            if place < 0:
                continue
            count = max(count, place + 1)
            for each in range(len(sets)):
                held_by[place, each] = sets[each]
            for other in range(kinds):
                used_by[place, other] = uses[other]
            for each in range(7):
                real_by[place, each] = figures[each]
            kind_by[place], node_of[place], parent_of[place], opened_of[place] = k, v, i, opened
            key_by[place, 0], key_by[place, 1], key_by[place, 2] = key[i, 0] ^ code[v], begun, mixed
            guess = room + time_price[row, k] * (spent - load)  # what is cut now is likely to stay cut
            score_of[place] = figures[REST] / guess if guess > 0.0 else np.inf
    return rows, count


@njit(cache=True)
def _row_of(used, most, i, k):
    """Return the set of kinds with devices that chain `i` does not use, and kind `k`, in bits."""
    row = 0 if k < 0 else 1 << k
    for other in range(len(most)):
        if used[i, other] < most[other]:
            row |= 1 << other
    return row
