"""The device that determines the value of a plan: its load, and the nodes and tensors that make it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from partitioner.analysis.explanations.question import PlanQuestion
from partitioner.analysis.explanations.room import Room, room_of
from partitioner.analysis.explanations.tensors import TensorTime, tensors_of
from partitioner.analysis.explanations.units import units_of
from partitioner.evaluation.costs import loads_of
from partitioner.evaluation.frame import read_solution
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.time_parts import parts_of_load
from partitioner.planning.objectives import PIPER
from partitioner.problem.measure import Measure
from partitioner.workload.graph import NodeId

MOST = 5  # nodes and tensors that are named
PASSES = ("forward", "backward")
PAIRS = ("compute", "transfer_in", "transfer_out")


@dataclass(frozen=True)
class NodeTime:
    """The time of a node for a sample, on average over the devices that share its stage."""

    node: NodeId
    name: str
    time: float


@dataclass(frozen=True)
class Bottleneck:
    """The device with the largest load, the largest load in one pass, or room for the fewest samples.

    Parameters
    ----------
    device, stages
        Its name, and the numbers from 1 of its stages; empty if the split has none.
    devices
        How many devices share the stage.
    part
        ``"forward"`` or ``"backward"`` if the load is that of one pass only; else empty.
    load, compute, receiving, sending, exchange
        The time per sample that the device is busy, and its parts: processing, transfers in, transfers out,
        and the exchange of weights among replicas.
    collectives, updates
        Of the processing what the devices that divide layers exchange, and the updates of parameters, as far
        as the graph tells them.
    limit
        The largest part: ``"compute"``, ``"transfers"`` (both directions together), ``"receiving"``,
        ``"sending"`` or ``"exchange"``.
    groups
        How many groups its nodes make; the nodes of a group must stay together.
    node_count, tensor_count
        How many nodes and tensors take part in the load.
    nodes, tensors
        Those that take the most time, in decreasing order.
    room
        For objective ``"capacity"`` what limits the samples in flight; else None.
    """

    device: str
    stages: tuple[int, ...]
    devices: int
    part: str
    load: float
    compute: float
    receiving: float
    sending: float
    exchange: float
    collectives: float
    updates: float
    limit: str
    groups: int
    node_count: int
    tensor_count: int
    nodes: tuple[NodeTime, ...]
    tensors: tuple[TensorTime, ...]
    room: Room | None = None

    @property
    def decisive(self) -> tuple[NodeId, ...]:
        """The nodes that are named for what determines the value."""
        return tuple(one.node for one in (self.room.nodes if self.room else self.nodes))


def bottlenecks_of(question: PlanQuestion, evaluation: Evaluation) -> tuple[Bottleneck, ...]:
    """Return the bottleneck; one for each pass if the value adds up the largest loads of both passes."""
    if question.asked.measure is not Measure.LARGEST_LOAD_BY_PASS:
        return (_described(question, evaluation, decisive(evaluation), ""),)
    model = question.devices.communication
    largest = [
        max(
            (_of_pass(model, load, number) for load in evaluation.loads if load.replica_of is None),
            key=lambda load: load.load,
        )
        for number in range(len(PASSES))
    ]
    return tuple(
        _described(question, evaluation, load, part)
        for load, part in zip(largest, PASSES, strict=True)
        if load.load
    )


def decisive(evaluation: Evaluation) -> DeviceLoad:
    """Return the load of the stage with room for the fewest samples, or else with the largest load.

    It is that of the first device of the stage, whose load and memory no replica exceeds.
    """
    return min(
        (load for load in evaluation.loads if load.nodes and load.replica_of is None),
        key=lambda load: (math.inf if load.capacity is None else load.capacity, -load.load),
    )


def _of_pass(communication: str, load: DeviceLoad, number: int) -> DeviceLoad:
    """Return the load of a device in one pass: in each pair of times that of the other pass is 0."""
    parts = [getattr(load, name)[number] for name in PAIRS]
    busy = float(loads_of(communication, *map(np.array, parts)))
    alone: dict[str, Any] = {
        name: (0.0, part) if number else (part, 0.0) for name, part in zip(PAIRS, parts, strict=True)
    }
    return replace(load, load=busy, **alone)


def _described(question: PlanQuestion, evaluation: Evaluation, load: DeviceLoad, part: str) -> Bottleneck:
    """Return the bottleneck that a load is, with the nodes and tensors of its pass."""
    placed, copies, _ = read_solution(question.graph, question.devices, replace(question.plan, order=None))
    graph, position = placed.graph, placed.names.index(load.name)
    time = graph.time[placed.row, np.arange(len(graph))] * placed.time_factor[placed.device]
    mine = placed.device == position
    mine &= graph.backward == (part == PASSES[1]) if part else True
    nodes = [i for i in np.argsort(-time, kind="stable").tolist() if mine[i]]
    tensors = tensors_of(placed, copies, load.name, by_edge=question.evaluated_as is PIPER)
    tensors = [tensor for tensor in tensors if not part or tensor.backward == (part == PASSES[1])]
    own = parts_of_load(placed, load)
    order, share = question.order(evaluation), float(copies.count[position])
    return Bottleneck(
        device=load.name,
        stages=tuple(number for number, name in enumerate(order, 1) if name == load.name),
        devices=1 + sum(other.replica_of == load.name for other in evaluation.loads),
        part=part,
        load=load.load,
        compute=sum(load.compute),
        receiving=sum(load.transfer_in),
        sending=sum(load.transfer_out),
        exchange=load.sync,
        collectives=0.0 if part else own["collectives"],
        updates=0.0 if part else own["updates"],
        limit=_largest(question.devices.communication, load),
        groups=len(units_of(question.graph, question.on(load.name))),
        node_count=len(nodes),
        tensor_count=len(tensors),
        nodes=tuple(NodeTime(graph.ids[i], graph.names[i], float(time[i]) / share) for i in nodes[:MOST]),
        tensors=tuple(tensors[:MOST]),
        room=None if load.capacity is None else room_of(graph, mine, load, evaluation.value, int(share)),
    )


def _largest(communication: str, load: DeviceLoad) -> str:
    """Return the name of the largest part of a load, as the model of communication adds them up."""
    into, out = sum(load.transfer_in), sum(load.transfer_out)
    apart = communication == "duplex"
    transfers = {"receiving": into, "sending": out} if apart else {"transfers": into + out}
    parts = {"compute": sum(load.compute), **transfers, "exchange": load.sync}
    return max(parts, key=lambda name: parts[name])
