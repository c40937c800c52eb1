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

pytest.importorskip("torch", reason="placing torch's models needs torch")
from partitioner.integrations.torch import place
from tests.integrations.torch.placing.models import ALL, BANDWIDTH, doubled, graph, scattered

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes")
COUNT = 3
NAMES = [f"accelerator{i}" for i in range(COUNT)]
WAYS = [
    (name, training)
    for name, training in product(ALL, (False, True))
    if (name, training) != ("rewritten", True)
]
ONE_OUTPUT = ("cnn", "unet", "experts", "reread")  # no operator returns several tensors
QUICK = [("experts", True), ("translator", False), ("rewritten", False)]


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
