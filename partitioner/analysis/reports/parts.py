"""The parts of a plan as a report shows them: its stages, or its devices if they form no chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.analysis.plots.colours import device_look
from partitioner.analysis.plots.loads import stage_title
from partitioner.evaluation.loads import DeviceLoad
from partitioner.results.by_stage import module_names
from partitioner.results.plan import Plan
from partitioner.workload.graph import Graph, Ints


@dataclass(frozen=True)
class PlanPart:
    """A stage of a plan, or a device of a plan that is no chain.

    Parameters
    ----------
    title
        ``"stage 1"`` and so on, or the device's name.
    devices
        Its device, then the further devices that hold a copy of it.
    colour
        The colour of its nodes, which repeats after 16 parts.
    layers
        The layers, and the titles of forward nodes without a layer.
    nodes
        How many nodes it has.
    load
        What its first device holds and costs.
    """

    title: str
    devices: tuple[str, ...]
    colour: str
    layers: tuple[str, ...]
    nodes: int
    load: DeviceLoad

    @property
    def place(self) -> str:
        """The title and the device, such as ``"stage 1, accelerator0 x2"``."""
        device = stage_title(self.devices[0], len(self.devices), "")
        return device if self.title == self.devices[0] else f"{self.title}, {device}"


def parts_of(graph: Graph, plan: Plan, loads: Sequence[DeviceLoad]) -> tuple[tuple[PlanPart, ...], Ints]:
    """Return the parts of a plan in pipeline order, and the number of every node's part, shape (n,)."""
    of_device = {load.name: load for load in loads}
    used = set(plan.placement.values())
    names = plan.stages or tuple(load.name for load in loads if load.name in used)
    home = _home(graph, plan, names)
    layers, nodes = module_names(graph, home, len(names)), np.bincount(home, minlength=len(names)).tolist()
    parts = tuple(
        PlanPart(
            title=f"stage {i + 1}" if plan.stages else name,
            devices=(name, *plan.replicas.get(name, ())),
            colour=device_look(i)[0],
            layers=layers[i],
            nodes=nodes[i],
            load=of_device[name],
        )
        for i, name in enumerate(names)
    )
    return parts, home


def _home(graph: Graph, plan: Plan, names: Sequence[str]) -> Ints:
    number = {name: i for i, name in enumerate(names)}
    of: Mapping[object, int] = plan.stage_of or {node: number[at] for node, at in plan.placement.items()}  # type: ignore[assignment]
    return np.array([of[node] for node in graph.ids], dtype=np.int64)
