"""A decoder with rotary positions, and one of 70 billion parameters that exists nowhere."""

from __future__ import annotations

from typing import Any

import pytest

import partitioner as pt
from partitioner.base.errors import WorkloadError
from partitioner.integrations.torch import graph_of

torch = pytest.importorskip("torch", reason="graphs of torch's models need torch")
from tests.integrations.torch.llama import Llama  # noqa: E402

SMALL = {"width": 32, "heads": 4, "groups": 2, "inner": 48, "blocks": 3, "vocabulary": 40}


def llama(tokens: int, **sizes: int) -> tuple[Any, tuple[Any, ...]]:
    """A decoder and its tokens on the device ``"meta"``."""
    with torch.device("meta"):
        model, args = Llama(**sizes), (torch.zeros(1, tokens, dtype=torch.long),)
    return model.to(torch.bfloat16), args


def sent(graph: pt.Graph) -> dict[tuple[Any, Any], float]:
    """The bytes of each edge."""
    return {
        (graph.ids[u], graph.ids[v]): cost * 1e6
        for (u, v), cost in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True)
    }


def test_tables_of_positions_are_not_sent_with_every_sample() -> None:
    model, args = llama(6, **SMALL)
    found = sent(graph_of(model, args, device="H100", bandwidth=1e9, granularity="block"))
    assert found["model.embed_tokens", "model.layers.0"] == pytest.approx(6 * 32 * 2)
    assert found["model.layers.0", "model.layers.1"] == pytest.approx(6 * 32 * 2)
    assert found["model.layers.0", "model.layers.2"] == 0  # the tables of the first block


def test_the_optimizer_keeps_a_copy_of_narrow_parameters() -> None:
    model, args = llama(6, **{**SMALL, "blocks": 1})
    count = sum(parameter.numel() for parameter in model.parameters())
    for given, each in ((None, 12), (5.0, 5)):
        found = graph_of(
            model, args, device="H100", bandwidth=1e9, training=True, optimizer_bytes=given
        ).parts.sum(axis=1)
        assert found[:3].tolist() == [2 * count, 2 * count, each * count]


def test_a_loss_without_a_backward_pass_is_refused() -> None:
    """On the device ``"meta"``, torch 2.13 returns no gradients at all for this loss."""
    model, args = llama(6, **{**SMALL, "blocks": 1})

    def loss(output: Any, wanted: Any) -> Any:
        return torch.nn.functional.cross_entropy(output.flatten(0, 1), wanted.flatten())

    given: dict[str, Any] = {"device": "H100", "bandwidth": 1e9, "training": True, "targets": args}
    with pytest.raises(WorkloadError, match=r"backward pass: reaches no parameter; .* log_softmax"):
        graph_of(model, args, loss=loss, **given)


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
def test_seventy_billion_parameters_need_no_weights(training: bool) -> None:
    """Parameters and FLOPs are those of the formula."""
    model, args = llama(512)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == 68_976_648_192
    found = graph_of(
        model, args, device="H100", bandwidth=50e9, training=training, granularity="block", efficiency=0.5
    )
    assert found.parts[0].sum() == 2 * count
    weights = count - 32000 * 8192 - 161 * 8192  # without the embedding and the norms
    forward = 2 * 512 * weights + 80 * 4 * 512 * 512 * 8192
    flops = sum(node["flops"] for node in found.extras.nodes)
    assert flops == pytest.approx((3 if training else 1) * forward, rel=1e-3)
    plan = pt.solve(found, pt.Devices.accelerated(16, memory=1e12))
    assert plan.gap == 0
