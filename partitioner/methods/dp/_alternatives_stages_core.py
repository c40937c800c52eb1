"""The compiled loads of stages with a choice among alternatives, and the list of all such stages.

The load of a stage on a shape is the least sum of the values of its ways within the memory
(:func:`stage_load`). That choice is a knapsack with one way of every choice (:func:`least_sum`): the fastest
ways, then swaps along the hull of value against memory, then a search of what these leave open.
:func:`list_pairs` lists the stages between two ideals by the walk of
:mod:`partitioner.methods.dp._walk_core`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partitioner.base.compiled import njit, stable_order
from partitioner.methods.communication_kernel import way_surcharge
from partitioner.methods.dp._walk_core import walk_of
from partitioner.problem.arrays import Bools, Floats, Ints

LEAST_SAVED = 1e-9  # swaps of Piper's rule that save no more are left out
SLACK = 1e-12  # of comparisons with bounds, relative to the value


class StageMembers(NamedTuple):
    """A stage between two ideals of the turned problem.

    Parameters
    ----------
    members
        Its supernodes, ascending in the order that is not turned.
    inside
        Shape (n,): whether each supernode is one of these.
    cut
        The cost of the tensors that it shares with others.
    """

    members: Ints
    inside: Bools
    cut: float


class WayRule(NamedTuple):
    """How the ways of a stage are chosen.

    Parameters
    ----------
    greedy
        Whether by Piper's rule; else their values have the least sum.
    fixed
        Shape (C,): the way that a choice must have, -1 for any.
    way
        Shape (C,): gets the chosen ways of Piper's rule; nothing else is said of it.
    """

    greedy: bool
    fixed: Ints
    way: Ints


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
    order = stable_order(extra[:swaps] / saved[:swaps])
    need, upper, ratio, last = held - limit, total, 0.0, 0
    for k in range(swaps):
        last = order[k]
        ratio = extra[last] / saved[last]
        upper += extra[last]
        need -= saved[last]
        chosen[of[last, 0]] = of[last, 1]
        if need <= 0 and memory[chosen[:count]].sum() <= limit:
            break
    upper = value[chosen[:count]].sum()
    if memory[chosen[:count]].sum() > limit:
        return np.inf
    if greedy or upper <= cutoff < np.inf:
        return upper
    return _searched(count, start, value, memory, limit, min(cutoff, upper), ratio, upper)


@njit(cache=True, inner=True)
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


@njit(cache=True, inner=True)
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
        first, end = start[c], start[c + 1]
        values, memories, excess = _extended(
            (values, memories, excess), value[first:end], memory[first:end], ratio, cheapest[c], allowed,
            limit - rest,
        )  # fmt: skip
    best = worst
    for i in range(len(values)):
        if memories[i] <= limit and values[i] <= target:
            best = min(best, values[i])
    return best


@njit(cache=True, inner=True)
def _extended(sums, value, memory, ratio, cheapest, allowed, limit):  # type: ignore[no-untyped-def]
    """Return the sums with a way of one more choice that no other sums dominate, within bound and limit.

    `sums` are values, memories, and bounds of these and all further choices; `value` and `memory` are those
    of the ways of the choice.
    """
    values, memories, excess = sums
    count, most = 0, len(values) * len(value)
    new_values, new_memories, new_excess = np.empty(most), np.empty(most), np.empty(most)
    for w in range(len(value)):
        more = value[w] + ratio * memory[w] - cheapest
        for i in range(len(values)):
            held = memories[i] + memory[w]
            if excess[i] + more <= allowed and held <= limit * (1 + SLACK):
                new_values[count], new_memories[count] = values[i] + value[w], held
                new_excess[count] = excess[i] + more
                count += 1
    order = stable_order(new_memories[:count])
    kept, least = 0, np.inf
    for k in range(count):
        i = order[k]
        if new_values[i] < least:
            least = new_values[i]
            order[kept] = i
            kept += 1
    order = order[:kept]
    return new_values[order], new_memories[order], new_excess[order]


@njit(cache=True, nogil=True)
def stage_load(terms, stage, d, in_flight, cutoff, rule):  # type: ignore[no-untyped-def]
    """Return the load of a stage, infinity if it has no ways within the memory or exceeds `cutoff`.

    Parameters
    ----------
    terms
        The model, see :class:`partitioner.methods.dp.alternatives_stages.ChoiceTerms`.
    stage, d, in_flight
        The stage, its shape, and the samples that a copy holds.
    cutoff
        The load that matters: a result of at most `cutoff` need not be the least one unless it is infinite.
    rule
        How ways are chosen; the chosen ones are written to it.
    """
    choices, degree, copies = terms.choices, terms.shapes.degree[d], terms.shapes.copies[d]
    fixed, way = rule.fixed, rule.way
    count, rows = 0, 0
    for v in stage.members:
        for c in range(choices.of_node[v], choices.of_node[v + 1]):
            count += 1
            rows += choices.start[c + 1] - choices.start[c]
    start, of, chosen = np.empty(count + 1, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    value, held, source = np.empty(rows), np.empty(rows), np.empty(rows, np.int64)
    best, outside = np.inf, stage.cut / copies
    for cap in choices.caps:
        # the rows of this limit of the workspace: the ways of every choice that keep to it
        count, rows = 0, 0
        start[0] = 0
        for v in stage.members:
            for c in range(choices.of_node[v], choices.of_node[v + 1]):
                of[count] = c
                for w in range(choices.start[c], choices.start[c + 1]):
                    allowed = fixed[c] < 0 or fixed[c] == w
                    if allowed and choices.degree[w] == degree and choices.workspace[w] <= cap:
                        extra = way_surcharge(choices, c, w, stage.inside)
                        value[rows] = choices.value[d, w] + extra / copies
                        held[rows] = choices.each[w] * in_flight + choices.once[w]
                        source[rows] = w
                        rows += 1
                count += 1
                start[count] = rows
        found = outside + least_sum(
            len(of), start, value, held, terms.memory - cap, cutoff - outside, rule.greedy, chosen
        )
        if found < best:
            best = found
            for k in range(count):
                way[of[k]] = source[chosen[k]]
        if best <= cutoff < np.inf:
            break
    return best


@njit(cache=True, inner=True)
def _add_surcharges(v, least, choices, inside, extra):  # type: ignore[no-untyped-def]
    """Add for each degree the least extra time of a supernode's ways for edges that leave the stage."""
    for c in range(choices.of_node[v], choices.of_node[v + 1]):
        for g in range(len(extra)):
            lowest = np.inf
            for w in range(choices.start[c], choices.start[c + 1]):
                if choices.degree[w] == least.degree[g]:
                    lowest = min(lowest, way_surcharge(choices, c, w, inside))
            if lowest < np.inf:
                extra[g] += lowest


class PairTally(NamedTuple):
    """The current stage of the walk that lists pairs; at depth d it has d supernodes.

    Parameters
    ----------
    terms, least
        The model, and the least figures of supernodes, see :mod:`partitioner.methods.dp.alternatives_stages`.
    limit
        The largest load of a stage.
    pairs
        The buffer; without room for any stage only its `start` is written.
    base, each, once
        Shapes (n + 2, D) and (n + 2, degrees): by depth its least values by shape, and its least memory.
    crossing
        Shape (n + 2,): by depth the cost of the tensors that it shares with others.
    added
        Shape (n + 2,): its supernodes by depth.
    inside, held
        Shapes (n,) and (E,): whether each supernode is in it, and its pins of each net.
    extra
        Shape (degrees,): room for its times by degree for tensors and edges that leave it.
    number
        Shape (1,): the number of the next pair.
    """

    terms: Any
    least: Any
    limit: float
    pairs: Any
    base: Floats
    each: Floats
    once: Floats
    crossing: Floats
    added: Ints
    inside: Bools
    held: Ints
    extra: Floats
    number: Ints


def _enter(tally, start, ideal, depth, v):  # type: ignore[no-untyped-def]
    """Add a supernode, unless no degree has enough memory then, or no shape a load within the limit."""
    shapes, cuts, least, held = tally.terms.shapes, tally.terms.cuts, tally.least, tally.held
    base, each, once, above = tally.base, tally.each, tally.once, depth + 1
    fits, quick = False, False
    for g in range(each.shape[1]):
        each[above, g] = each[depth, g] + least.each[v, g]
        once[above, g] = once[depth, g] + least.once[v, g]
    for d in range(base.shape[1]):
        base[above, d] = base[depth, d] + least.value[v, d]
        if base[above, d] <= tally.limit:
            quick = True
            g = least.number[d]
            if each[above, g] * shapes.in_flight[d, 0] + once[above, g] <= tally.terms.memory:
                fits = True
    if quick and fits:
        rise = 0.0
        for k in range(cuts.start[v], cuts.start[v + 1]):
            net = cuts.net[k]
            if held[net] == 0:
                rise += cuts.cost[net]
            held[net] += 1
            if held[net] == cuts.pins[net]:
                rise -= cuts.cost[net]
        tally.inside[v] = True
        tally.crossing[above] = tally.crossing[depth] + rise
        tally.added[above] = v
    return quick and fits


def _leave(tally, v):  # type: ignore[no-untyped-def]
    cuts = tally.terms.cuts
    tally.inside[v] = False
    for k in range(cuts.start[v], cuts.start[v + 1]):
        tally.held[cuts.net[k]] -= 1


def _reach(tally, start, ideal, depth, target):  # type: ignore[no-untyped-def]
    """Write the stage to the buffer if that holds all of them; else it is only counted."""
    pairs, least, extra, pair = tally.pairs, tally.least, tally.extra, tally.number[0]
    base, copies = tally.base, tally.terms.shapes.copies
    tally.number[0] += 1
    if len(pairs.to):
        pairs.to[pair], pairs.cut[pair] = ideal, tally.crossing[depth]
        for g in range(len(extra)):
            extra[g] = tally.crossing[depth]
        for k in range(1, depth + 1):
            if least.linked[tally.added[k]]:
                _add_surcharges(tally.added[k], least, tally.terms.choices, tally.inside, extra)
        for d in range(base.shape[1]):
            pairs.least[pair, d] = base[depth, d] + extra[least.number[d]] / copies[d]
    return 0


def _lost(tally, v):  # type: ignore[no-untyped-def]
    return 0.0  # every stage is wanted, whatever is left of the work


_walk = walk_of(_enter, _leave, _reach, _lost)


def new_tally(terms: Any, least: Any, limit: float, pairs: Any) -> PairTally:
    """Return an empty stage."""
    n, of_shape, degrees = len(least.each), len(terms.shapes.copies), least.each.shape[1]
    return PairTally(
        terms, least, limit, pairs,
        np.zeros((n + 2, of_shape)), np.zeros((n + 2, degrees)), np.zeros((n + 2, degrees)),
        np.zeros(n + 2), np.zeros(n + 2, np.int64),
        np.zeros(n, np.bool_), np.zeros(len(terms.cuts.pins), np.int64), np.zeros(degrees),
        np.zeros(1, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def list_pairs(lattice, tally, path, first_ideal, end_ideal):  # type: ignore[no-untyped-def]
    """Count the stages that begin at some ideals, or write them if the buffer holds all of them.

    A stage stops growing where no degree has enough memory, or no shape has a load within the limit even if
    nothing is cut.

    Parameters
    ----------
    lattice, tally, path
        The ideals, :func:`new_tally`, and see :mod:`partitioner.methods.dp._walk_core`.
    first_ideal, end_ideal
        The ideals at which the stages begin.
    """
    pairs = tally.pairs
    for ideal in range(first_ideal, end_ideal):
        tally.number[0] = pairs.start[ideal]
        _walk(lattice, path, ideal, 0.0, tally)
        if not len(pairs.to):
            pairs.start[ideal + 1] = tally.number[0]
