"""PipeDream-2BW's planner: stages with equal numbers of blocks, which all run in one way (Piper, "equi")."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from partitioner.methods.dp.alternatives_stages import (
    ChoiceModel,
    ChosenStage,
    least_load,
    load_of,
    model_of,
    names_of,
    parts_of,
    turned_ways,
)
from partitioner.methods.method import Outcome, OutOfTimeError, Settings, no_split
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import AlternativesProblem

NO_PLAN = "no equal stages that all run in one way fit in the memory"


def solve_two_bw(problem: AlternativesProblem, settings: Settings) -> Outcome:
    """Return the best plan of equal stages, with a bound on every plan: method ``two_bw``.

    All stages have the same degree and number of copies, and all nodes the way of the same place among those
    of that degree. The blocks that the network repeats are divided in a topological order, and the last
    stages get one more where they do not divide. What is before and after the blocks joins the first and the
    last stage, or is a stage of its own.
    """
    model = model_of(problem, "two_bw")
    if not problem.allowed[model.kind].all():
        return no_split(problem)
    low = least_load(model)
    best: list[ChosenStage] = []
    value, tried = np.inf, 0
    try:
        for nodes, shape, way in settings.watched(_grid(model), every=64):
            stages = _stages(model, nodes, shape, way, value)
            tried += 1
            if stages:
                best, value = stages, max(stage.load for stage in stages)
    except OutOfTimeError:
        pass
    bound = min(low, value)
    return Outcome(
        problem,
        parts_of(model, best) if best else None,
        value,
        bound,
        settings.ended(bound, value),
        notes=() if best else (NO_PLAN,),
        statistics={"plans": tried},
        alternatives=names_of(problem, best),
    )


def _grid(model: ChoiceModel) -> Iterator[tuple[list[Ints], int, Ints]]:
    """Yield the supernodes of the stages, last stage first, their shape, and the way of every choice."""
    choices, shapes = model.choices, model.shapes
    places = int(np.diff(choices.start).max())
    ways = {
        (degree, place): found
        for degree in np.unique(shapes.degree).tolist()
        for place in range(places)
        if (found := _way(model, degree, place)) is not None
    }
    for nodes in _divisions(model):
        for d, (degree, copies) in enumerate(zip(shapes.degree, shapes.copies, strict=True)):
            together = len(nodes) * int(copies)
            if together * degree > model.devices or together > model.copies:
                continue
            for place in range(places):
                if (int(degree), place) in ways:
                    yield nodes, d, ways[int(degree), place]


def _way(model: ChoiceModel, degree: int, place: int) -> Ints | None:
    """Return the way of every choice that has a place among its ways of a degree; None if one has none."""
    choices, turned = model.choices, turned_ways(model.problem)
    found = []
    for first, end in pairwise(turned.start.tolist()):
        able = first + np.flatnonzero(choices.degree[first:end] == degree)
        if len(able) <= place:
            return None
        found.append(able[place])
    return np.array(found, dtype=np.int64)


def _divisions(model: ChoiceModel) -> Iterator[list[Ints]]:
    """Yield the turned supernodes of equal stages, last stage first, for every number of stages."""
    block = model.problem.block
    place = np.flatnonzero(block)
    first, last, total = int(place[0]), int(place[-1]), len(place)
    for apart in (False, True):
        if apart and first == 0 and last == len(block) - 1:
            return
        for count in range(1, total + 1):
            small, larger = divmod(total, count)
            sizes = [small] * (count - larger) + [small + 1] * larger
            ends = [place[k - 1] + 1 for k in np.cumsum(sizes)]
            borders = [0, *ends[:-1], len(block)]
            if apart:
                around = {0, first, *ends[:-1], last + 1, len(block)}
                borders = sorted(around)
            nodes = [np.arange(a, b) for a, b in pairwise(borders)]
            yield [model.problem.n - 1 - each for each in reversed(nodes)]


def _stages(model: ChoiceModel, nodes: list[Ints], shape: int, way: Ints, limit: float) -> list[ChosenStage]:
    """Return the stages if all loads are below a limit; none if not."""
    found: list[ChosenStage] = []
    for number, each in enumerate(nodes):
        behind = number * int(model.shapes.copies[shape])
        used = np.full(len(way), -1)
        for v in each.tolist():
            first, end = model.choices.of_node[v], model.choices.of_node[v + 1]
            used[first:end] = way[first:end]
        load = load_of(model, each, shape, behind, False, used, used.copy())
        if load >= limit:
            return []
        found.append(ChosenStage(each, shape, behind, used, load))
    return found[::-1]
