"""What the inputs alone determine is known by its edges; a tensor whose strides torch cannot send is, too."""

from __future__ import annotations

import json
from typing import Any

import pytest

import partitioner as pt
from partitioner.integrations.torch import graph_of

torch = pytest.importorskip("torch", reason="graphs of torch's models need torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402


class Attention(nn.Module):  # type: ignore[misc]
    """A block of a transformer that is given a mask."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any, mask: Any) -> Any:
        query, key, value = (one.unsqueeze(1) for one in self.qkv(x).chunk(3, -1))
        return x + self.out(functional.scaled_dot_product_attention(query, key, value, mask).squeeze(1))


class Masked(nn.Module):  # type: ignore[misc]
    """A decoder that makes its mask after the embedding; of the inputs, or of the embedding (`learned`)."""

    def __init__(self, learned: bool) -> None:
        super().__init__()
        self.learned = learned
        self.embed = nn.Embedding(20, 16)
        self.layers = nn.ModuleList(Attention(16) for _ in range(4))
        self.head = nn.Linear(16, 20)

    def forward(self, tokens: Any, known: Any) -> Any:
        hidden = self.embed(tokens)
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        mask = causal & known[:, None, None, :].bool()
        if self.learned:
            mask = mask & (hidden.mean(-1) < 9)[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.head(hidden)


class Permuted(nn.Module):  # type: ignore[misc]
    """Layer norms on permuted tensors between convolutions, as in ConvNeXt."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(4) for _ in range(2))

    def forward(self, x: Any) -> Any:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return x


def masked_graph(learned: bool, granularity: str = "block", training: bool = False) -> pt.Graph:
    args = torch.ones(2, 8, dtype=torch.long), torch.ones(2, 8, dtype=torch.long)
    options: dict[str, Any] = {"device": "H100", "bandwidth": 1e15, "granularity": granularity}
    return graph_of(Masked(learned), args, **options, training=training)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("to", ["megatron", "vllm", "deepspeed"])
def test_a_mask_that_is_made_late_leaves_a_stage_for_every_device(to: str, training: bool) -> None:
    graph, devices = masked_graph(False, training=training), pt.Devices.accelerated(4)
    plan = pt.solve(graph, devices, constraints=pt.expressible(to))
    assert plan.value == pytest.approx(pt.solve(graph, devices, constraints=pt.Constraints()).value, rel=1e-3)
    assert pt.export(pt.Workload(graph, devices), plan, to)


def test_a_mask_that_depends_on_a_parameter_must_be_sent() -> None:
    graph, devices = masked_graph(True), pt.Devices.accelerated(4)
    plan = pt.solve(graph, devices, constraints=pt.expressible("deepspeed"))
    assert len(plan.stages) < 4
    assert not any("layers.3" in extra.get("ofInputs", ()) for extra in graph.extras.nodes)


def test_operators_before_the_mask_are_of_inputs_and_those_after_it_are_not() -> None:
    graph = masked_graph(False, "operator")
    pairs = {(name, target) for name, extra in zip(graph.ids, graph.extras.nodes, strict=True)
             for target in extra.get("ofInputs", ())}  # fmt: skip
    edges = {(graph.ids[i], graph.ids[j]) for i, j in graph.edges.tolist()}
    assert pairs and pairs <= edges
    assert all(
        str(name).startswith(("ones", "tril", "to", "and", "slice", "unsq", "bitwise")) for name, _ in pairs
    )


def test_tensors_that_are_not_contiguous_are_named_where_they_are_read() -> None:
    graph = graph_of(
        Permuted(), (torch.ones(1, 4, 6, 6),), device="H100", bandwidth=1e15, granularity="module"
    )
    strided = {
        str(name) for name, extra in zip(graph.ids, graph.extras.nodes, strict=True) if "strided" in extra
    }
    assert strided
    devices = pt.Devices.accelerated(2)
    plan = pt.solve(graph, devices, constraints=pt.Constraints(whole=("modules",), stages=2, in_order=True))
    found = json.loads(pt.export(pt.Workload(graph, devices), plan, "torch"))
    crossing = {str(graph.ids[i]) for i, j in graph.edges.tolist()
                if plan.placement[graph.ids[i]] != plan.placement[graph.ids[j]]}  # fmt: skip
    assert bool(found.get("notes")) == bool(crossing & strided)
