"""Blocks are the layers of a network by its structure: members of lists, and modules that are alike."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from partitioner.integrations.torch import graph_of
from partitioner.workload.modules import modules_of

torch = pytest.importorskip("torch", reason="graphs of torch's models need torch")
from torch import nn  # noqa: E402


class Part(nn.Module):  # type: ignore[misc]
    """Two linear layers side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.head1, self.head2 = (nn.Linear(4, 4) for _ in range(2))

    def forward(self, x: Any) -> Any:
        return self.head1(x) + self.head2(x)


class Other(Part):
    """The same of another class."""


class Stack(nn.Module):  # type: ignore[misc]
    """Modules that run one after another."""

    def __init__(self, **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Any) -> Any:
        for part in self.children():
            x = part(x)
        return x


def row(count: int, name: str = "layer_{}") -> Any:
    return nn.Sequential(OrderedDict((name.format(i), Part()) for i in range(count)))


MODELS = {
    "names with numbers below a container": (row(3), ["layer_0", "layer_1", "layer_2"]),
    "the same deeper": (
        Stack(stem=nn.Linear(4, 4), encoder=Stack(layers=row(2), norm=nn.LayerNorm(4))),
        ["stem", "encoder.layers.layer_0", "encoder.layers.layer_1", "encoder.norm"],
    ),
    "siblings that begin alike": (
        Stack(mixed3a=Part(), mixed3b=Part(), mixed4a=Part(), end=nn.Linear(4, 4)),
        ["mixed3a", "mixed3b", "mixed4a", "end"],
    ),
    "siblings in a module": (Stack(body=Stack(cell1=Part(), cell2=Part())), ["body.cell1", "body.cell2"]),
    "siblings of several classes": (Stack(body=Stack(cell1=Part(), cell2=Other())), ["body"]),
    "siblings of other names": (Stack(body=Stack(left=Part(), right=Part())), ["body"]),
    "single operators": (Stack(body=Stack(conv1=nn.Linear(4, 4), conv2=nn.Linear(4, 4))), ["body"]),
    "a list of containers": (
        nn.Sequential(row(2, "{}"), nn.Linear(4, 4), row(2, "b{}")),
        ["0.0", "0.1", "1", "2.b0", "2.b1"],
    ),
    "containers that are siblings": (
        Stack(layer1=row(2, "{}"), layer2=row(2, "{}")),
        ["layer1.0", "layer1.1", "layer2.0", "layer2.1"],
    ),
    "a member of a list with a row of its own": (
        nn.Sequential(Stack(cell1=Part(), cell2=Part()), nn.Linear(4, 4)),
        ["0", "1"],
    ),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_blocks_are_the_layers(name: str, training: bool) -> None:
    model, expected = MODELS[name]
    options: dict[str, Any] = {"device": "H100", "bandwidth": 1e9, "granularity": "block"}
    if training:
        options |= {"loss": lambda out: out.sum(), "training": True}
    graph = graph_of(model, (torch.ones(2, 4),), **options)
    assert list(modules_of(graph).names) == expected
