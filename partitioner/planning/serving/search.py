"""The best layouts of a server on a pool: bounds decide which have their layers dealt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from partitioner.base.clock import Clock
from partitioner.base.interruption import EndsInTime, Interruption
from partitioner.formats.llm.decoder import Experts
from partitioner.planning.layouts.space import divisors, powers
from partitioner.planning.pools.pool import PooledKind, parts_on
from partitioner.planning.serving.costs import ServingCosts
from partitioner.planning.serving.pipelines import PipelineRun, ServingLayout, ServingPipeline

MOST_BATCH = 1024
ONE, LONGEST = 10.0, 60.0  # seconds that the layers of a layout may take to be dealt; for one user


@dataclass(frozen=True)
class BlockFound:
    """The best pipelines of a part of the pool, and a bound on the tokens per second of all of them."""

    best: tuple[ServingPipeline, ...]
    bound: float


@dataclass
class ServingSearch(EndsInTime):
    """The search for the `top` best layouts of each part of a pool, each with its best batch.

    Layouts are taken by falling bound, and their layers are dealt by the exact methods, until no bound is
    above the worst of the best.
    """

    costs: ServingCosts
    top: int
    clock: Clock
    interruption: Interruption
    one_user: bool = False
    tried: int = 0
    solved: int = 0
    whole: bool = True
    found: dict[tuple[str, ...], BlockFound] = field(default_factory=dict)

    def block(self, kinds: Sequence[PooledKind]) -> BlockFound:
        """Return the best layouts whose every pipeline has all of some kinds of GPUs."""
        key = tuple(kind.name for kind in kinds)
        if key not in self.found:
            self.found[key] = self._one_user(kinds) if self.one_user else self._searched(kinds)
        return self.found[key]

    def _searched(self, kinds: Sequence[PooledKind]) -> BlockFound:
        runs = []
        for layout in self.layouts(kinds):
            self.tried += 1
            run = PipelineRun(self.costs, layout)
            if (most := run.most()) > 0:
                runs.append((most, run))
        runs.sort(key=lambda each: -each[0])
        best: list[ServingPipeline] = []
        bound = 0.0
        for i, (most, run) in enumerate(runs):
            if len(best) == self.top and most <= best[-1].tokens_per_second:
                break
            if self.ends():
                return BlockFound(tuple(best), max(bound, runs[i][0]))
            self.solved += 1
            pipeline, own = run.solved(min(ONE, self.clock.left), self.interruption)
            bound = max(bound, min(own, most))
            if pipeline is not None:
                best = _with(best, pipeline)[: self.top]
        return BlockFound(tuple(best), max([bound, *(each.tokens_per_second for each in best)]))

    def _one_user(self, kinds: Sequence[PooledKind]) -> BlockFound:
        best: list[ServingPipeline] = []
        bound = 0.0
        for layout in self.layouts(kinds):
            if layout.copies > 1 or layout.batch > 1:
                continue
            self.tried += 1
            if self.ends():
                return BlockFound(tuple(best), math.inf)
            self.solved += 1
            run = PipelineRun(self.costs, layout)
            pipeline, own = run.for_one_user(min(LONGEST, self.clock.left), self.interruption)
            bound = max(bound, own)
            if pipeline is not None:
                best = _with(best, pipeline)[: self.top]
        return BlockFound(tuple(best), bound)

    def layouts(self, kinds: Sequence[PooledKind]) -> Iterator[ServingLayout]:
        """Yield the layouts on all of some kinds, every kind in every pipeline."""
        decoder, layers = self.costs.decoder, len(self.costs.decoder.blocks)
        heads = math.gcd(*(block.attention.heads for block in decoder.blocks))
        counts = [b.network.count for b in decoder.blocks if isinstance(b.network, Experts)]
        for part in parts_on(kinds, heads, layers):
            copies = part.copies
            experts = divisors(math.gcd(copies, *counts)) if counts and len(kinds) == 1 else [1]
            for expert, batch in product(experts, [1] if self.one_user else batches()):
                yield ServingLayout(part.kinds, part.tensor, part.groups, copies, batch, expert)


def batches() -> list[int]:
    """Return the numbers of sequences of a step: powers of two, and three of each.

    Examples
    --------
    >>> batches()[:8]
    [1, 2, 3, 4, 6, 8, 12, 16]
    """
    found = powers(MOST_BATCH)
    return sorted(found + [3 * each // 2 for each in found[1:] if 3 * each // 2 <= MOST_BATCH])


def _with(best: list[ServingPipeline], found: ServingPipeline) -> list[ServingPipeline]:
    """Return the best pipelines with one more, the best of each layout whatever its batch, best first."""
    rows: dict[str, ServingPipeline] = {}
    for each in sorted([*best, found], key=_order):
        rows.setdefault(each.layout.degrees, each)
    return list(rows.values())


def _order(pipeline: ServingPipeline) -> tuple[float, str]:
    return -pipeline.tokens_per_second, pipeline.layout.name
