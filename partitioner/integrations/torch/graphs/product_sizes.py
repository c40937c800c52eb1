"""The sizes of the products that one of torch's operators computes, by the shapes of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from partitioner.estimation.device_operations import AttentionScores, Product

Sizes = Callable[..., list[Product | AttentionScores]]


def _product(left: Any, right: Any, *_: Any, **__: Any) -> list[Product | AttentionScores]:
    return [Product(left[-2], right[-1], left[-1], left[0] if len(left) == 3 else 1)]


def _added(_: Any, left: Any, right: Any, *__: Any, **___: Any) -> list[Product | AttentionScores]:
    return _product(left, right)


def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, _: Any,
    groups: int, *__: Any, made: Any,
) -> list[Product | AttentionScores]:  # fmt: skip
    """Return a product for each group: positions, outputs, inputs of the kernel."""
    return [_group(x if transposed else made, weight, transposed, groups)]


def _convolution_backward(
    gradient: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    _: Any, groups: int, mask: Any, *__: Any, **___: Any,
) -> list[Product | AttentionScores]:  # fmt: skip
    """Return the products for the gradients of input and weights, of those that are wanted."""
    forward = _group(x if transposed else gradient, weight, transposed, groups)
    into = replace(forward, n=forward.k, k=forward.n)
    weights = replace(forward, m=forward.k, k=forward.m)
    return [one for one, wanted in zip((into, weights), mask, strict=False) if wanted]


def _group(positions: Any, weight: Any, transposed: bool, groups: int) -> Product:
    m, outer, inner = positions[0] * math.prod(positions[2:]), weight[0] // groups, math.prod(weight[1:])
    return Product(m, *((inner, outer) if transposed else (outer, inner)), groups)


def _scores(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> list[Product | AttentionScores]:
    batch, heads, steps, width = query
    return [AttentionScores(batch, steps, max(0, key[2] - steps), heads, key[1], width, value[3])]


def _scores_backward(gradient: Any, *rest: Any, **__: Any) -> list[Product | AttentionScores]:
    return _scores(*rest[:3])


def sizes_by_operator() -> Mapping[Any, Sizes]:
    """Return the rule for each operator that has one; what it is given are the shapes of its arguments.

    Each is also given ``made``, the shape of what the operator returns.
    """
    aten = torch.ops.aten
    found: dict[Any, Sizes] = {aten.mm: _product, aten.bmm: _product, aten._scaled_mm: _product}
    found |= {aten.addmm: _added, aten.baddbmm: _added}
    found |= {aten.convolution: _convolution, aten.convolution_backward: _convolution_backward}
    for name in ("efficient_attention", "flash_attention", "cudnn_attention", "flash_attention_for_cpu"):
        found[getattr(aten, f"_scaled_dot_product_{name}")] = _scores
        found[getattr(aten, f"_scaled_dot_product_{name}_backward")] = _scores_backward
    return found
