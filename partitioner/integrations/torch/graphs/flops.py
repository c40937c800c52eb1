"""Floating-point operations of calls on tensors without data, as torch's own counter counts them.

The sizes of the products that an operator computes follow from the shapes of its arguments.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import (
    FlopCounterMode,
    flop_registry,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

from partitioner.estimation.device_operations import AttentionScores, Product
from partitioner.estimation.operator_times import SizedPart

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


KNOWN_LIBRARIES = ("aten", "prim", "prims", "_operator")


def attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """Return the operations of attention on a CPU, as of that on a GPU; the counter does not know it."""
    return int(sdpa_flop_count(query, key, value))


def attention_backward(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """Return the operations of the backward pass of attention on a CPU."""
    return int(sdpa_backward_flop_count(gradient, query, key, value))


def grouped_product(left: Any, right: Any, *_: Any, **__: Any) -> int:
    """Return the operations of products of groups of rows with a matrix each, for any sizes of the groups.

    Examples
    --------
    >>> grouped_product((10, 3), (4, 3, 5))  # 10 rows in 4 groups
    300
    """
    groups = left[0] if len(left) == len(right) == 3 else 1  # else the groups divide one of the sizes below
    return int(2 * groups * left[-2] * left[-1] * right[-1])


def _formulas() -> dict[Any, Any]:
    aten = torch.ops.aten
    found = {
        aten._scaled_dot_product_flash_attention_for_cpu: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
    }
    if hasattr(aten, "_grouped_mm"):
        found[aten._grouped_mm] = grouped_product
    return found


class Counted(NamedTuple):
    """The operations of a call, and its parts whose sizes are known."""

    flops: int
    parts: tuple[SizedPart, ...]


NOTHING = Counted(0, ())


class FlopCounts:
    """Counts the operations of calls; equal calls are counted once."""

    def __init__(self) -> None:
        self._sized: list[SizedPart] = []
        own = _formulas()
        self._formulas = own | {
            operator: self._recording(own.get(operator) or flop_registry[operator].__wrapped__, sizes)
            for operator, sizes in sizes_by_operator().items()
        }
        self._known: dict[Any, Counted] = {}
        self.unknown: dict[str, None] = {}

    def of(self, target: Any, args: Any, kwargs: Any, mode: Any) -> Counted:
        """Return the operations of a call on fake tensors of a mode."""
        key = (target, *_plain((args, kwargs)))
        if key not in self._known:
            self._sized.clear()
            flops = self._counted(target, args, kwargs, mode)
            self._known[key] = Counted(flops, merged(self._sized))
        return self._known[key]

    def _recording(self, formula: Callable[..., int], sizes: Sizes) -> Callable[..., int]:
        """Return a formula of shapes that also notes the sizes of its products, each with its share."""

        @wraps(formula)
        def counted(*shapes: Any, out_shape: Any = None, **more: Any) -> int:
            flops = int(formula(*shapes, out_shape=out_shape, **more))
            found = sizes(*shapes, made=out_shape)
            total = sum(one.flops for one in found)
            self._sized += [SizedPart(flops * one.flops / total, one) for one in found if total]
            return flops

        return counted

    def _counted(self, target: Any, args: Any, kwargs: Any, mode: Any) -> int:
        library = getattr(target, "namespace", getattr(target, "__module__", ""))
        try:
            with mode, FlopCounterMode(display=False, custom_mapping=self._formulas) as counter:
                target(*args, **kwargs)
        except Exception:  # what a call without data may raise is not known
            self.unknown[str(target)] = None
            return 0
        found = int(counter.get_total_flops())
        if not found and library not in KNOWN_LIBRARIES:
            self.unknown[str(target)] = None
        return found


def merged(parts: Iterable[SizedPart]) -> tuple[SizedPart, ...]:
    """Return the parts of a call, those of equal sizes as steps of one."""
    flops, steps = Counter[Any](), Counter[Any]()
    for part in parts:
        flops[part.sizes] += part.flops  # type: ignore[assignment]
        steps[part.sizes] += part.steps
    return tuple(SizedPart(flops[sizes], sizes, steps[sizes]) for sizes in steps)


def _plain(given: Any) -> list[Any]:
    """Return the arguments of a call as hashable values: of a tensor its shape and type."""
    leaves, spec = torch.utils._pytree.tree_flatten(given)
    shapes = [
        (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else repr(leaf) for leaf in leaves
    ]
    return [*shapes, str(spec)]
