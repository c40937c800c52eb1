"""What a device runs: products of matrices, attention, experts, memory traffic, collectives, by their sizes.

Each is counted in operations and bytes, so that a roofline gives its time, and has axes, the sizes on which
the part of the roofline depends that a device reaches (:mod:`partitioner.estimation.curves`). Sizes may be
arrays of equal shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
CAPTURED = "captured_all_reduce"  # its curve
ROUTINGS = ("balanced", "power_law")  # how tokens choose their experts
GRADIENT_FLOPS = 2.5  # five products in place of two: the scores again, and four gradients


@dataclass(frozen=True)
class Product:
    """A product of an m x k with a k x n matrix, `count` times at once.

    `stored`: the bytes of a number of the second matrix in memory over those of its type in the product.

    Examples
    --------
    >>> Product(2, 3, 5).flops
    60
    """

    m: Any
    n: Any
    k: Any
    count: Any = 1
    stored: float = 1.0
    kind: ClassVar[str] = "product"
    overhead: ClassVar[float] = 2e-3

    @property
    def flops(self) -> Any:
        """Floating-point operations."""
        return 2 * self.count * self.m * self.n * self.k

    def nbytes(self, width: float, rest: float) -> Any:
        """Return the bytes read, `width` a number, and written, `rest` a number."""
        factors = (self.m + self.n * self.stored) * self.k * width
        return self.count * (factors + self.m * self.n * rest)

    @property
    def axes(self) -> tuple[Any, ...]:
        """Rows in all, columns, inner numbers, and 1 for rows in whole fours, 2 for others.

        Kernels for narrow numbers differ by the last.
        """
        return self.m * self.count, self.n, self.k, np.where(np.mod(self.m, 4) > 0, 2, 1)[()]

    def backward(self) -> tuple[DeviceOperation, ...]:
        """Return the products for the gradients of both factors."""
        return replace(self, n=self.k, k=self.n), replace(self, m=self.k, k=self.m)


@dataclass(frozen=True)
class AttentionScores:
    """The scores of attention and the sums that they weigh, in one fused kernel that skips what is masked.

    Parameters
    ----------
    batch
        Sequences.
    queries, context
        New tokens of a sequence, and those before them that are cached.
    heads, kv_heads
        Heads, and those of keys and values.
    key, value
        Numbers of a head's keys and of its values.
    window
        The number of latest tokens that a token sees; 0 for all of them.
    cached
        The numbers that are kept of a token; None for its keys and values.
    gradient
        Whether it is the backward pass, which computes the scores again.
    """

    batch: Any
    queries: Any
    context: Any
    heads: Any
    kv_heads: Any
    key: Any
    value: Any
    window: Any = 0
    cached: Any = None
    gradient: bool = False
    overhead: ClassVar[float] = 5e-3

    @property
    def kind(self) -> str:
        """``generation`` for a single new token with others before it, else ``prompt``; windows apart."""
        name = "generation" if np.all(self.queries == 1) and np.any(self.context > 0) else "prompt"
        return f"windowed_{name}" if np.any(self.window > 0) else name

    @property
    def seen(self) -> Any:
        """The tokens that the last new token sees, itself included."""
        total = self.context + self.queries
        return np.where(np.asarray(self.window) > 0, np.minimum(self.window, total), total)[()]

    @property
    def pairs(self) -> Any:
        """Pairs of a new token and one that it sees, in all sequences."""
        growing = np.clip(self.seen - self.context, 0, self.queries)
        grown = growing * self.context + growing * (growing + 1) / 2
        return self.batch * (grown + (self.queries - growing) * self.seen)

    @property
    def flops(self) -> Any:
        """Floating-point operations."""
        return 2 * self.pairs * self.heads * (self.key + self.value) * self._more

    def nbytes(self, width: float, rest: float) -> Any:
        """Return the bytes of queries and results, `rest` a number, and of keys and values, `width` each."""
        read = np.minimum(self.context + self.queries, self.seen + self.queries - 1)
        sizes = self.key + self.value
        own, kept = self.queries * self.heads * sizes, self.cached
        cached = read * (self.kv_heads * sizes if kept is None else kept)
        return self.batch * (own * rest + cached * width) * self._more

    @property
    def axes(self) -> tuple[Any, ...]:
        """New or seen tokens, heads (of keys) of all sequences, numbers of a head, heads that share keys."""
        group = self.heads / self.kv_heads
        if "generation" in self.kind:
            return self.seen, self.batch * self.kv_heads, self.key, group
        return self.queries, self.batch * self.heads, self.key, group

    def backward(self) -> tuple[DeviceOperation, ...]:
        """Return the backward pass."""
        return (replace(self, gradient=True),)

    @property
    def _more(self) -> float:
        return GRADIENT_FLOPS if self.gradient else 1.0


@dataclass(frozen=True)
class ExpertProducts:
    """The products of `local` experts with the rows that are sent to them, `rows` in all.

    Each row passes a product with `parts` x `width` columns (a gate and what it is multiplied with: 2) and
    one back to `hidden` numbers. `apart` is the number of devices that share the experts; `stored` as in
    :class:`Product`. `routing` is one of :data:`ROUTINGS`: tokens choose experts by a power law, and the
    device with the most rows counts, or evenly (``"balanced"``), and each device has `rows` rows.
    """

    rows: Any
    local: Any
    hidden: Any
    width: Any
    apart: Any = 1
    parts: Any = 2
    stored: float = 1.0
    routing: str = "power_law"
    overhead: ClassVar[float] = 1e-2

    @property
    def kind(self) -> str:
        """``experts``, or ``balanced_experts``."""
        return "balanced_experts" if self.routing == "balanced" else "experts"

    @property
    def flops(self) -> Any:
        """Floating-point operations."""
        return 2 * self.rows * self.hidden * self.width * (self.parts + 1)

    def nbytes(self, width: float, rest: float) -> Any:
        """Return the bytes of the weights of the experts that are met, and of the rows."""
        chance = self.local * (1 - (1 - 1 / np.maximum(self.local, 1.0000001)) ** self.rows)
        met = np.minimum(self.local, self.rows) if self.routing == "balanced" else chance
        weights = met * self.hidden * self.width * (self.parts + 1)
        return (
            weights * width * self.stored
            + self.rows * (2 * self.hidden + (self.parts + 1) * self.width) * rest
        )

    @property
    def axes(self) -> tuple[Any, ...]:
        """Rows of an expert, experts, inner numbers, devices, and 1 for inner numbers in whole 16s, else 2.

        Where experts are balanced, hidden numbers in place of devices.
        """
        fourth = self.hidden if self.routing == "balanced" else self.apart
        whole = np.where(np.mod(self.width, 16) > 0, 2, 1)[()]
        return self.rows / self.local, self.local, self.width, fourth, whole

    def backward(self) -> tuple[DeviceOperation, ...]:
        """Return the products for the gradients of the rows and of the weights, each as large."""
        return self, self


@dataclass(frozen=True)
class Traffic:
    """An elementwise operator, norm, softmax or dropout: `numbers` that it reads from memory and writes.

    `gradient`: the numbers that its backward pass moves; by default half as many again, because it reads the
    gradient in addition.
    """

    numbers: Any
    gradient: Any = None
    kind: ClassVar[str] = "traffic"
    overhead: ClassVar[float] = 3e-3
    flops: ClassVar[float] = 0.0
    axes: ClassVar[tuple[Any, ...]] = ()

    def nbytes(self, width: float, rest: float) -> Any:
        """Return the bytes, `rest` a number."""
        return self.numbers * rest

    def backward(self) -> tuple[DeviceOperation, ...]:
        """Return the traffic of the backward pass."""
        return (Traffic(1.5 * self.numbers if self.gradient is None else self.gradient),)


@dataclass(frozen=True)
class Collective:
    """An operation of `gpus` devices together, one of :data:`COLLECTIVES`.

    `size` is in bytes: those that a device reduces, has gathered, has before it scatters, or sends. With
    `captured` an all-reduce is that of a server, a kernel of its own in a captured graph.
    """

    name: str
    gpus: Any
    size: Any
    captured: bool = False
    overhead: ClassVar[float] = 1e-2

    @property
    def kind(self) -> str:
        """The name, or :data:`CAPTURED`."""
        return CAPTURED if self.captured and self.name == "all_reduce" else self.name

    @property
    def sent(self) -> Any:
        """The bytes that each device sends in a ring, or directly to all others."""
        rounds = 2 if self.name == "all_reduce" else 1
        return rounds * self.size * (self.gpus - 1) / self.gpus

    @property
    def axes(self) -> tuple[Any, ...]:
        """Bytes and devices."""
        return self.size, self.gpus


DeviceOperation = Product | AttentionScores | ExpertProducts | Traffic


def unfused_attention(scores: AttentionScores, dropout: bool = True) -> tuple[DeviceOperation, ...]:
    """Return the operations of kernels that compute the whole square of scores and write it to memory.

    So did frameworks before fused kernels (2022), as Megatron-LM with its fused masked softmax: a product, a
    softmax in place, with `dropout` one more pass that writes a mask of a byte each, and a product.

    Examples
    --------
    >>> product, softmax, weighed = unfused_attention(AttentionScores(1, 8, 0, 1, 1, 4, 4), dropout=False)
    >>> product.flops, softmax.numbers, weighed.flops
    (512, 128, 512)
    """
    total = scores.context + scores.queries
    heads = scores.batch * scores.heads
    square = heads * scores.queries * total
    passes = [Traffic(2 * square, 3 * square)] + [Traffic(2.5 * square, 2.5 * square)] * dropout
    return (
        Product(scores.queries, total, scores.key, heads),
        *passes,
        Product(scores.queries, scores.value, total, heads),
    )
