"""The tensors that cross the boundaries of a plan's stages, for tools that cut a model file into pieces."""

from __future__ import annotations

import json

import numpy as np

from partitioner.exports.module_stages import Stages
from partitioner.exports.stages import stages_of
from partitioner.exports.target import Target
from partitioner.results.plan import Plan
from partitioner.workload.graph import Graph, Ints
from partitioner.workload.modules import modules_of
from partitioner.workload.workload import Workload

ONNX = Target("onnx", ties=True, anywhere=True)


def boundaries(plan: Plan, workload: Workload) -> str:
    """Return each stage's device, modules, inputs and outputs, as JSON, and its nodes if it cuts a module.

    A tensor has the title of the node that makes it. Inputs of a stage are made in other stages; outputs are
    read there. Inputs and outputs of the whole model are not listed: the graph does not name them.

    Raises
    ------
    ExportError
        If several nodes have one title, or a stage has several devices.
    """
    found, modules = stages_of(workload, plan, ONNX), modules_of(workload.graph)
    inside = [np.unique(modules.of[_forward(workload.graph, found, i)]) for i in range(len(found.stages))]
    several = np.bincount(np.concatenate(inside)) > 1
    stages = [
        {
            "device": stage.device,
            "modules": [modules.names[k] for k in inside[i].tolist()],
            "inputs": _titles(workload.graph, found, i, 1),
            "outputs": _titles(workload.graph, found, i, 0),
            **({"nodes": stage.modules} if several[inside[i]].any() else {}),
        }
        for i, stage in enumerate(found.stages)
    ]
    return json.dumps({"stages": stages}, indent=1) + "\n"


def _forward(graph: Graph, found: Stages, stage: int) -> Ints:
    """Return the forward nodes of a stage."""
    return np.flatnonzero((found.of == stage) & ~graph.backward)


def _titles(graph: Graph, found: Stages, stage: int, end: int) -> list[str]:
    """Return the producers of the edges of which that end alone (0 producer, 1 consumer) is in the stage."""
    edges = graph.edges[~graph.backward[graph.edges].any(axis=1)]
    inside = found.of[edges] == stage
    crossing = edges[inside[:, end] & ~inside[:, 1 - end]]
    return [graph.names[i] for i in np.unique(crossing[:, 0]).tolist()]
