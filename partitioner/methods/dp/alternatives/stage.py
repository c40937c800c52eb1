"""A stage of a plan: its shape, its supernodes, the ways that it chooses, and its load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.methods.dp.alternatives.model import ChoiceModel, turned_ways
from partitioner.methods.dp.alternatives.stage_load import stage_load
from partitioner.methods.method import Part
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import AlternativesProblem
from partitioner.problem.ways import OWN


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
