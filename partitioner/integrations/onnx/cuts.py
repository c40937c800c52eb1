"""Where a plan cuts an ONNX model: the tensors that go into each stage and come out of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.exports.boundaries import ONNX
from partitioner.exports.module_stages import Stages
from partitioner.exports.stages import stages_of
from partitioner.formats.onnx.layers import NODES
from partitioner.formats.onnx.model_file import has_body
from partitioner.formats.onnx.operators import constant_tensors, node_titles
from partitioner.results.plan import Plan
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload

COPIED = -1  # the stage of nodes of constants alone
UNKNOWN = -2


@dataclass(frozen=True)
class ModelCut:
    """The device of a stage, and the names of the tensors that go into it and come out of it."""

    device: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def cuts_of(workload: Workload, plan: Plan, graph: Any, source: str) -> tuple[ModelCut, ...]:
    """Return the cuts of an ONNX graph, in which nodes are found by the titles of the workload's nodes.

    A node of the workload may list several nodes of the model in its field ``nodes``. Nodes of constants
    alone, which the workload lacks, are copied to every stage that reads them.

    Raises
    ------
    ExportError
        If a module is cut in two.
    WorkloadError
        Naming each node of the model that is not in the workload or has a body of its own, and each stage
        without outputs.
    """
    found = stages_of(workload, plan, ONNX)
    homes = _homes(graph, _stage_of(workload.graph, found))
    titles = zip(node_titles(graph), graph.node, homes, strict=True)
    flaws = [flaw for title, node, home in titles for flaw in _node_flaws(title, node, home)]
    if flaws:
        raise WorkloadError(flaws, source)
    nodes = list(zip(graph.node, homes, strict=True))
    made = {name: home for node, home in nodes if home != COPIED for name in node.output if name}
    given = {each.name for each in graph.input} - {each.name for each in graph.initializer}
    into: list[dict[str, None]] = [{} for _ in found.stages]
    out: list[dict[str, None]] = [{} for _ in found.stages]
    for node, home in nodes:
        for name in node.input if home != COPIED else ():
            if name in given or made.get(name, home) != home:
                into[home][name] = None
            if made.get(name, home) != home:
                out[made[name]][name] = None
    for each in graph.output:
        if each.name in made:
            out[made[each.name]][each.name] = None
    rule = "has no outputs: nothing reads what it makes"
    idle = [
        Flaw(f"stage {i}", "", f"on {found.stages[i].device}", rule)
        for i, names in enumerate(out)
        if not names
    ]
    if idle:
        raise WorkloadError(idle, source)
    devices = [each.device for each in found.stages]
    return tuple(ModelCut(*parts) for parts in zip(devices, map(tuple, into), map(tuple, out), strict=True))


def _stage_of(graph: Graph, found: Stages) -> dict[str, int]:
    """Return the stage of each node of the model, by title."""
    stage: dict[str, int] = {}
    for i in np.flatnonzero(~graph.backward).tolist():
        listed = graph.extras.nodes[i].get(NODES) if i < len(graph.extras.nodes) else None
        names = listed if isinstance(listed, list) else [graph.names[i]]
        stage |= dict.fromkeys(names, int(found.of[i]))
    return stage


def _homes(graph: Any, stage: Mapping[str, int]) -> list[int]:
    """Return the stage of each node."""
    constant = constant_tensors(graph)
    homes = []
    for title, node in zip(node_titles(graph), graph.node, strict=True):
        otherwise = COPIED if all(name in constant for name in node.output) else UNKNOWN
        homes.append(stage.get(title, otherwise))
    return homes


def _node_flaws(title: str, node: Any, home: int) -> Iterator[Flaw]:
    where = f"node {shown(title)}"
    if home == UNKNOWN:
        yield Flaw(where, "", node.op_type, "must have the title of a node of the workload")
    if has_body(node):
        yield Flaw(where, "", node.op_type, "has a body of its own, which cannot be cut off")
