"""Models that torch exports keep their modules, and have the FLOPs of torch's own counter."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Workload, expressible, solve
from partitioner.integrations.onnx import graph_of, write_pieces
from tests.integrations.onnx.test_pieces_of_plans import composed, run

REASON = "is missing: pip install torch onnxscript"
torch: Any = pytest.importorskip("torch", reason=f"torch {REASON}")
counting: Any = pytest.importorskip("torch.utils.flop_counter", reason=f"torch {REASON}")


class Attention(torch.nn.Module):  # type: ignore[misc]  # torch may be missing
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + self.out(torch.softmax(q @ k.transpose(1, 2), -1) @ v)


class Decoder(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, words: int = 50, width: int = 16, blocks: int = 3) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.layers = torch.nn.ModuleList(Attention(width) for _ in range(blocks))
        self.head = torch.nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Skipping(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU())
        self.down, self.up = torch.nn.Conv2d(8, 16, 2, 2), torch.nn.ConvTranspose2d(16, 8, 2, 2)
        self.head = torch.nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        wide = self.features(x)
        deep = self.up(torch.relu(self.down(wide)))
        return self.head(torch.cat([wide, deep], 1).mean((2, 3)))


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("name", ["decoder", "skipping"])
def test_an_export_is_read_planned_and_cut(name: str, dynamo: bool, tmp_path: Path) -> None:
    if dynamo:
        pytest.importorskip("onnxscript", reason=f"onnxscript {REASON}")
    torch.manual_seed(0)
    model = (Decoder() if name == "decoder" else Skipping()).eval()
    given = torch.randint(0, 50, (2, 7)) if name == "decoder" else torch.randn(2, 3, 16, 16)
    with torch.no_grad(), counting.FlopCounterMode(display=False) as counter:
        model(given)
    path = tmp_path / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (given,), str(path), dynamo=dynamo, verbose=False, input_names=["given"])
    graph = graph_of(path, bandwidth=1e13)
    assert sum(extra["flops"] for extra in graph.extras.nodes) == counter.get_total_flops()
    layers = graph_of(path, bandwidth=1e13, granularity="layer")
    expected = {"embed", "layers.0", "layers.1", "layers.2", "head"} if name == "decoder" else {"down", "up"}
    assert expected <= set(layers.layer_labels)
    workload = Workload(layers, Devices.accelerated(3))
    plan = solve(layers, workload.devices, constraints=expressible("onnx"))
    pieces = write_pieces(workload, plan, path, tmp_path)
    assert len(pieces) > 1
    inputs = {"given": given.numpy()}
    (output, value), *_ = run(path, inputs).items()
    assert np.array_equal(composed(pieces, inputs)[output], value)
    assert np.allclose(value, model(given).detach().numpy(), atol=1e-4)
