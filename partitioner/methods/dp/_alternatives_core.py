"""A stage of a plan: its shape, its supernodes, the ways that it chooses, and its load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp.alternatives_pairs import way_surcharge
from partitioner.methods.dp.alternatives_stages import ChoiceModel, turned_ways
from partitioner.methods.method import Part
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import AlternativesProblem
from partitioner.problem.ways import OWN

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


@njit(cache=True, nogil=True)
def stage_load(  # type: ignore[no-untyped-def]
    members, inside, d, in_flight, cut, cutoff, choices, shapes, memory, greedy, fixed, way
):
    """Return the load of a stage, infinity if it has no ways within the memory or exceeds `cutoff`.

    Parameters
    ----------
    members, inside
        The supernodes of the stage, ascending in the order that is not turned; shape (n,): whether each
        supernode is one of these.
    d, in_flight, cut
        The shape, the samples that a copy holds, and the cost of the tensors that the stage shares.
    cutoff
        The load that matters: a result of at most `cutoff` need not be the least one unless it is infinite.
    choices, shapes, memory
        The model, and the memory of a device.
    greedy
        Whether ways are chosen by Piper's rule.
    fixed
        Shape (C,): the way that a choice must have, -1 for any.
    way
        Shape (C,): gets the chosen ways of Piper's rule; nothing else is said of it.
    """
    count, rows = 0, 0
    for v in members:
        for c in range(choices.of_node[v], choices.of_node[v + 1]):
            count += 1
            rows += choices.start[c + 1] - choices.start[c]
    start, of = np.empty(count + 1, np.int64), np.empty(count, np.int64)
    value, held, source, chosen = (
        np.empty(rows),
        np.empty(rows),
        np.empty(rows, np.int64),
        np.empty(count, np.int64),
    )
    best, outside = np.inf, cut / shapes.copies[d]
    for cap in choices.caps:
        count, rows = 0, 0
        start[0] = 0
        for v in members:
            for c in range(choices.of_node[v], choices.of_node[v + 1]):
                of[count] = c
                for w in range(choices.start[c], choices.start[c + 1]):
                    allowed = fixed[c] < 0 or fixed[c] == w
                    if allowed and choices.degree[w] == shapes.degree[d] and choices.workspace[w] <= cap:
                        extra = way_surcharge(c, w, choices, inside)
                        value[rows] = choices.value[d, w] + extra / shapes.copies[d]
                        held[rows] = choices.each[w] * in_flight + choices.once[w]
                        source[rows] = w
                        rows += 1
                count += 1
                start[count] = rows
        found = outside + least_sum(count, start, value, held, memory - cap, cutoff - outside, greedy, chosen)
        if found < best:
            best = found
            for k in range(count):
                way[of[k]] = source[chosen[k]]
        if best <= cutoff < np.inf:
            break
    return best


@dataclass(frozen=True, eq=False)
class ChosenStage:
    """A stage of a pipeline of the turned problem.

    Parameters
    ----------
    nodes
        The supernodes, descending.
    shape, behind
        The shape, and the number of copies of the stages behind it.
    way
        Shape (C,): the way of each choice of the stage; -1 for choices of others.
    load
        Its load.
    """

    nodes: Ints
    shape: int
    behind: int
    way: Ints
    load: float


def stage_of(model: ChoiceModel, nodes: Ints, shape: int, behind: int, greedy: bool) -> ChosenStage:
    """Return a stage with the least load, or with the ways of Piper's rule.

    The least load is computed once for each way, with those of earlier choices fixed.
    """
    choices, copies = model.choices, len(model.choices.start) - 1
    fixed = np.full(copies, -1)
    way = fixed.copy()
    load = load_of(model, nodes, shape, behind, greedy, fixed, way)
    for v in nodes.tolist() if not greedy else ():
        for c in range(choices.of_node[v], choices.of_node[v + 1]):
            fixed[c], load = _best(model, nodes, shape, behind, fixed, c)
    return ChosenStage(nodes, shape, behind, way if greedy else fixed, float(load))


def _best(
    model: ChoiceModel, nodes: Ints, shape: int, behind: int, fixed: Ints, choice: int
) -> tuple[int, float]:
    """Return the way of a choice with the least load, given the fixed ones, and that load."""
    first, end = model.choices.start[choice], model.choices.start[choice + 1]
    found = []
    for w in range(first, end):
        given = fixed.copy()
        given[choice] = w
        found.append((load_of(model, nodes, shape, behind, False, given, given.copy()), w))
    load, way = min(found)
    return way, load


def load_of(
    model: ChoiceModel, nodes: Ints, shape: int, behind: int, greedy: bool, fixed: Ints, way: Ints
) -> float:
    """Return the load of a stage; the arguments are those of `ChosenStage` and of :func:`stage_load`."""
    inside = np.zeros(model.problem.n, dtype=np.bool_)
    inside[nodes] = True
    held = int(model.shapes.in_flight[shape, behind])
    cut, given = cut_cost(model, nodes), (model.choices, model.shapes, model.memory)
    return float(stage_load(nodes, inside, shape, held, cut, np.inf, *given, greedy, fixed, way))


def cut_cost(model: ChoiceModel, nodes: Ints) -> float:
    """Return the cost of the tensors that a stage shares with others."""
    cuts = model.cuts
    nets = np.concatenate([cuts.net[cuts.start[v] : cuts.start[v + 1]] for v in nodes])
    net, pins = np.unique(nets, return_counts=True)
    return float(cuts.cost[net[pins < cuts.pins[net]]].sum())


def parts_of(model: ChoiceModel, stages: Sequence[ChosenStage]) -> list[Part]:
    """Return the stages as parts of the problem that is not turned; a part has all devices of its stage."""
    last, shapes = model.problem.n - 1, model.shapes
    return [
        Part(model.kind, last - stage.nodes, int(shapes.copies[stage.shape] * shapes.degree[stage.shape]))
        for stage in stages
    ]


def names_of(problem: AlternativesProblem, stages: Sequence[ChosenStage]) -> dict[int, str]:
    """Return the names of the ways of nodes by their positions, without those of own figures."""
    ways = turned_ways(problem)
    return {
        node: ways.name[w]
        for stage in stages
        for c, w in enumerate(stage.way.tolist())
        if w >= 0 and ways.name[w] != OWN
        for node in ways.nodes[c].tolist()
    }
