"""The problem of stages with alternatives in the arrays that the kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import AlternativesProblem
from partitioner.problem.ways import NodeWays
from partitioner.workload.in_flight import samples_in_flight

ASYNCHRONOUS = "1f1b_async"  # the schedule that keeps a version of the weights for every sample in flight
RESYNC = 4.0  # of Piper's model: transfers of its weights for an exchange among copies
ALL_WORKSPACE = np.inf


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
        for count in range(1, min(most, devices // degree) + 1)
        if not (problem.piper and pipeline.microbatches and pipeline.microbatches % count)
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
