"""What the load, the memory and the limits of a stage depend on, in the arrays that the compiled walk reads.

A stage is the difference of two ideals. There are K kinds of devices, n supernodes, E nets, G groups of
devices, S states of devices in use and I ideals; R is the largest number of replicas of a stage, and D the
number of devices. If memory depends on the devices behind a stage, the stages placed so far run *behind*
those that are placed later, because the problem is then a turned one (:mod:`partitioner.methods.dp.forms`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.dp.chain import growth_of
from partitioner.methods.dp.lattice import Ints32
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.pipeline import UNLIMITED, Pipeline
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.devices import COMMUNICATION_MODELS
from partitioner.workload.in_flight import samples_in_flight

Ints16 = NDArray[np.int16]
Bools = NDArray[np.bool_]
MOST_MEMORY = 1e300  # of a device; what is infinite does not fit it
NO_PASSES: Ints = np.zeros(0, np.int64)
NO_GROUPS: Ints16 = np.empty((0, 0, 0), np.int16)


class DeviceStates(NamedTuple):
    """The states: how many devices of each kind are in use, and, if it is counted, the number of stages.

    Parameters
    ----------
    left
        Shape (S, K): the largest number of devices that the next stage may have.
    stride, jump
        Shape (K,): a stage on r devices of kind k leads from state s to ``s + r * stride[k] + jump[k]``.
    fewest
        Shape (K,): the smallest number of devices of a stage.
    behind
        Shape (S,): how many devices of all kinds are in use.
    dominance
        Whether a state with fewer devices is at least as good.
    """

    left: Ints
    stride: Ints
    jump: Ints
    fewest: Ints
    behind: Ints
    dominance: bool


class PipelineSearchSpec(NamedTuple):
    """The pipelines that the sweep looks for.

    Parameters
    ----------
    summed
        Whether the value of a chain is the sum of its loads; else it is the largest one.
    threshold
        Only stages of at most this load count.
    limit
        Only chains of at most this value count, including `rest` if the value is a sum.
    floor
        Values up to this one count as equal.
    capacity
        Shape (S,): joint capacity of the devices that a state leaves.
    remaining, above
        Shapes (I,) and (n,): weight of the supernodes outside an ideal, and weight that a walk can no longer
        add once it has skipped a supernode.
    rest
        Shape (I,): the least sum of the loads of the supernodes outside an ideal.
    growth, easiest
        Shapes (K, n) and (K, I), see :class:`partitioner.methods.dp._chain_core.ChainSearchSpec`; for one
        device.
    open
        Shape (n,): whether the supernode may be added.
    """

    summed: bool
    threshold: float
    limit: float
    floor: float
    capacity: Floats
    remaining: Floats
    above: Floats
    rest: Floats
    growth: Floats
    easiest: Ints32
    open: Bools


class LinkedTable(NamedTuple):
    """The table, shape (I, G * G, S) each: by ideal, pair of groups and state.

    The first group of the pair is that of the last stage, the second one that of the next stage. Both are 0
    for the empty ideal; the second one is 0 for the full ideal.

    Parameters
    ----------
    value
        The smallest value of stages that hold an ideal, infinity if there are none.
    origin, kind, copies
        The ideal before the stage placed last, and the kind and the number of its devices.
    before
        The group of the stage before that one.
    """

    value: Floats
    origin: Ints32
    kind: Ints16
    copies: Ints32
    before: Ints16


class PipelineTable(NamedTuple):
    """The table of the dynamic program, shape (I, S) each.

    Parameters
    ----------
    value
        The smallest value of stages that hold an ideal, infinity if there are none.
    origin, kind, copies
        The ideal before the stage placed last, and the kind and the number of its devices.
    """

    value: Floats
    origin: Ints32
    kind: Ints16
    copies: Ints32

    def linked(self) -> LinkedTable:
        """Return the same table with one pair of groups, on the same memory."""
        return LinkedTable(
            self.value[:, None], self.origin[:, None], self.kind[:, None], self.copies[:, None], NO_GROUPS
        )


class StageCosts(NamedTuple):
    """The terms of the load of a stage.

    Parameters
    ----------
    work
        Shape (K, n), or (2, K, n) where a stage has a load in each of two passes: time, infinity where a kind
        may not run a supernode.
    transfer_factor
        Shape (K,): the time of a transfer of cost 1.
    communication
        The number of the communication model.
    net_start, net
        Rows over supernodes: the nets of each.
    pins, source
        Shape (E,): how many supernodes a net has, and the supernode that makes the tensor.
    enter, leave
        Shape (E,): the cost to a stage of bringing the tensor in, and of sending it out.
    weights, bandwidth, message, added
        Weights that replicas exchange (n,), the bandwidth for that and what is sent in the latency of a
        message (K,) each, and whether the time of the exchange is added to the work, or runs at the same
        time.
    made, read
        With two passes, shape (E,) and rows over supernodes: the pass in which the tensor is made, and the
        first one in which a supernode reads each of its nets; else empty.
    """

    work: Floats
    transfer_factor: Floats
    communication: int
    net_start: Ints
    net: Ints
    pins: Ints
    source: Ints
    enter: Floats
    leave: Floats
    weights: Floats
    bandwidth: Floats
    message: Floats
    added: bool
    made: Ints = NO_PASSES
    read: Ints = NO_PASSES


class MemoryModel(NamedTuple):
    """The memory that a stage takes on each of its devices.

    Parameters
    ----------
    size, parameters, activations, workspace
        Shape (n,): memory of each supernode, see :class:`partitioner.problem.pipeline.Pipeline`.
    memory
        Shape (K,): memory of a device.
    in_flight, versions
        Shape (D + 1, R + 1): samples and versions of the weights that a stage holds, by the number of
        devices behind it and of its replicas.
    least_in_flight, least_versions
        Shape (S, K): the least of these over the numbers of replicas that a state allows.
    staged
        Whether memory depends on the number of devices behind a stage, or of its replicas.
    """

    size: Floats
    parameters: Floats
    activations: Floats
    workspace: Floats
    memory: Floats
    in_flight: Floats
    versions: Floats
    least_in_flight: Floats
    least_versions: Floats
    staged: bool


class StageLimits(NamedTuple):
    """The limits on every stage.

    Parameters
    ----------
    nodes, fewest_nodes, most_nodes
        Shape (n,): the user's nodes in each supernode; and the range of their sum.
    layer_start, layer, fewest_layers, most_layers, by_layers
        Rows over supernodes: the layers of each; the range of the number of a stage's layers; and whether
        there is such a range.
    pinned
        Shape (n,): to how many devices a supernode is pinned; a stage can have at most one for each replica.
    adjacent_start, adjacent, by_neighbours
        Rows over supernodes: those that share an edge with each; and whether edges may only join neighbouring
        stages.
    """

    nodes: Ints
    fewest_nodes: int
    most_nodes: int
    layer_start: Ints
    layer: Ints
    fewest_layers: int
    most_layers: int
    by_layers: bool
    pinned: Ints
    adjacent_start: Ints
    adjacent: Ints
    by_neighbours: bool


class TensorEnds(NamedTuple):
    """What is known of the other ends of a tensor that enters or leaves a stage.

    Without groups all devices are in one group and every link has the factor 1. A table of groups knows the
    groups of the stages next to each other, and one supernode of each: `linked`. A list of stages knows which
    supernodes a neighbour surely holds: `listed`.

    Parameters
    ----------
    linked, listed
        Which of the two is needed of each stage that the walk lists.
    group
        Shape (K,): the group of every kind.
    link
        Shape (G or 2 G, the same): the factor on the cost of a transfer between two groups.
    unknown
        Shape (G,): the factor between a group and a stage whose group is not known: the least one, which
        makes loads lower bounds, or the largest one, which makes them upper bounds.
    upper
        Whether loads are upper bounds.
    one_below, one_above
        Shape (I,), if linked: the only supernode whose removal leaves an ideal, and the only one that may
        follow it; -1 if there are several.
    real, window
        G, the number of groups; and the most supernodes of a short stage.
    pin_start, pin
        If listed, rows over nets: the supernodes of each.
    size
        Shape (I,), if listed: the supernodes of each ideal.
    below, above
        Shape (n,), if listed: how many supernodes must be placed with each one or before it, and with it or
        after it.
    """

    linked: bool
    listed: bool
    group: Ints
    link: Floats
    unknown: Floats
    upper: bool
    one_below: Ints
    one_above: Ints
    real: int
    window: int
    pin_start: Ints
    pin: Ints
    size: Ints
    below: Ints
    above: Ints


class StageTerms(NamedTuple):
    """All on which the load, the memory and the limits of a stage depend."""

    costs: StageCosts
    ends: TensorEnds
    memory: MemoryModel
    limits: StageLimits


def one_group(kinds: int) -> TensorEnds:
    """Return the ends of tensors where all devices have the same links."""
    none = np.zeros(0, np.int64)
    group, link = np.zeros(kinds, np.int64), np.ones((1, 1))
    return TensorEnds(
        False, False, group, link, np.ones(1), True, none, none, 1, 0, none, none, none, none, none
    )


def costs_of(problem: Problem) -> StageCosts:
    """Return the terms of the loads of stages, which have one device each if the problem has no pipeline."""
    nets, pipeline = problem.nets, problem.pipeline
    return StageCosts(
        work=np.ascontiguousarray(problem.work()),
        transfer_factor=problem.transfer_factor,
        communication=COMMUNICATION_MODELS.index(problem.communication),
        net_start=nets.of_node.start,
        net=nets.of_node.items,
        pins=np.diff(nets.pins.start),
        source=nets.source,
        enter=nets.cost,
        leave=nets.cost,
        weights=np.zeros(problem.n) if pipeline is None else pipeline.weights,
        bandwidth=np.ones(len(problem.count)) if pipeline is None else pipeline.bandwidth,
        message=np.zeros(len(problem.count)) if pipeline is None else pipeline.message,
        added=pipeline is None or pipeline.added,
    )


def costs_by_pass(problem: Problem) -> StageCosts:
    """Return the terms of the loads of stages in each of two passes."""
    return costs_of(problem)._replace(
        work=work_by_pass(problem), made=problem.nets.made, read=read_of_node(problem)
    )


def work_by_pass(problem: Problem) -> Floats:
    """Return the time of each pass, shape (2, K, n); infinity where a kind may not run a supernode."""
    return np.ascontiguousarray(np.where(problem.allowed, problem.time.transpose(1, 0, 2), np.inf))


def read_of_node(problem: Problem) -> Ints:
    """Return the first pass in which supernodes read their nets, in the order of `Nets.of_node`."""
    return problem.nets.read[np.argsort(problem.nets.pins.items, kind="stable")]


def memory_model_of(problem: PipelineProblem, states: DeviceStates, behind: int = 0) -> MemoryModel:
    """Return the memory that stages take, with `behind` further devices behind all of them."""
    pipeline = problem.pipeline
    size, parameters, activations = pipeline.memory_of(problem.size)
    most = int(states.left.max(initial=0))
    samples, versions = _held(pipeline, behind + int(states.behind.max()), most)
    scheduled = float(pipeline.schedule is not None)
    lightest = [np.minimum.accumulate(table, axis=1) for table in (samples, versions)]
    return MemoryModel(
        size=size,
        parameters=parameters,
        activations=activations,
        workspace=scheduled * pipeline.workspace,
        memory=np.minimum(problem.memory, MOST_MEMORY),
        in_flight=samples[behind:],
        versions=versions[behind:],
        least_in_flight=lightest[0][behind + states.behind[:, None], states.left],
        least_versions=lightest[1][behind + states.behind[:, None], states.left],
        staged=pipeline.fewest > 1 or len(pipeline.divided) > 0 or bool(np.ptp(samples[:, 1:]) > 0),
    )


def stage_limits_of(problem: Problem) -> StageLimits:
    """Return the limits on every stage; they allow all stages if the problem has no pipeline."""
    pipeline = problem.pipeline
    if pipeline is None:
        return _no_limits(problem.n)
    limits = pipeline.limits
    return StageLimits(
        nodes=pipeline.nodes,
        fewest_nodes=limits.nodes[0],
        most_nodes=limits.nodes[1],
        layer_start=pipeline.layers.start,
        layer=pipeline.layers.items,
        fewest_layers=limits.layers[0],
        most_layers=limits.layers[1],
        by_layers=limits.layers != (0, UNLIMITED),
        pinned=np.diff(pipeline.pinned.start),
        adjacent_start=pipeline.adjacent.start,
        adjacent=pipeline.adjacent.items,
        by_neighbours=limits.neighbours,
    )


def _no_limits(n: int) -> StageLimits:
    none, start, zeros = np.zeros(0, np.int64), np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    return StageLimits(
        zeros, 0, UNLIMITED, start, none, 0, UNLIMITED, False, zeros, start, none, False
    )  # fmt: skip


def stage_growth(problem: PipelineProblem) -> Floats:
    """Return :func:`partitioner.methods.dp.chain.growth_of`, shape (K, n); infinity if there are limits."""
    return np.full(problem.work().shape, np.inf) if is_bound(problem) else growth_of(problem)


def is_bound(problem: Problem) -> bool:
    """Whether the user's limits or pins to devices restrict which stages are allowed."""
    pipeline, limits = problem.pipeline, problem.limits
    pinned = pipeline is not None and len(pipeline.pinned.items) > 0
    return limits.rigid or limits.neighbours or pinned


def _held(pipeline: Pipeline, behind: int, most: int) -> tuple[Floats, Floats]:
    """Return samples and versions of weights that a stage holds, shape (behind + 1, most + 1) each.

    They are infinite for fewer devices than a stage must have. Where r copies divide memory, versions are
    1 / r, see :meth:`partitioner.problem.pipeline.Pipeline.memory_of`.
    """
    found = np.ones((2, behind + 1, most + 1))
    if pipeline.schedule is not None:
        found = _held_under(pipeline.schedule, pipeline.microbatches, behind, most).copy()
    if len(pipeline.divided):
        found[1] = [np.inf, *(1 / np.arange(1, most + 1))]
    if pipeline.fewest > 1:
        found[:, :, : pipeline.fewest] = np.inf
    return found[0], found[1]


@lru_cache(maxsize=4)
def _held_under(schedule: str, microbatches: int | None, behind: int, most: int) -> Floats:
    table = np.full((behind + 1, most + 1, 2), np.inf)
    for replicas in range(1, most + 1):
        table[:, replicas] = [
            samples_in_flight(schedule, b, replicas, microbatches) for b in range(behind + 1)
        ]
    return table.transpose(2, 0, 1)
