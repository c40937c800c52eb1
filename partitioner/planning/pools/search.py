"""The fastest layouts of training on a pool: bounds decide whose layers are dealt and simulated."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from partitioner.base.clock import Clock
from partitioner.base.interruption import EndsInTime, Interruption
from partitioner.planning.layouts.runtimes import RUNTIMES
from partitioner.planning.layouts.space import MOST_MICROBATCH, powers
from partitioner.planning.pools.dealing import deal, share_batch, with_shares
from partitioner.planning.pools.pool import PooledKind, PoolPart, partitions, parts_on
from partitioner.planning.pools.training import PartRun, PoolCosts, PoolLayout, PoolRun
from partitioner.planning.pools.training_bound import PartBound, least_time

LEAST, ONE = 0.001, 5.0  # seconds that the layers of a pipeline may take to be dealt
UNITED = ("none", "full")  # what layers of unlike GPUs compute again


@dataclass
class PoolSearch(EndsInTime):
    """The search for the `top` fastest layouts of a pool, or of a part of its kinds.

    Layouts are taken by growing bound; their layers are dealt by the exact methods and simulated, until no
    bound is below the slowest of the best.

    Parameters
    ----------
    costs
        The costs of the model on the kinds.
    global_batch
        Sequences of a batch.
    top
        How many layouts are kept.
    clock, interruption
        When to end with the best layouts so far.
    """

    costs: PoolCosts
    global_batch: int
    top: int
    clock: Clock
    interruption: Interruption
    tried: int = 0
    simulated: int = 0
    whole: bool = True
    may_fit: bool = False
    least: float = math.inf
    _bounds: dict[tuple[Any, ...], PartBound | None] = field(default_factory=dict)
    _dealt: dict[tuple[Any, ...], PartRun | None] = field(default_factory=dict)

    def search(self, kinds: Sequence[PooledKind]) -> list[PoolRun]:
        """Return the best layouts, the fastest first."""
        waiting: list[tuple[float, int, bool, PoolLayout]] = []
        for layout in self.layouts(kinds):
            if self.ends():
                break
            self.tried += 1
            bounds = self.bounds(layout)
            if bounds is not None:
                self.may_fit = True
                waiting.append((least_time(bounds, self.global_batch, False), self.tried, False, layout))
        heapq.heapify(waiting)
        return self._best(waiting)

    def _best(self, waiting: list[tuple[float, int, bool, PoolLayout]]) -> list[PoolRun]:
        """Deal and simulate by growing bound; the least of all bounds is noted."""
        found: list[PoolRun] = []
        while waiting and not (len(found) == self.top and waiting[0][0] > found[-1].simulated[0]):
            if self.ends():
                break
            bound, number, exact, layout = heapq.heappop(waiting)
            bounds = self.bounds(layout)
            if not exact and bounds is not None:
                exact_bound = max(bound, least_time(bounds, self.global_batch, True))
                heapq.heappush(waiting, (exact_bound, number, True, layout))
                continue
            self.least = min(self.least, bound)
            run = self.run_of(layout)
            if run is not None:
                self.simulated += 1
                found = sorted([*found, run], key=lambda each: (each.simulated[0], each.layout.name))
                found = _unlike(found)[: self.top]
        self.least = min([self.least, *(each[0] for each in waiting[:1])])
        return found

    def layouts(self, kinds: Sequence[PooledKind]) -> Iterator[PoolLayout]:
        """Yield the layouts on all of some kinds, and on each choice of fewer of them."""
        decoder = self.costs.decoder
        layers, heads = len(decoder.blocks), math.gcd(*(b.attention.heads for b in decoder.blocks))
        microbatches = [b for b in powers(MOST_MICROBATCH) if self.global_batch % b == 0]
        for count in range(len(kinds), 0, -1):
            for chosen in combinations(kinds, count):
                for division in partitions(chosen):
                    for parts in product(*(list(parts_on(each, heads, layers)) for each in division)):
                        for microbatch, recompute in product(microbatches, UNITED):
                            yield from self._of_parts(parts, microbatch, recompute)

    def _of_parts(self, parts: tuple[PoolPart, ...], microbatch: int, recompute: str) -> Iterator[PoolLayout]:
        pipelines = sum(part.copies for part in parts)
        if pipelines * microbatch > self.global_batch:
            return
        if len(parts) == 1 and self.global_batch % (pipelines * microbatch):
            return
        for zero in RUNTIMES["any"].zero[True]:
            if zero == 0 or pipelines > 1:
                yield PoolLayout(parts, microbatch, recompute, zero)

    def bounds(self, layout: PoolLayout) -> tuple[PartBound, ...] | None:
        """Return the bounds of the parts of a layout; None if one has no memory for the model's states."""
        found = []
        for part in layout.parts:
            key = self._key(layout, part)
            if key not in self._bounds:
                self._bounds[key] = PartBound.of(self.costs, layout, part)
            bound = self._bounds[key]
            if bound is None:
                return None
            found.append(bound)
        return tuple(found)

    def run_of(self, layout: PoolLayout) -> PoolRun | None:
        """Return the run of a layout with its layers dealt and the batch shared; None if none is found."""
        bounds = self.bounds(layout)
        assert bounds is not None
        speed = sum(bound.sequences / bound.work for bound in bounds)
        runs: list[PartRun] = []
        for part, bound in zip(layout.parts, bounds, strict=True):
            share = max(1, min(part.stages, math.ceil(self.global_batch / speed / bound.work)))
            key = (*self._key(layout, part), share)
            if key not in self._dealt:
                limit = max(LEAST, min(ONE, self.clock.left))
                self._dealt[key] = deal(self.costs, layout, part, share, limit, self.interruption)
            run = self._dealt[key]
            if run is None:
                return None
            runs.append(run)
        shares = share_batch(tuple(runs), self.global_batch, layout.microbatch)
        if shares is None:
            return None
        found = PoolRun(self.costs, layout, with_shares(tuple(runs), shares))
        return found if all(run.fits for run in found.parts) else None

    def _key(self, layout: PoolLayout, part: PoolPart) -> tuple[Any, ...]:
        """Return what the costs of a part depend on."""
        names = tuple(kind.name for kind in part.kinds)
        alone = len(layout.parts) == 1
        return (
            names, part.tensor, part.groups, part.copies, layout.replicas, alone, layout.microbatch,
            layout.recompute, layout.zero,
        )  # fmt: skip


def _unlike(runs: list[PoolRun]) -> list[PoolRun]:
    """Return the runs without those that use the same GPUs in the same way as an earlier one."""
    seen: dict[tuple[Any, ...], PoolRun] = {}
    for run in runs:
        layout = run.layout
        parts = tuple(
            (part.part.copies, tuple(part.part.kinds[k].name for k in part.kinds), part.tensor, part.borders)
            for part in run.parts
        )
        seen.setdefault((parts, layout.microbatch, layout.recompute, layout.zero), run)
    return list(seen.values())
