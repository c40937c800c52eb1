"""The stages of a plan: what each holds and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from partitioner.evaluation.chosen import NONE, choose
from partitioner.evaluation.loads import DeviceLoad
from partitioner.workload.graph import Graph, Ints
from partitioner.workload.modules import modules_of

OWN = "own figures"


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
    degree
        How many of its devices run each copy of it together.
    ways
        How many nodes run by each alternative, and by :data:`OWN`; empty if all run by their own figures.
    """

    devices: tuple[str, ...]
    layers: tuple[str, ...]
    parameters: float | None
    memory: float
    load: float
    bubble: float | None = None
    degree: int = 1
    ways: Mapping[str, int] = field(default_factory=dict)

    @property
    def copies(self) -> int:
        """How many copies of the stage there are."""
        return len(self.devices) // self.degree

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON; degree and ways are left out if no node has a choice."""
        record = asdict(self)
        if not self.ways:
            del record["degree"], record["ways"]
        return record


def stage_loads(
    graph: Graph,
    placement: Mapping[Any, str],
    loads: Sequence[DeviceLoad],
    stages: Sequence[str],
    replicas: Mapping[str, Sequence[str]],
    bubbles: Mapping[str, float] | None = None,
    stage_of: Mapping[Any, int] | None = None,
    alternatives: Mapping[Any, str] = NONE,
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
    alternatives
        The name of the alternative of each node that does not run by its own figures.
    """
    if not stages:
        return ()
    number = {device: i for i, device in enumerate(stages)}
    of = {node: number[placement[node]] for node in graph.ids} if stage_of is None else stage_of
    home = np.array([of[node] for node in graph.ids], dtype=np.int64)
    layers = module_names(graph, home, len(stages)) if graph.layer_labels else [()] * len(stages)
    ways, chosen = _ways(graph, home, len(stages), alternatives), choose(graph, alternatives)
    degree = np.ones(len(stages), dtype=np.int64)
    np.maximum.at(degree, home, chosen.degree)
    known = chosen.graph.parts[0].any()
    parameters = np.bincount(home, chosen.graph.parts[0], len(stages)).tolist()
    of_device = {load.name: load for load in loads}
    return tuple(
        StageLoad(
            devices=(device, *replicas.get(device, ())),
            layers=layers[i],
            parameters=parameters[i] if known else None,
            memory=of_device[device].memory,
            load=of_device[device].load,
            bubble=None if bubbles is None else bubbles[device],
            degree=int(degree[i]),
            ways=ways[i],
        )
        for i, device in enumerate(stages)
    )


def _ways(graph: Graph, home: Ints, count: int, chosen: Mapping[Any, str]) -> list[dict[str, int]]:
    """Return how many nodes of each stage run in which way: by own figures, then the most frequent first."""
    found = [Counter[str]() for _ in range(count)]
    for node, stage in zip(graph.ids, home.tolist(), strict=True):
        found[stage][chosen.get(node, OWN)] += 1
    return [
        dict(sorted(each.items(), key=lambda item: (item[0] != OWN, -item[1]))) if set(each) - {OWN} else {}
        for each in found
    ]


def module_names(graph: Graph, home: Ints, count: int) -> list[tuple[str, ...]]:
    """Return the modules of which a forward node is in each of the `count` stages, in forward order.

    `home`, shape (n,), has the stage of every node.
    """
    modules = modules_of(graph)
    forward = ~graph.backward
    pairs = np.unique(np.stack((home[forward], modules.of[forward]), axis=1), axis=0).tolist()
    return [tuple(modules.names[module] for at, module in pairs if at == stage) for stage in range(count)]
