"""Models for pipelines, and placements that cut them where they are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from partitioner import Graph
from partitioner.integrations.torch import graph_of
from tests.integrations.torch.models import made
from tests.integrations.torch.placing.models import Constants


class Recurrent(nn.Module):  # type: ignore[misc]
    """Layers of LSTM with a residual connection, as translation models have them."""

    def __init__(self, width: int = 8, layers: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(width, 5)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x)[0]
        return self.head(x)


class Untied(nn.Module):  # type: ignore[misc]
    """Layers with two outputs, one of which is read again at the end."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Any, scale: Any) -> Any:
        first, second = self.a(x).chunk(2, -1)
        hidden = torch.relu_(self.b(torch.cat([second, first], -1)))
        return self.c(hidden * scale).sum(-1), first


class Masked(nn.Module):  # type: ignore[misc]
    """Arguments in a dict and by name, constants, one mask for all samples; a dict as result."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x: dict[str, Any], power: int, *, mask: Any, name: str, scale: Any = None) -> Any:
        hidden = torch.tanh(self.a(x["first"]) * mask) ** power
        found = self.b(hidden + x["second"]) * (1.0 if scale is None else scale)
        return {"found": found, "parts": [hidden, self.bias], "mean": found.mean(), "name": name, "no": None}


def masked() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return this model in float64 and the arguments of a call for two samples."""
    torch.manual_seed(0)
    x = {key: torch.randn(2, 3, 6, dtype=torch.float64) for key in ("first", "second")}
    kwargs = {"mask": torch.randn(3, 6, dtype=torch.float64), "name": "this", "scale": None}
    return Masked().double(), (x, 2), kwargs


def in_double(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a model in float64 and the arguments of a call."""
    torch.manual_seed(0)
    args: tuple[Any, ...]
    if name == "lstm":
        model, args = Recurrent(), (torch.randn(2, 4, 8),)
    elif name == "pair":
        model, args = Untied(), (torch.randn(2, 3, 6), torch.randn(2, 3, 6))
    elif name == "constants":
        model, args = Constants(), (torch.randn(2, 4),)
    else:
        model, args = made(name)
    return model.double(), tuple(one.double() if one.is_floating_point() else one for one in args)


def captured(name: str, training: bool) -> tuple[Any, tuple[Any, ...], Graph]:
    """Return a model, the arguments of a call, and its graph by operators."""
    model, args = in_double(name)
    graph = graph_of(model, args, device="CPU", dtype="float32", bandwidth=1e12, training=training)
    return model, args, graph


def cut_at(graph: Graph, shares: Sequence[float], homes: Sequence[int]) -> dict[Any, str]:
    """Return the devices of the nodes: the forward pass is cut at shares of its nodes, in their order."""
    forward = [node for node, late in zip(graph.ids, graph.backward.tolist(), strict=True) if not late]
    device = {
        node: f"accelerator{homes[sum(i >= share * len(forward) for share in shares)]}"
        for i, node in enumerate(forward)
    }
    device |= {node: device[str(node).removesuffix("/backward")] for node in graph.ids if node not in device}
    return of_one_colour(graph, device)


def of_one_colour(graph: Graph, device: dict[Any, str]) -> dict[Any, str]:
    """Return the placement with each class on the device of its first node."""
    home: dict[int, str] = {}
    for node, colour in zip(graph.ids, graph.color.tolist(), strict=True):
        if colour >= 0:
            device[node] = home.setdefault(colour, device[node])
    return device
