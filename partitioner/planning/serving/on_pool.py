"""The best rows of a server on some kinds of GPUs: on the same servers and on separate ones, with a bound."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from partitioner.planning.pools.pool import PooledKind, partitions
from partitioner.planning.serving.result import ServingRow
from partitioner.planning.serving.search import BlockFound, ServingSearch
from partitioner.planning.serving.separate import most_separate, separate

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
