"""The best layouts of a space: bounds in closed form decide which are simulated."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from partitioner.base.clock import Clock
from partitioner.base.interruption import EndsInTime, Interruption
from partitioner.planning.layouts.costs import ModelCosts
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.least_time import least_time
from partitioner.planning.layouts.timing import LayoutRun


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
