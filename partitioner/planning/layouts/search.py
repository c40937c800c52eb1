"""The best layouts of a space: bounds that hold however layers are dealt decide which are simulated."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from partitioner.base.clock import Clock
from partitioner.base.interruption import EndsInTime, Interruption
from partitioner.planning.layouts.costs import LayerCosts, ModelCosts
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.timing import LayoutRun

SLACK = 1e-6  # of a block: what memory that just suffices may lack by rounding


@dataclass
class ClusterLayoutSearch(EndsInTime):
    """The search for the `top` fastest layouts of a space that fit.

    A layout is simulated only if the closed form does not show that it is slower than the `top` best. So the
    layouts found are those that simulating all would find.

    Parameters
    ----------
    costs
        The costs of the model.
    global_batch
        Sequences of a batch.
    top
        How many layouts are kept.
    clock, interruption
        When to end with the best layouts so far.
    """

    costs: ModelCosts
    global_batch: int
    top: int
    clock: Clock
    interruption: Interruption
    tried: int = 0
    simulated: int = 0
    nearest: tuple[float, LayoutRun] | None = None  # bytes that the nearest misfit lacks, and it
    whole: bool = True
    waiting: list[tuple[float, int, LayoutRun]] = field(default_factory=list)
    least: float = math.inf

    def run_of(self, layout: ClusterLayout) -> LayoutRun:
        """Return the run of a layout whose blocks are dealt evenly to the stages."""
        return LayoutRun(self.costs, layout, self.global_batch, self.costs.borders(layout.stages))

    def search(self, layouts: Iterable[ClusterLayout], sure: int = 0) -> list[LayoutRun]:
        """Return the best layouts, the fastest first; the first `sure` ones are simulated without a limit."""
        for layout in layouts:
            if self.ends() and self.tried >= sure:
                break
            self._consider(layout, self.tried < sure)
        heapq.heapify(self.waiting)
        return self._best()

    def _consider(self, layout: ClusterLayout, sure: bool) -> None:
        """Keep a layout that fits with its bound; note the one that misses by the fewest bytes."""
        self.tried += 1
        run = self.run_of(layout)
        self.least = min(self.least, least_time(run))
        if run.fits:
            self.waiting.append((-math.inf if sure else run.bound, self.tried, run))
            return
        missing = float(run.memory.max() - self.costs.cluster.memory)
        if self.nearest is None or missing < self.nearest[0]:
            self.nearest = missing, run

    def _best(self) -> list[LayoutRun]:
        """Simulate by growing bound until no bound is below the worst of the best."""
        found: list[LayoutRun] = []
        while self.waiting and not (len(found) == self.top and self.waiting[0][0] > found[-1].simulated[0]):
            if self.ends() and found and self.waiting[0][0] > -math.inf:
                break
            _, _, run = heapq.heappop(self.waiting)
            self.simulated += 1
            found = sorted([*found, run], key=lambda each: (each.simulated[0], each.layout))[: self.top]
        return found


def least_time(run: LayoutRun) -> float:
    """Return the milliseconds that a batch takes at least, however layers are dealt; infinity if none fits.

    The loads of the p devices, tensors that they receive included, add up to T. All of them run M
    microbatches and exchange gradients, which takes E in total, so that one ends after (M T + E) / p. Under
    1F1B, devices before device s delay its first microbatch and follow its last one, so that P_s + M L_s
    bounds the batch, too; the least largest one is T / (1 - (1 - 1 / M)^p). The optimizer's step takes at
    least its mean.
    """
    layers, layout, p = run.costs.layers(run.layout), run.layout, run.layout.pipeline
    if not may_fit(run, layers):
        return math.inf
    sends = int((run.device[1:] != run.device[:-1]).sum())
    sent = float(run.sent(layers.output[:-1]).min()) if sends else 0.0
    total = float((layers.forward + layers.backward).sum()) + 2 * sends * sent
    count = run.microbatches
    gradients, routed = (np.array(each.sum() / p) for each in (layers.gradients, layers.routed))
    exchange = float(run.ring(gradients, routed, 1 / p if routed else 0.0))  # one device has experts or more
    least = count * total / p + exchange
    if layout.virtual_stages == 1 and layout.schedule == "1f1b":
        least = max(least, total / (1 - (1 - 1 / count) ** p))
    return least + float(run.update(layers).sum()) / p


def may_fit(run: LayoutRun, layers: LayerCosts) -> bool:
    """Return whether the memory of all devices may suffice for the blocks, however they are dealt.

    A device holds h_c microbatches of its stage c in the moment that asks for the most. With n blocks of s
    bytes of states and a bytes of activations each, at least one in each of its stages (none in those at the
    ends that the layers before and after the blocks may fill), it needs at least
    n (s + a min h) + a sum over stages (h_c - min h). The devices' largest n must add up to all blocks.
    """
    costs, memory = run.costs, run.costs.cluster.memory
    states = layers.parameters + layers.gradients + layers.optimizer
    if states.sum() / run.layout.pipeline > memory:
        return False
    blocks = slice(costs.first_block, costs.first_block + len(costs.decoder.blocks))
    each, kept = float(states[blocks].min()), float(layers.activations[blocks].min())
    room, after = memory - float(layers.workspace[blocks].min()), len(states) - blocks.stop
    most = 0.0
    for rank, held in enumerate(run.held):
        owned = np.flatnonzero(run.device == rank)
        least = held.min(axis=1)
        whole = (held - least[:, None])[:, (owned >= blocks.start) & (owned < run.layout.stages - after)].sum(
            axis=1
        )
        most += max(0.0, math.floor(float(((room - kept * whole) / (each + kept * least)).min()) + SLACK))
    return most >= len(costs.decoder.blocks)
