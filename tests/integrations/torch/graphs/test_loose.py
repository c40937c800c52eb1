"""A device map of a captured model names every parameter and buffer, wherever the model keeps it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import partitioner as pt
from partitioner.integrations.torch import graph_of

torch = pytest.importorskip("torch", reason="graphs of torch's models need torch")
from torch import nn  # noqa: E402


class Patches(nn.Module):  # type: ignore[misc]
    """A class token, positions and a bias outside of all modules, and an embedding under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(9, 4)
        self.embed = nn.Embedding(9, 4)
        self.embed.weight = self.shared.weight
        self.token = nn.Parameter(torch.ones(1, 1, 4))
        self.body = nn.Module()
        self.body.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.body.positions = nn.Parameter(torch.ones(1, 3, 4))
        self.register_buffer("unread", torch.ones(2))
        self.head = nn.Linear(4, 9)

    def forward(self, words: Any) -> Any:
        x = torch.cat([self.token.expand(len(words), 1, 4), self.embed(words)], 1) + self.body.positions
        for layer in self.body.layers:
            x = layer(x)
        return self.head(x)


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("granularity", ["module", "block"])
def test_every_tensor_is_below_an_entry_of_the_map(granularity: str, scored: bool) -> None:
    model, words = Patches(), torch.ones(2, 2, dtype=torch.long)
    options: dict[str, Any] = {"training": True, "loss": lambda out: out.sum()} if scored else {}
    graph = graph_of(model, (words,), device="H100", bandwidth=1e9, granularity=granularity, **options)
    devices = pt.Devices.accelerated(2)
    plan = pt.solve(graph, devices, split="free", constraints=pt.expressible("accelerate"))
    found = json.loads(pt.export(pt.Workload(graph, devices), plan, "accelerate"))["device_map"]
    names = [*dict(model.named_parameters(remove_duplicate=False)), *dict(model.named_buffers())]
    for name in names:
        parts = name.split(".")
        assert any(".".join(parts[: count + 1]) in found for count in range(len(parts))), name
    assert {"token", "body.positions", "unread", "shared.weight"} <= set(found)
