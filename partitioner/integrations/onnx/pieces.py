"""The pieces of an ONNX model, one file for each stage of a plan."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partitioner.base.argument_types import require_type
from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable, Flaw, WorkloadError, shown
from partitioner.base.files import path_name, write_bytes
from partitioner.exports.boundaries import ONNX
from partitioner.exports.stages import stages_of
from partitioner.formats.onnx.layers import NODES
from partitioner.formats.onnx.model_file import has_body
from partitioner.formats.onnx.operators import constant_tensors, node_titles
from partitioner.results.plan import Plan
from partitioner.workload.graph import Graph, Ints
from partitioner.workload.input_operators import COPIED as WITH_COPIES
from partitioner.workload.input_operators import FIELD, input_operators
from partitioner.workload.workload import Workload

LARGEST_FILE = 2**31  # bytes, of protobuf


@dataclass(frozen=True)
class ModelPiece:
    """The file of a stage, its device, and its inputs and outputs by the names of tensors."""

    path: Path
    device: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def write_pieces(
    workload: Workload, plan: Plan, model: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> tuple[ModelPiece, ...]:
    """Write the pieces of an ONNX model, ``stage0.onnx`` and so on, one for each stage of a plan.

    Run one after another, each with the outputs of earlier ones and the inputs of the model as its inputs,
    they compute what the model does. A tensor that skips stages is an output of the stage that makes it.

    Parameters
    ----------
    workload
        The workload; the titles of its forward nodes are the names of the model's nodes.
    plan
        A plan of it, of any split.
    model
        The file of the model.
    folder
        The folder of the pieces, which must exist. Nothing is written if a piece cannot be made.

    Raises
    ------
    ExportError
        If the plan breaks a rule of pieces, such as replicated stages.
    WorkloadError
        If the model cannot be read, has nodes that the workload lacks, control flow, tensors of unknown type,
        or a piece would take 2 GiB or more.
    BackendUnavailable
        If the package onnx is not installed.
    """
    require_type("workload", workload, Workload)
    require_type("plan", plan, Plan)
    source = path_name(model)
    whole = _loaded(source)
    cuts = cuts_of(workload, plan, whole.graph, source)
    contents = [_content(whole, cut, source) for cut in cuts]
    pieces = []
    for number, (cut, content) in enumerate(zip(cuts, contents, strict=True)):
        path = Path(folder) / f"stage{number}.onnx"
        write_bytes(path, content)
        pieces.append(ModelPiece(path, cut.device, cut.inputs, cut.outputs))
    return tuple(pieces)


def _loaded(source: str) -> Any:
    """Return the model with the types of all tensors that can be inferred."""
    try:
        import onnx
    except ImportError as error:
        raise BackendUnavailable(f"pieces of ONNX models need onnx: {remedy('onnx')}") from error
    try:
        onnx.checker.check_model(source)
        return onnx.shape_inference.infer_shapes(onnx.load(source))
    except Exception as error:  # onnx raises errors of protobuf, of the system and of its own
        line = " ".join(f"{type(error).__name__}: {error}".split())
        raise WorkloadError(
            [Flaw("file", "", "", f"cannot be read as an ONNX model: {line}")], source
        ) from error


def _content(whole: Any, cut: ModelCut, source: str) -> bytes:
    """Return the file of a piece."""
    from onnx.utils import Extractor

    try:
        piece = Extractor(whole).extract_model(list(cut.inputs), list(cut.outputs))
    except ValueError as error:
        raise WorkloadError(
            [Flaw("model", "", "", f"has tensors of unknown type: {error}")], source
        ) from error
    if piece.ByteSize() >= LARGEST_FILE:
        flaw = Flaw(f"stage on {cut.device}", "", f"{piece.ByteSize()} bytes", "must be less than 2 GiB")
        raise WorkloadError([flaw], source)
    content: bytes = piece.SerializeToString()
    return content


# Where a plan cuts an ONNX model: the tensors that go into each stage and come out of it.

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
    alone, which the workload lacks, are copied to every stage that reads them, and those of inputs alone if
    the plan has copies of them (``input_operators="copied"``).

    Raises
    ------
    ExportError
        If the plan breaks a rule of pieces, such as replicated stages.
    WorkloadError
        Naming each node of the model that is not in the workload or has a body of its own, and each stage
        without outputs.
    """
    found = stages_of(workload, plan, ONNX)
    copied = _copied(workload.graph, graph) if plan.options.get(FIELD) == WITH_COPIES else set()
    homes = _homes(graph, _stage_of(workload.graph, found.of) | dict.fromkeys(copied, COPIED))
    titles = zip(node_titles(graph), graph.node, homes, strict=True)
    flaws = [flaw for title, node, home in titles for flaw in _node_flaws(title, node, home)]
    if flaws:
        raise WorkloadError(flaws, source)
    nodes = list(zip(graph.node, homes, strict=True))
    made = {name: home for node, home in nodes if home != COPIED for name in node.output if name}
    given = {each.name for each in graph.input} - {each.name for each in graph.initializer}
    inputs_of = _inputs_of([node for node, home in nodes if home == COPIED], given)
    into: list[dict[str, None]] = [{} for _ in found.stages]
    out: list[dict[str, None]] = [{} for _ in found.stages]
    for node, home in nodes:
        for name in node.input if home != COPIED else ():
            if name in given or made.get(name, home) != home:
                into[home][name] = None
            into[home] |= dict.fromkeys(inputs_of.get(name, ()))
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


def _copied(graph: Graph, model: Any) -> set[str]:
    """Return the titles of the nodes of the model that depend on inputs alone and make no output of it."""
    alone = _stage_of(graph, np.where(input_operators(graph), COPIED, 0))
    results = {each.name for each in model.output}
    titles = zip(node_titles(model), model.node, strict=True)
    kept = {title for title, node in titles if results.isdisjoint(node.output)}
    return {title for title, home in alone.items() if home == COPIED and title in kept}


def _inputs_of(copied: Sequence[Any], given: Set[str]) -> dict[str, dict[str, None]]:
    """Return the inputs of the model that each tensor of copied nodes depends on."""
    found: dict[str, dict[str, None]] = {}
    for node in copied:
        read = dict.fromkeys(name for name in node.input if name in given)
        for name in node.input:
            read |= found.get(name, {})
        found |= dict.fromkeys(node.output, read)
    return found


def _stage_of(graph: Graph, of: Ints) -> dict[str, int]:
    """Return the stage of each node of the model, by title; `of` has that of each node of the graph."""
    stage: dict[str, int] = {}
    for i in np.flatnonzero(~graph.backward).tolist():
        listed = graph.extras.nodes[i].get(NODES) if i < len(graph.extras.nodes) else None
        names = listed if isinstance(listed, list) else [graph.names[i]]
        stage |= dict.fromkeys(names, int(of[i]))
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
