"""What a placed model copies is what the evaluator counts for the plan, to the byte, and nothing else.

The evaluator knows the graph and the placement alone, so this checks the cost model by what runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np
import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="placing torch's models needs torch")
from partitioner.integrations.torch import graph_of, place  # noqa: E402
from tests.integrations.torch.placing.models import ALL, BANDWIDTH, doubled, graph, scattered  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes")
COUNT = 3
NAMES = [f"accelerator{i}" for i in range(COUNT)]
UNLIKE = ("rewritten", True)  # what it computes under no_grad is one operator, in the joint program several
WAYS = [way for way in product(ALL, (False, True)) if way != UNLIKE]
ONE_OUTPUT = ("cnn", "unet", "experts", "reread")  # no operator returns several tensors
QUICK = [("experts", True), ("translator", False), ("rewritten", False), ("constants", True)]


def counted(found: pt.Graph, placement: dict[Any, str], unit: float) -> list[tuple[int, int]]:
    """What the forward pass transfers to and from each device, by the evaluator."""
    loads = pt.evaluate(found, pt.Devices.accelerated(COUNT), placement, "throughput").loads
    return [(round(one.transfer_in[0] / unit), round(one.transfer_out[0] / unit)) for one in loads]


def copied(module: Any, size: Any) -> list[tuple[int, int]]:
    """The same, by what the module copies: a tensor leaves its device once for all others."""
    copies = [one for one in module.copies if one.kind == "operator"]
    into = Counter(dict.fromkeys(NAMES, 0))
    for one in copies:
        into[one.target] += size(one)
    left = {(one.tensor, one.source): size(one) for one in copies}
    out = [sum(size for (_, source), size in left.items() if source == name) for name in NAMES]
    return list(zip((into[name] for name in NAMES), out, strict=True))


def with_equal_costs(found: pt.Graph) -> pt.Graph:
    """The graph with cost 1 for each tensor that is sent."""
    given = {one.name: getattr(found, one.name) for one in fields(found) if one.init}
    return pt.Graph(**given | {"cost": np.where(found.cost > 0, 1.0, 0.0)})


def check(name: str, training: bool, seed: int) -> None:
    model, args = doubled(name)
    found = graph(name, training)
    placement = scattered(found, COUNT, seed)
    module = place(model, args, found, placement)
    assert copied(module, lambda one: one.nbytes) == counted(found, placement, 1e3 / BANDWIDTH)
    assert sum(one.kind == "operator" for one in module.copies) > 0
    if name in ONE_OUTPUT:
        assert copied(module, lambda one: 1) == counted(with_equal_costs(found), placement, 1.0)


@pytest.mark.parametrize(("name", "training"), QUICK)
def test_copies_are_those_that_the_evaluator_counts(name: str, training: bool) -> None:
    check(name, training, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "training", "seed"), [(*way, seed) for way in WAYS for seed in range(4)])
def test_copies_are_those_that_the_evaluator_counts_for_many_placements(
    name: str, training: bool, seed: int
) -> None:
    check(name, training, seed)


class Counting(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A counter that each call raises; what is made of it is another tensor in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(4))
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return x * (self.calls * 3) + self.scale * 2


@pytest.mark.parametrize("training", [False, True])
def test_what_depends_on_an_updated_buffer_is_sent_for_every_sample(training: bool) -> None:
    """What depends on other buffers alone is sent once, and counts nothing."""
    model, args = Counting(), (torch.ones(2, 4, requires_grad=True),)
    found = graph_of(model, args, device="H100", bandwidth=BANDWIDTH, training=training)
    fixed = ("add_", "mul", "mul_2")  # which read the counter or the scale
    placement = {node: f"accelerator{int(str(node).split('/')[0] not in fixed)}" for node in found.ids}
    module = place(model, args, found, placement)
    kinds = {one.tensor: (one.kind, one.nbytes) for one in module.copies if one.tensor != "x"}
    assert kinds == {"mul": ("operator", 16), "mul_2": ("constant", 16)}
    assert copied(module, lambda one: one.nbytes)[:2] == counted(found, placement, 1e3 / BANDWIDTH)[:2]
    expected = [model(*args) for _ in range(3)]
    assert all(torch.equal(module(*args), one) for one in expected)


def test_one_device_copies_nothing_but_the_inputs() -> None:
    model, args = doubled("gpt")
    module = place(model, args, graph("gpt"), dict.fromkeys(graph("gpt").ids, "accelerator0"))
    assert [(one.tensor, one.kind, one.target) for one in module.copies] == [("x", "input", "accelerator0")]


def test_a_tied_weight_is_copied_to_its_second_device() -> None:
    model, args = doubled("gpt")
    found = graph("gpt")
    module = place(model, args, found, {node: f"accelerator{int(node == 'linear_8')}" for node in found.ids})
    held = [one for one in module.copies if one.kind == "parameter"]
    assert [(one.source, one.target, one.nbytes) for one in held] == [
        ("accelerator0", "accelerator1", 50 * 32 * 8)
    ]
