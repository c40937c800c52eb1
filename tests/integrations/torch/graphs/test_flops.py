"""Products of torch's operators have the sizes that their shapes say, and together all of the operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner.integrations.torch import graph_of

torch = pytest.importorskip("torch", reason="graphs of torch's models need torch")
from torch import nn  # noqa: E402

from partitioner.integrations.torch.graphs.capture import seen_and_captured  # noqa: E402


def parts_of(model: Any, *shape: int, training: bool = False) -> list[tuple[Any, ...]]:
    """The sizes of all products of a model: rows, columns, inner numbers, groups, times."""
    _, capture = seen_and_captured(model, (torch.zeros(shape),), {}, training, None, ())
    for one in capture.operations:
        assert sum(part.flops for part in one.parts) == pytest.approx(one.flops)
    found = [part for one in capture.operations for part in one.parts]
    return [
        (part.sizes.m, part.sizes.n, part.sizes.k, part.sizes.count, part.steps)  # type: ignore[union-attr]
        for part in found
    ]


def test_products_have_their_sizes() -> None:
    """A linear layer from 3 to 7 numbers on 5 rows; convolutions in groups on 2 images of 9 x 9."""
    assert parts_of(nn.Linear(3, 7), 5, 3) == [(5, 7, 3, 1, 1)]
    grouped = nn.Conv2d(4, 6, 3, groups=2)
    assert parts_of(grouped, 2, 4, 9, 9) == [(2 * 7 * 7, 3, 2 * 9, 2, 1)]
    turned = nn.ConvTranspose2d(4, 6, 3, groups=2)
    assert parts_of(turned, 2, 4, 9, 9) == [(2 * 9 * 9, 3 * 9, 2, 2, 1)]


def test_gradients_are_products_with_their_sizes() -> None:
    """The input of the model has no gradient."""
    found = parts_of(nn.Sequential(nn.Conv2d(4, 6, 3), nn.Conv2d(6, 8, 3)), 2, 4, 9, 9, training=True)
    (m, n, k), (rows, columns, inner) = (2 * 7 * 7, 6, 4 * 9), (2 * 5 * 5, 8, 6 * 9)
    forward = [(m, n, k, 1, 1), (rows, columns, inner, 1, 1)]
    backward = [(rows, inner, columns, 1, 1), (inner, columns, rows, 1, 1), (k, n, m, 1, 1)]
    assert sorted(found) == sorted(forward + backward)


@pytest.mark.parametrize("seed", range(20))
def test_linear_layers_of_random_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, inner, outer = rng.integers(2, 60, 3).tolist()
    found = parts_of(nn.Sequential(nn.Linear(inner, outer), nn.Linear(outer, 3)), rows, inner, training=True)
    forward = [(rows, outer, inner), (rows, 3, outer)]
    backward = [(outer, inner, rows), (3, outer, rows), (rows, outer, 3)]
    assert sorted(each[:3] for each in found) == sorted(forward + backward)


def test_curves_slow_narrow_products_more_than_wide_ones() -> None:
    """Both take longer than at the peak, the narrow one by a larger part."""
    ratio = []
    for width in (64, 4096):
        model, given = nn.Linear(width, width, device="meta"), (torch.zeros(4096, width, device="meta"),)
        own, peak = (
            graph_of(model, given, device="H100", bandwidth=1e9, dtype="bfloat16", efficiency=each)
            for each in (None, 1.0)
        )
        ratio.append(own.time.sum() / peak.time.sum())
    assert ratio[0] > ratio[1] > 1


def test_curves_are_the_default_and_the_graph_says_whose_they_are() -> None:
    model, given = nn.Linear(64, 64, device="meta"), (torch.zeros(8, 64, device="meta"),)
    default, curves, peak = (
        graph_of(model, given, device={"fast": "H100", "old": "V100"}, bandwidth=1e9, dtype="float16", **more)
        for more in ({}, {"efficiency": None}, {"efficiency": 1.0})
    )
    assert default.time.tolist() == curves.time.tolist()
    assert (default.time > peak.time).all()
    assert default.extras.top["times"].startswith(
        "curves measured on H100; curves measured on A100-80, scaled"
    )
    assert "times" not in peak.extras.top
