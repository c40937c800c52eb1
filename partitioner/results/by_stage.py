"""The stages of a plan: what each holds and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.evaluation.result import DeviceLoad
from partitioner.workload.graph import Graph, Ints
from partitioner.workload.modules import modules_of


@dataclass(frozen=True)
class StageLoad:
    """A stage of a plan.

    Parameters
    ----------
    devices
        Its device, then the further devices that hold a copy of it.
    layers
        The layers, and the titles of forward nodes without a layer, in forward order; empty if the graph
        has no layers. A layer that is cut is in several stages.
    parameters
        The memory of the parameters of its nodes; None if the graph gives no parameters.
    memory, load
        Those of its first device, with all stages that it has, see :class:`DeviceLoad`.
    bubble
        The fraction of the makespan in which its first device is idle; None if the plan is not simulated.
    """

    devices: tuple[str, ...]
    layers: tuple[str, ...]
    parameters: float | None
    memory: float
    load: float
    bubble: float | None = None


def stage_loads(
    graph: Graph,
    placement: Mapping[Any, str],
    loads: Sequence[DeviceLoad],
    stages: Sequence[str],
    replicas: Mapping[str, Sequence[str]],
    bubbles: Mapping[str, float] | None = None,
    stage_of: Mapping[Any, int] | None = None,
) -> tuple[StageLoad, ...]:
    """Return the stages of a placement in pipeline order.

    Parameters
    ----------
    graph, placement
        The graph, and the device of every node.
    loads
        What each device holds and costs.
    stages
        The first device of every stage, in pipeline order.
    replicas
        The further devices of stages.
    bubbles
        The bubble of each device, if the plan is simulated.
    stage_of
        The number of every node's stage, if devices have several stages.
    """
    if not stages:
        return ()
    number = {device: i for i, device in enumerate(stages)}
    of = {node: number[placement[node]] for node in graph.ids} if stage_of is None else stage_of
    home = np.array([of[node] for node in graph.ids], dtype=np.int64)
    layers = module_names(graph, home, len(stages)) if graph.layer_labels else [()] * len(stages)
    known = graph.parts[0].any()
    parameters = np.bincount(home, graph.parts[0], len(stages)).tolist()
    of_device = {load.name: load for load in loads}
    return tuple(
        StageLoad(
            devices=(device, *replicas.get(device, ())),
            layers=layers[i],
            parameters=parameters[i] if known else None,
            memory=of_device[device].memory,
            load=of_device[device].load,
            bubble=None if bubbles is None else bubbles[device],
        )
        for i, device in enumerate(stages)
    )


def module_names(graph: Graph, home: Ints, count: int) -> list[tuple[str, ...]]:
    """Return the modules of which a forward node is in each of the `count` stages, in forward order.

    `home`, shape (n,), has the stage of every node.
    """
    modules = modules_of(graph)
    forward = ~graph.backward
    pairs = np.unique(np.stack((home[forward], modules.of[forward]), axis=1), axis=0).tolist()
    return [tuple(modules.names[module] for at, module in pairs if at == stage) for stage in range(count)]
