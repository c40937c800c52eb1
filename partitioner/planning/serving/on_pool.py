"""The best rows of a server on some kinds of GPUs: on the same servers and on separate ones, with a bound.

Servers of prompts send the cache of each to those that generate, over the network, each GPU its part, and a
stage is busy meanwhile. With n_k GPUs of kind k for prompts, of N_k, the pool serves

    min(sum over k of P_k(n_k), sum over k of D_k(N_k - n_k))

where P_k(n) and D_k(n) are the requests that n GPUs of a kind take as servers of either sort, each in its
best layout. Splits are taken by falling bound, until none is above the best ones found.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from partitioner.planning.pools.pool import PooledKind, partitions
from partitioner.planning.serving.costs import DECODE, PREFILL
from partitioner.planning.serving.result import ServingRow
from partitioner.planning.serving.search import BlockFound, ServingSearch

STEPS = 64  # numbers of GPUs of a kind for prompts that are tried, at most
Side = list[PooledKind]
SERVERS = ("any", "same", "separate")  # which of prompts and generated tokens


@dataclass(frozen=True)
class Served:
    """The best rows on a pool, the bound over all, and the best row of either sort of servers."""

    rows: list[ServingRow] = field(default_factory=list)
    bound: float = 0.0
    best: dict[str, ServingRow] = field(default_factory=dict)


def served(search: ServingSearch, kinds: Sequence[PooledKind], servers: str, top: int) -> Served:
    """Return the best rows on all kinds or some of them."""
    if search.one_user:
        found = search.block(kinds)
        return Served([ServingRow((each,)) for each in found.best], found.bound)
    ways = {"same": _same, "separate": separate}
    chosen = {name: ways[name](search, kinds, top) for name in ways if servers in ("any", name)}
    rows = heapq.nlargest(
        top, (row for each, _ in chosen.values() for row in each), key=lambda row: row.tokens_per_second
    )
    best = {name: each[0] for name, (each, _) in chosen.items() if each}
    return Served(rows, max(bound for _, bound in chosen.values()), best)


def most_served(search: ServingSearch, kinds: Sequence[PooledKind], servers: str) -> float:
    """Return the tokens per second that no row exceeds, without dealing layers."""
    same = max(sum(search.most(part) for part in parts) for parts in partitions(kinds))
    return max(
        same if servers != "separate" else 0.0,
        most_separate(search, kinds) if servers != "same" else 0.0,
    )


def _same(search: ServingSearch, kinds: Sequence[PooledKind], top: int) -> tuple[list[ServingRow], float]:
    """Return the rows of the best ways to divide the kinds into pipelines, and the bound over all."""
    rows, bound = [], 0.0
    for parts in partitions(kinds):
        blocks = [search.block(part) for part in parts]
        bound = max(bound, sum(block.bound for block in blocks))
        rows += _rows([block for block in blocks if block.best], top)
    unique = {row.name: row for row in rows}.values()
    return heapq.nlargest(top, unique, key=lambda row: row.tokens_per_second), bound


def _rows(blocks: list[BlockFound], top: int) -> list[ServingRow]:
    """Return the best pipelines of each block side by side; of a single block its best ones."""
    if len(blocks) == 1:
        return [ServingRow((each,)) for each in islice(blocks[0].best, top)]
    return [ServingRow(tuple(block.best[0] for block in blocks))] if blocks else []


def most_separate(search: ServingSearch, kinds: Sequence[PooledKind]) -> float:
    """Return the tokens per second that no split of the kinds exceeds, without dealing layers."""
    return max((_bound(search, *split) for split in _splits(kinds)), default=0.0)


def separate(search: ServingSearch, kinds: Sequence[PooledKind], top: int) -> tuple[list[ServingRow], float]:
    """Return the best splits, those with the most tokens per second first, and the bound over all."""
    splits = sorted(((_bound(search, *split), split) for split in _splits(kinds)), key=lambda each: -each[0])
    rows: list[ServingRow] = []
    bound = 0.0
    for most, (prompts, decode) in splits:
        if most <= (rows[-1].tokens_per_second if len(rows) == top else 0.0):
            break
        if search.ends():
            return rows, max(bound, most)
        sides = [
            [search.block([kind], role, 1) for kind in side]
            for role, side in ((PREFILL, prompts), (DECODE, decode))
        ]
        bound = max(bound, min(most, *(sum(block.bound for block in side) for side in sides)))
        if all(any(block.best for block in side) for side in sides):
            row = ServingRow(tuple(block.best[0] for side in sides for block in side if block.best))
            unique = {each.name: each for each in [*rows, row]}.values()
            rows = heapq.nlargest(top, unique, key=lambda each: each.tokens_per_second)
    return rows, max([bound, *(row.tokens_per_second for row in rows)])


def _bound(search: ServingSearch, prompts: Side, decode: Side) -> float:
    sides = ((PREFILL, prompts), (DECODE, decode))
    return min(sum(search.most([kind], role) for kind in side) for role, side in sides)


def _splits(kinds: Sequence[PooledKind]) -> Iterator[tuple[Side, Side]]:
    """Yield the GPUs that take prompts and those that generate, neither of them without any."""
    for counts in product(*(_counts(kind) for kind in kinds)):
        prompts = [replace(kind, count=n) for kind, n in zip(kinds, counts, strict=True) if n]
        left = ((kind, kind.count - n) for kind, n in zip(kinds, counts, strict=True))
        decode = [replace(kind, count=n) for kind, n in left if n]
        if prompts and decode:
            yield prompts, decode


def _counts(kind: PooledKind) -> range:
    """Return how many GPUs of a kind may take prompts: any number, of many whole servers."""
    step = 1 if kind.count <= STEPS else kind.node * -(-kind.count // (STEPS * kind.node))
    return range(0, kind.count + 1, step)
