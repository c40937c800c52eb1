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
from partitioner.planning.serving.costs import BOTH, PREFILL, ServingCosts
from partitioner.planning.serving.one_user import OneUserRun
from partitioner.planning.serving.pipelines import PipelineRun, ServingLayout, ServingPipeline

MOST_BATCH = 1024
Key = tuple[str, tuple[tuple[str, int], ...]]  # what is done, and how many GPUs of each kind
ONE = 10.0  # seconds that the layers of a layout may take to be dealt


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
    found: dict[tuple[Key, int], BlockFound] = field(default_factory=dict)
    bounded: dict[Key, list[tuple[float, PipelineRun]]] = field(default_factory=dict)

    def block(self, kinds: Sequence[PooledKind], role: str = BOTH, top: int | None = None) -> BlockFound:
        """Return the `top` best layouts whose every pipeline has all of some kinds of GPUs."""
        key = (_key(kinds, role), top or self.top)
        if key not in self.found:
            one = self.one_user
            self.found[key] = self._one_user(kinds) if one else self._searched(kinds, role, key[1])
        return self.found[key]

    def most(self, kinds: Sequence[PooledKind], role: str = BOTH) -> float:
        """Return the tokens per second that no such layout exceeds, without dealing its layers."""
        runs = self._runs(kinds, role)
        return runs[0][0] if runs else 0.0

    def _runs(self, kinds: Sequence[PooledKind], role: str) -> list[tuple[float, PipelineRun]]:
        """Return the layouts with their bounds, by falling bound, without those that are proven not to do."""
        key = _key(kinds, role)
        if key not in self.bounded:
            runs = [PipelineRun(self.costs, layout) for layout in self.layouts(kinds, role)]
            self.tried += len(runs)
            found = [(run.most(), run) for run in runs]
            self.bounded[key] = sorted((each for each in found if each[0] > 0), key=lambda each: -each[0])
        return self.bounded[key]

    def _searched(self, kinds: Sequence[PooledKind], role: str, top: int) -> BlockFound:
        best: list[ServingPipeline] = []
        bound, runs = 0.0, self._runs(kinds, role)
        for i, (most, run) in enumerate(runs):
            if len(best) == top and most <= best[-1].tokens_per_second:
                break
            if self.ends():
                return BlockFound(tuple(best), max(bound, runs[i][0]))
            self.solved += 1
            pipeline, own = run.solved(min(ONE, self.clock.left), self.interruption)
            bound = max(bound, min(own, most))
            if pipeline is not None:
                best = _with(best, pipeline)[:top]
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
            pipeline = OneUserRun(PipelineRun(self.costs, layout)).solved()
            if pipeline is not None:
                bound = max(bound, pipeline.bound)
                best = _with(best, pipeline)[: self.top]
        return BlockFound(tuple(best), bound)

    @property
    def divided(self) -> int:
        """The most groups of GPUs that can divide the experts of all layers; 1 without any."""
        blocks = self.costs.decoder.blocks
        return math.gcd(*(b.network.count for b in blocks if isinstance(b.network, Experts))) or 1

    def layouts(self, kinds: Sequence[PooledKind], role: str = BOTH) -> Iterator[ServingLayout]:
        """Yield the layouts on all of some kinds, every kind in every pipeline."""
        decoder, layers = self.costs.decoder, len(self.costs.decoder.blocks)
        heads = math.gcd(*(block.attention.heads for block in decoder.blocks))
        for part in parts_on(kinds, heads, layers):
            copies = part.copies
            experts = divisors(math.gcd(copies, self.divided)) if len(kinds) == 1 else [1]
            alone = self.one_user or role == PREFILL
            for expert, batch in product(experts, [1] if alone else batches()):
                yield ServingLayout(part.kinds, part.tensor, part.groups, copies, batch, expert, role)


def _key(kinds: Sequence[PooledKind], role: str) -> Key:
    return role, tuple((kind.name, kind.count) for kind in kinds)


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
