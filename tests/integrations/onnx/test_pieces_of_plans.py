"""The pieces of a plan of a model's own graph, run one after another, compute what the model does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, Plan, Workload, expressible, solve
from partitioner.integrations.onnx import ModelPiece, graph_of, write_pieces
from tests.integrations.onnx.models import cnn, onnx, tied_network, transformer

runtime: Any = pytest.importorskip(
    "onnxruntime", reason="onnxruntime is missing: pip install 'dnn-partitioner[onnx]'"
)
RNG = np.random.default_rng(1)
MODELS: dict[str, tuple[Any, dict[str, Any], dict[str, int]]] = {
    "cnn": (cnn("batch"), {"x": RNG.random((2, 3, 8, 8), dtype=np.float32)}, {"batch": 2}),
    "tied": (tied_network(), {"x": RNG.random((5, 4), dtype=np.float32)}, {"batch": 5}),
    "transformer": (transformer(4), {"ids": RNG.integers(0, 20, (3, 5))}, {"batch": 3, "time": 5}),
}


def run(content: bytes | Path, inputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a model in ONNX Runtime by name, without optimizations, which differ with the piece."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(
        str(content) if isinstance(content, Path) else content, options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def composed(pieces: tuple[ModelPiece, ...], inputs: dict[str, Any]) -> dict[str, Any]:
    """All tensors that the pieces make, each piece given the tensors that it names."""
    known = dict(inputs)
    for piece in pieces:
        known |= run(piece.path, {name: known[name] for name in piece.inputs})
    return known


def random_chain(graph: Graph, seed: int) -> tuple[Workload, Plan]:
    """A workload with a plan of stages that are intervals of the graph's order."""
    workload = Workload(graph, Devices.accelerated(4))
    blank = solve(Graph.from_arrays({"accelerator": [1.0]}), Devices.accelerated(1), method="single_device")
    homes = np.sort(np.random.default_rng(seed).integers(0, 4, len(graph))).tolist()
    placement: dict[int | str, str] = {
        node: f"accelerator{home}" for node, home in zip(graph.ids, homes, strict=True)
    }
    stages = tuple(dict.fromkeys(placement.values()))
    digest, devices = workload.sha256, workload.devices
    return workload, replace(
        blank, placement=placement, stages=stages, hardware=devices, workload_sha256=digest
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", MODELS)
def test_pieces_of_random_chains_compute_what_the_model_does(name: str, seed: int, tmp_path: Path) -> None:
    model, inputs, dims = MODELS[name]
    granularity = "layer" if name == "transformer" else "operator"
    graph = graph_of(model, bandwidth=1e9, dims=dims, granularity=granularity)
    onnx.save(model, tmp_path / "model.onnx")
    workload, plan = random_chain(graph, seed)
    pieces = write_pieces(workload, plan, tmp_path / "model.onnx", tmp_path)
    assert len(pieces) == len(plan.stages)
    found = composed(pieces, inputs)
    for output, value in run(model.SerializeToString(), inputs).items():
        assert np.array_equal(found[output], value)


def test_the_best_plan_of_all_is_cut(tmp_path: Path) -> None:
    """No plan is better than those that can be cut; the head and the embedding both get the tied weight."""
    model, inputs, dims = MODELS["transformer"]
    graph = graph_of(model, bandwidth=1e13, dims=dims)
    workload = Workload(graph, Devices.accelerated(3))
    plan = solve(graph, workload.devices, constraints=expressible("onnx"))
    assert plan.value == pytest.approx(solve(graph, workload.devices).value)
    onnx.save(model, tmp_path / "model.onnx")
    pieces = write_pieces(workload, plan, tmp_path / "model.onnx", tmp_path)
    assert len(pieces) > 1
    tied = [
        piece
        for piece in pieces
        if "embed.weight" in {each.name for each in onnx.load(piece.path).graph.initializer}
    ]
    assert len(tied) == 2
    assert np.array_equal(composed(pieces, inputs)["y"], run(model.SerializeToString(), inputs)["y"])
