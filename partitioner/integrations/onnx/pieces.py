"""The pieces of an ONNX model, one file for each stage of a plan."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partitioner.base.argument_types import require_type
from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable, Flaw, WorkloadError
from partitioner.base.files import path_name, write_bytes
from partitioner.integrations.onnx.cuts import ModelCut, cuts_of
from partitioner.results.plan import Plan
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
        If a module is cut in two.
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
