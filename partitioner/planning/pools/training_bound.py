"""A bound on the time of a batch on a pool that holds for every dealing of layers and share of a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partitioner.base.units import MS_PER_SECOND
from partitioner.methods.halving import Halving
from partitioner.planning.layouts.costs import LayerCosts
from partitioner.planning.layouts.timing import LayoutRun
from partitioner.planning.pools.pool import PoolPart
from partitioner.planning.pools.training import STATES, PoolCosts, PoolLayout, link

SLACK = 1e-9  # of rounding
HALVINGS = 50  # of a range of times, until its ends are equal for every use


@dataclass(frozen=True, eq=False)
class PartBound:
    """What a pipeline of a part takes at least, however layers are dealt to its stages.

    With g_k stages on kind k and weights a_k in inverse proportion to the time of all layers there, which add
    up to 1 over the stages, the largest load is at least the sum over layers of the least a_k w_lk. Under
    1F1B, stages before stage s delay its first microbatch and follow its last one, so that the loads before
    it and M of its own bound the batch; sum_s a_s L_s is then at most X V with
    V = max(V', V' (1 - 1/M) + a_s / M) taken over the stages by growing a_s, from 0.

    Parameters
    ----------
    work
        Weighted milliseconds of a microbatch.
    after
        Weighted milliseconds of the exchange of gradients and of the optimizer's step.
    weights, groups
        The weights of the kinds, and how many stages each has.
    sequences
        The sequences of a microbatch of all copies.
    """

    work: float
    after: float
    weights: tuple[float, ...]
    groups: tuple[int, ...]
    sequences: int

    @classmethod
    def of(cls, costs: PoolCosts, layout: PoolLayout, part: PoolPart) -> PartBound | None:
        """Return the bound of a part, or None if its GPUs have no memory for the model's states."""
        layers = [costs.layers(layout, part, k) for k in range(len(part.kinds))]
        if not _may_fit(part, layers):
            return None
        times = np.array([each.forward + each.backward for each in layers])
        shares = 1 / times.sum(axis=1)
        shares /= np.dot(shares, part.groups)
        later = []
        for k, each in enumerate(layers):
            run = LayoutRun(costs.of(part.kinds[k]), layout.on(part, k), layout.replicas, ())
            rate, _ = link(run.costs.cluster, len(layout.parts) > 1, part.tensor[k] * part.copies)
            ring = 2 * (layout.replicas - 1) / layout.replicas * each.gradients / rate * MS_PER_SECOND
            later.append(ring + run.update(each))
        return cls(
            float((shares[:, None] * times).min(axis=0).sum()),
            float((shares[:, None] * np.array(later)).min(axis=0).sum()),
            tuple(shares.tolist()),
            part.groups,
            part.copies * layout.microbatch,
        )

    def time(self, share: float) -> float:
        """Return the milliseconds that a pipeline takes at least for some microbatches; 0 for none."""
        if share <= 0:
            return 0.0
        filled = 0.0
        if share >= 1:
            for weight, count in sorted(zip(self.weights, self.groups, strict=True)):
                kept = (1 - 1 / share) ** count
                filled = max(filled, filled * kept + weight * (1 - kept))
            filled = self.work / filled
        return max(share * self.work + self.after, filled)

    def most(self, time: float, upper: float) -> float:
        """Return the most microbatches, up to `upper`, that it may run within a time."""
        high = min(upper, max(0.0, (time - self.after) / self.work))
        if self.time(high) <= time * (1 + SLACK):
            return high
        return Halving(0.0, high).narrow(lambda middle: self.time(middle) > time, HALVINGS).high


def least_time(bounds: tuple[PartBound, ...], batch: int, exact: bool) -> float:
    """Return the milliseconds of a batch at least, in any shares; `exact` counts how pipelines fill."""
    if len(bounds) == 1:
        return bounds[0].time(batch / bounds[0].sequences)
    rates = [bound.sequences / bound.work for bound in bounds]
    plain = _plain(bounds, batch)
    if not exact:
        return plain
    high = 2 * plain + 2 * max(bound.time(1) for bound in bounds) + batch / min(rates)

    def suffices(time: float) -> bool:
        return sum(bound.sequences * bound.most(time, batch / bound.sequences) for bound in bounds) >= batch

    return Halving(plain, high).narrow(suffices, HALVINGS).bound


def _plain(bounds: tuple[PartBound, ...], batch: int) -> float:
    """Return the time in which the parts, each after its exchange, have run a batch at their full rates."""
    found, rates, spent = math.inf, 0.0, 0.0
    for bound in sorted(bounds, key=lambda each: each.after):
        rates += bound.sequences / bound.work
        spent += bound.after * bound.sequences / bound.work
        found = min(found, (batch + spent) / rates)
    return found


def _may_fit(part: PoolPart, layers: list[LayerCosts]) -> bool:
    """Return whether all GPUs of a pipeline have the memory for the states of all layers."""
    states = [
        t * sum(getattr(each, name) for name in STATES) for t, each in zip(part.tensor, layers, strict=True)
    ]
    room = sum(t * g * kind.memory for t, g, kind in zip(part.tensor, part.groups, part.kinds, strict=True))
    return bool(np.min(states, axis=0).sum() <= room * (1 + SLACK))
