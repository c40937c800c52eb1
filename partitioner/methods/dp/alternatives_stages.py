"""Stages that choose among alternatives: the model in arrays, the load of one, and the list of all.

A stage has a *shape*, a degree of its ways and a number of copies. On d devices a copy with the ways w of its
choices, and r copies, its load is

    (cost of the tensors that it shares + sum of time[w]) / r + exchange of the weights of w among the copies

and the ways are the ones of the least load that fit in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.methods.dp._alternatives_stages_core import (
    SLACK,
    StageMembers,
    WayRule,
    list_pairs,
    new_tally,
    stage_load,
)
from partitioner.methods.dp._walk_core import new_path
from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import AlternativesProblem
from partitioner.problem.ways import NodeWays
from partitioner.workload.in_flight import samples_in_flight

ASYNCHRONOUS = "1f1b_async"  # the schedule that keeps a version of the weights for every sample in flight
RESYNC = 4.0  # of Piper's model: transfers of its weights for an exchange among copies
BYTES_A_SHAPE, BYTES_A_PAIR = 16, 16  # that tables take for a shape of a stage, and for a stage
SLICE = 256  # ideals between two checks whether the run should end


class Shapes(NamedTuple):
    """The D shapes that a stage may have: a degree, and a number of copies.

    Parameters
    ----------
    degree, copies
        Shape (D,): how many devices run a copy, and how many copies there are.
    in_flight
        Shape (D, most copies behind + 1): the samples that a copy holds, by the number of copies behind.
    """

    degree: Ints
    copies: Ints
    in_flight: Ints


class Choices(NamedTuple):
    """The C choices with W ways, in the order of their supernodes.

    Parameters
    ----------
    of_node
        Shape (n + 1,): the choices of supernode v are those from ``of_node[v]`` to ``of_node[v + 1]``.
    start
        Shape (C + 1,): the ways of each choice.
    degree
        Shape (W,): how many devices run the way.
    value
        Shape (D, W): the time that the way adds to the load of a stage of each shape.
    each, once, workspace
        Shape (W,): memory for every sample in flight, memory that does not depend on it, and workspace.
    caps
        The limits of the workspace to try: each distinct one.
    link_start, link, link_cost
        As in :class:`partitioner.problem.ways.NodeWays`, with the costs in the unit of `value` before the
        division by copies.
    """

    of_node: Ints
    start: Ints
    degree: Ints
    value: Floats
    each: Floats
    once: Floats
    workspace: Floats
    caps: Floats
    link_start: Ints
    link: Ints
    link_cost: Floats


class CrossingNets(NamedTuple):
    """The tensors between supernodes: for every supernode its nets, the pins and the cost of each net."""

    start: Ints
    net: Ints
    pins: Ints
    cost: Floats


class ChoiceTerms(NamedTuple):
    """All on which the loads of stages depend.

    Parameters
    ----------
    choices, shapes, cuts
        The ways, the shapes of stages, and the tensors between supernodes.
    memory
        The memory of a device.
    """

    choices: Choices
    shapes: Shapes
    cuts: CrossingNets
    memory: float


@dataclass(frozen=True, eq=False)
class ChoiceModel:
    """The model of all stages, for the problem with supernode v as n - 1 - v.

    Parameters
    ----------
    problem
        The problem, not turned.
    kind
        The kind of device that stages run on.
    devices, copies
        How many devices there are, and how many copies all stages may have together.
    memory
        The memory of a device.
    shapes, choices, cuts
        The arrays for kernels.
    """

    problem: AlternativesProblem
    kind: int
    devices: int
    copies: int
    memory: float
    shapes: Shapes
    choices: Choices
    cuts: CrossingNets

    @property
    def terms(self) -> ChoiceTerms:
        """What kernels take of the model."""
        return ChoiceTerms(self.choices, self.shapes, self.cuts, self.memory)


def model_of(problem: AlternativesProblem, name: str) -> ChoiceModel:
    """Return the model of a problem, for the method of that name.

    Raises
    ------
    OptionError
        If there are devices of several kinds, or communication or synchronisation overlaps with processing.
    """
    present = np.flatnonzero(problem.count > 0)
    if len(present) != 1:
        raise OptionError(f"method {name} plans for devices of one kind; there are {len(present)}")
    if problem.communication != "sequential":
        raise OptionError(f"method {name} needs communication = 'sequential', not {problem.communication!r}")
    if not problem.pipeline.added:
        raise OptionError(f"method {name} needs synchronisation = 'added'")
    kind, batch = int(present[0]), problem.pipeline.microbatches
    devices = int(problem.count[kind])
    copies = devices if batch is None or not problem.piper else min(devices, batch)
    shapes = _shapes(problem, devices, copies)
    return ChoiceModel(
        problem=problem,
        kind=kind,
        devices=devices,
        copies=copies,
        memory=float(problem.memory[kind]),
        shapes=shapes,
        choices=_choices(problem, kind, shapes),
        cuts=_cuts(problem, kind),
    )


def _shapes(problem: AlternativesProblem, devices: int, copies: int) -> Shapes:
    """Return all degrees with all numbers of copies, of equal parts of a batch in Piper's model."""
    pipeline = problem.pipeline
    most = min(pipeline.replicas, copies)
    pairs = [
        (degree, count)
        for degree in np.unique(problem.ways.degree).tolist()
        for count in range(pipeline.fewest, min(most, devices // degree) + 1)
        if not (problem.piper and pipeline.microbatches and pipeline.microbatches % count)
        and problem.degree in (None, degree)
    ]
    degree, count = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    held = np.array([_in_flight(problem, each, copies) for each in count.tolist()], dtype=np.int64)
    return Shapes(degree.copy(), count.copy(), held.reshape(len(count), copies + 1))


def _in_flight(problem: AlternativesProblem, count: int, copies: int) -> Ints:
    """Return the samples that a copy holds for every number of copies behind, shape (copies + 1,)."""
    pipeline = problem.pipeline
    later = -(-np.arange(copies + 1) // count)
    if pipeline.schedule is None:
        return np.ones(copies + 1, dtype=np.int64)
    share = None if pipeline.microbatches is None else -(-pipeline.microbatches // count)
    held = [samples_in_flight(pipeline.schedule, rank, 1, share)[0] for rank in range(int(later[-1]) + 1)]
    return np.array(held, dtype=np.int64)[later]


def _choices(problem: AlternativesProblem, kind: int, shapes: Shapes) -> Choices:
    ways, pipeline = turned_ways(problem), problem.pipeline
    factor = RESYNC / (pipeline.microbatches or 1) if problem.piper else 1.0
    exchange = factor * ways.weights / pipeline.bandwidth[kind]
    copies = shapes.copies[:, None]
    none = np.zeros(len(ways.size))
    scheduled, versions = pipeline.schedule is not None, pipeline.schedule == ASYNCHRONOUS
    return Choices(
        of_node=np.searchsorted(ways.owner, np.arange(problem.n + 1)),
        start=ways.start,
        degree=ways.degree,
        value=ways.time[kind] / copies + exchange * (copies - 1) / copies,
        each=ways.activations + (ways.parameters if versions else none) if scheduled else none,
        once=ways.size + (none if versions or not scheduled else ways.parameters),
        workspace=ways.workspace if scheduled else none,
        caps=np.unique(ways.workspace) if scheduled else np.zeros(1),
        link_start=ways.link_start,
        link=problem.n - 1 - ways.link,
        link_cost=ways.link_cost * problem.transfer_factor[kind],
    )


def turned_ways(problem: AlternativesProblem) -> NodeWays:
    """Return the ways of a problem with supernode v as n - 1 - v, with the choices in the reverse order."""
    ways = problem.ways
    last = np.arange(len(ways.owner))[::-1]
    place = np.concatenate([np.arange(ways.start[c], ways.start[c + 1]) for c in last])
    links = [np.arange(ways.link_start[c], ways.link_start[c + 1]) for c in last]
    rows = np.concatenate(links).astype(np.int64)
    return NodeWays(
        owner=problem.n - 1 - ways.owner[last],
        start=np.concatenate(([0], np.cumsum(np.diff(ways.start)[last]))),
        degree=ways.degree[place],
        time=ways.time[:, place],
        size=ways.size[place],
        parameters=ways.parameters[place],
        activations=ways.activations[place],
        workspace=ways.workspace[place],
        weights=ways.weights[place],
        link_start=np.concatenate(([0], np.cumsum([len(each) for each in links]))).astype(np.int64),
        link=ways.link[rows],
        link_cost=ways.link_cost[rows],
        name=tuple(ways.name[i] for i in place.tolist()),
        nodes=tuple(ways.nodes[c] for c in last.tolist()),
    )


def _cuts(problem: AlternativesProblem, kind: int) -> CrossingNets:
    nets, last = problem.nets, problem.n - 1
    owner = last - nets.of_node.owners()
    order = np.argsort(owner, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=problem.n))))
    cost = nets.cost * problem.transfer_factor[kind]
    return CrossingNets(start, nets.of_node.items[order], np.diff(nets.pins.start), cost)


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
    """Return the load of a stage; the arguments are those of `ChosenStage` and of `WayRule`."""
    inside = np.zeros(model.problem.n, dtype=np.bool_)
    inside[nodes] = True
    held = int(model.shapes.in_flight[shape, behind])
    stage = StageMembers(np.ascontiguousarray(nodes), inside, cut_cost(model, nodes))
    return float(stage_load(model.terms, stage, shape, held, np.inf, WayRule(greedy, fixed, way)))


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
    return {node: name for stage in stages for node, name in ways.names(stage.way).items()}


class Pairs(NamedTuple):
    """The stages from ideal i: those from ``start[i]`` to ``start[i + 1]``.

    Parameters
    ----------
    start
        Shape (ideals + 1,).
    to
        The ideal that the stage leads to.
    cut
        The cost of the tensors that it shares with others.
    least
        Shape (stages, D): a lower bound of the load of a stage of each shape, whatever the memory.
    """

    start: Ints
    to: Ints
    cut: Floats
    least: Floats


class Least(NamedTuple):
    """The least figures of choices and of supernodes.

    Parameters
    ----------
    value
        Shape (n, D): the least value of a supernode in a stage of a shape; infinity if it has no way.
    each, once
        Shape (n, degrees): the least memory of each sort by degree.
    linked
        Shape (n,): whether a way of the supernode pays extra times for edges.
    number
        Shape (D,): the number of the degree of every shape.
    degree
        Shape (degrees,): the degrees.
    """

    value: Floats
    each: Floats
    once: Floats
    linked: Any
    number: Ints
    degree: Ints


def least_of(model: ChoiceModel) -> Least:
    """Return the least figures of every supernode."""
    choices, shapes = model.choices, model.shapes
    degrees, number = np.unique(shapes.degree, return_inverse=True)
    owner = np.repeat(np.arange(model.problem.n), np.diff(choices.of_node))
    by_shape = [_sums(model, owner, choices.value[d], shapes.degree[d]) for d in range(len(number))]
    linked = np.bincount(owner, np.diff(choices.link_start), model.problem.n) > 0
    each = [_sums(model, owner, choices.each, degree) for degree in degrees]
    once = [_sums(model, owner, choices.once, degree) for degree in degrees]
    return Least(np.stack(by_shape, 1), np.stack(each, 1), np.stack(once, 1), linked, number, degrees)


def _sums(model: ChoiceModel, owner: Ints, figures: Floats, degree: int) -> Floats:
    """Return the least figures of the ways of that degree, summed over the choices of each supernode."""
    choices = model.choices
    possible = np.where(choices.degree == degree, figures, np.inf)
    least = np.minimum.reduceat(possible, choices.start[:-1])
    found = np.zeros(model.problem.n)
    np.add.at(found, owner, least)
    return found


def pairs_within(
    model: ChoiceModel, lattice: Lattice, limit: float, budget: int, ended: Any = lambda: False
) -> Pairs | None:
    """Return the stages whose load can be at most `limit`; None if they exceed the budget, or the run ends.

    Parameters
    ----------
    model, lattice
        The problem and its ideals, both turned.
    limit
        Of the load.
    budget
        Bytes that the tables may take.
    ended
        Called from time to time: whether to give up.
    """
    least, shapes = least_of(model), len(model.shapes.copies)
    most = budget // (BYTES_A_SHAPE * shapes + BYTES_A_PAIR)
    start = np.zeros(lattice.size + 1, dtype=np.int64)
    counted = Pairs(start, np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, shapes)))
    tally, path = new_tally(model.terms, least, limit, counted), new_path(model.problem.n)
    for first in range(0, lattice.size, SLICE):
        if ended() or start[first] > most:
            return None
        list_pairs(lattice, tally, path, first, min(first + SLICE, lattice.size))
    count = int(start[-1])
    if count > most:
        return None
    pairs = Pairs(start, np.empty(count, dtype=np.int64), np.empty(count), np.empty((count, shapes)))
    tally = tally._replace(pairs=pairs)
    for first in range(0, lattice.size, SLICE):
        if ended():
            return None
        list_pairs(lattice, tally, path, first, min(first + SLICE, lattice.size))
    return pairs


def least_work(model: ChoiceModel) -> Floats:
    """Return the least time of all devices together for each supernode, shape (n,)."""
    choices, problem = model.choices, model.problem
    fewest = int(model.shapes.copies.min())
    shared = fewest * (1 - SLACK) if fewest > 1 else 1.0
    time = np.full(len(choices.degree), np.inf)
    for d in np.flatnonzero(model.shapes.copies == fewest).tolist():
        at = choices.degree == model.shapes.degree[d]
        time[at] = choices.value[d, at] * model.shapes.degree[d] * shared
    least = np.minimum.reduceat(time, choices.start[:-1])
    found = np.zeros(problem.n)
    np.add.at(found, np.repeat(np.arange(problem.n), np.diff(choices.of_node)), least)
    return found


def least_load(model: ChoiceModel) -> float:
    """Return a lower bound: all work shared by all devices, or the largest least load of a choice."""
    choices = model.choices
    by_way = np.full(len(choices.degree), np.inf)
    for d, degree in enumerate(model.shapes.degree.tolist()):
        at = choices.degree == degree
        by_way[at] = np.minimum(by_way[at], choices.value[d, at])
    alone = np.minimum.reduceat(by_way, choices.start[:-1]).max()
    return float(max(alone, least_work(model).sum() / model.devices))
