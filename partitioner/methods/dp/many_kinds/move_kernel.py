"""Compiled: the supernodes that a partial chain may take next, and what changes with them."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp.many_kinds.arrays import BITS, BUSY, INTO, OUT, SIZE, STAY


@njit(cache=True)
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


@njit(cache=True)
def list_extensions(
    work, sizes, memory, factor, communication, growth, threshold, k, last, real, i, ready, readies, choice
):
    """List the supernodes that may join the open stage of chain `i`; return how many, and whether to close.

    A stage that pays for transfers grows by supernodes of ascending number, so that each is met once. A stage
    need not close while it can take a supernode without a larger load of any later stage.
    """
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


@njit(cache=True)
def list_openings(work, sizes, memory, threshold, most, used, i, ready, readies, choice, choices):
    """Add the supernodes that may begin a stage on each kind with devices left; return the length."""
    for k in range(len(most)):
        for r in range(readies):
            v = ready[r]
            if used[i, k] < most[k] and work[k, v] <= threshold and sizes[v] <= memory[k]:
                choice[choices, 0], choice[choices, 1] = k, v
                choices += 1
    return choices


@njit(cache=True)
def add_transfers(net_start, net_of, pin_start, pin, source, costs, held, i, begun_at, v, figures):
    """Add the nets of `v` to the transfers of the last stage of chain `i`.

    The supernodes of its closed stages are in the words of `held` from `begun_at` on.
    """
    for e in range(net_start[v], net_start[v + 1]):
        each = net_of[e]
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


@njit(cache=True)
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
