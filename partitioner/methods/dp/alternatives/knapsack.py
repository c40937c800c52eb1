"""The least sum of values of ways, one for each choice, whose memory is within a limit.

This is a multiple-choice knapsack. Ways on the lower hull of memory and value give the continuous optimum,
whose multiplier lambda bounds every choice of ways: a way whose value plus lambda times memory is far from
the least one of its choice is in no better solution. The ways that remain are combined in lists of sums that
do not dominate one another. Piper's program uses the first solution within memory instead (``algo.cpp``,
``KNAPSACK_FAST_HEURISTIC``): from the fastest ways, swaps in rising order of extra value by memory saved.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit

LEAST_SAVED = 1e-9  # swaps of Piper's rule that save no more are left out
SLACK = 1e-12  # of comparisons with bounds, relative to the value


@njit(cache=True)
def least_sum(count, start, value, memory, limit, cutoff, greedy, chosen):  # type: ignore[no-untyped-def]
    """Return the least sum of values within the memory limit; infinity if none is at most `cutoff`.

    Choice c has the ways from ``start[c]`` to ``start[c + 1]``. A result of at most `cutoff` need not be the
    least one unless `cutoff` is infinite. With `greedy` it is that of Piper's rule, whose ways are written to
    `chosen`; else `chosen` is only working space.
    """
    total, held, least_held = 0.0, 0.0, 0.0
    for c in range(count):
        first, small = -1, -1
        for w in range(start[c], start[c + 1]):
            less = first < 0 or memory[w] < memory[first]
            if first < 0 or value[w] < value[first] or (value[w] == value[first] and less and not greedy):
                first = w
            if small < 0 or memory[w] < memory[small]:
                small = w
        if first < 0:
            return np.inf
        chosen[c] = first
        total += value[first]
        held += memory[first]
        least_held += memory[small]
    if total > cutoff or least_held > limit:
        return np.inf
    if held <= limit:
        return total
    swaps, extra, saved, of = _swaps(count, start, value, memory, chosen, greedy)
    order = np.argsort(extra[:swaps] / saved[:swaps], kind="mergesort")
    need, upper, ratio, last = held - limit, total, 0.0, 0
    for k in range(swaps):
        last = order[k]
        ratio = extra[last] / saved[last]
        upper += extra[last]
        need -= saved[last]
        chosen[of[last, 0]] = of[last, 1]
        if need <= 0 and _sum_of(count, chosen, memory) <= limit:
            break
    upper = _sum_of(count, chosen, value)
    if _sum_of(count, chosen, memory) > limit:
        return np.inf
    if greedy or upper <= cutoff < np.inf:
        return upper
    return _searched(count, start, value, memory, limit, min(cutoff, upper), ratio, upper)


@njit(cache=True)
def _sum_of(count, chosen, figures):  # type: ignore[no-untyped-def]
    total = 0.0
    for c in range(count):
        total += figures[chosen[c]]
    return total


@njit(cache=True)
def _swaps(count, start, value, memory, fastest, greedy):  # type: ignore[no-untyped-def]
    """Return the number of swaps along the hull of each choice, their extra value, memory saved, and ways."""
    most = start[count] - start[0]
    extra, saved, of = np.empty(most), np.empty(most), np.empty((most, 2), np.int64)
    swaps, least = 0, LEAST_SAVED if greedy else 0.0
    for c in range(count):
        at = fastest[c]
        while True:
            best, slope = -1, np.inf
            for w in range(start[c], start[c + 1]):
                less = memory[at] - memory[w]
                if less > least:
                    found = (value[w] - value[at]) / less
                    if found < slope or (found == slope and memory[w] < memory[best]):
                        best, slope = w, found
            if best < 0:
                break
            extra[swaps], saved[swaps] = value[best] - value[at], memory[at] - memory[best]
            of[swaps, 0], of[swaps, 1] = c, best
            swaps += 1
            at = best
    return swaps, extra, saved, of


@njit(cache=True)
def _searched(  # type: ignore[no-untyped-def]
    count, start, value, memory, limit, target, ratio, upper
):
    """Return the least sum if it is at most `target`, else `upper`, or infinity if `upper` exceeds `target`.

    `ratio` is the multiplier of the memory, and `upper` the value of some solution.
    """
    bound = -ratio * limit
    cheapest = np.empty(count)
    for c in range(count):
        cheapest[c] = np.inf
        for w in range(start[c], start[c + 1]):
            cheapest[c] = min(cheapest[c], value[w] + ratio * memory[w])
        bound += cheapest[c]
    allowed = target + SLACK * (abs(target) + ratio * limit)
    worst = upper if upper <= target else np.inf
    if bound > allowed:
        return worst
    base_value, base_memory, open_choices, rest = 0.0, 0.0, 0, 0.0
    core = np.empty(count, np.int64)
    smallest = np.empty(count)
    for c in range(count):
        kept, only = 0, -1
        smallest[c] = np.inf
        for w in range(start[c], start[c + 1]):
            if bound + (value[w] + ratio * memory[w] - cheapest[c]) <= allowed:
                kept += 1
                only = w
                smallest[c] = min(smallest[c], memory[w])
        if kept == 1:
            base_value += value[only]
            base_memory += memory[only]
        else:
            core[open_choices] = c
            open_choices += 1
            rest += smallest[c]
    values, memories, excess = np.array([base_value]), np.array([base_memory]), np.array([bound])
    for k in range(open_choices):
        c = core[k]
        rest -= smallest[c]
        values, memories, excess = _extended(
            values, memories, excess, start[c], start[c + 1], value, memory, ratio, cheapest[c],
            allowed, limit - rest,
        )  # fmt: skip
    best = worst
    for i in range(len(values)):
        if memories[i] <= limit and values[i] <= target:
            best = min(best, values[i])
    return best


@njit(cache=True)
def _extended(  # type: ignore[no-untyped-def]
    values, memories, excess, first, end, value, memory, ratio, cheapest, allowed, limit
):
    """Return the sums with a way of one more choice that no other sums dominate, within bound and limit."""
    count, most = 0, len(values) * (end - first)
    new_values, new_memories, new_excess = np.empty(most), np.empty(most), np.empty(most)
    for w in range(first, end):
        more = value[w] + ratio * memory[w] - cheapest
        for i in range(len(values)):
            held = memories[i] + memory[w]
            if excess[i] + more <= allowed and held <= limit * (1 + SLACK):
                new_values[count], new_memories[count] = values[i] + value[w], held
                new_excess[count] = excess[i] + more
                count += 1
    order = np.argsort(new_memories[:count])
    kept, least = 0, np.inf
    for k in range(count):
        i = order[k]
        if new_values[i] < least:
            least = new_values[i]
            order[kept] = i
            kept += 1
    order = order[:kept]
    return new_values[order], new_memories[order], new_excess[order]
