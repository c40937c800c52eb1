"""The bracket of the best pipeline, which questions about thresholds narrow, with ever more effort."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from partitioner.methods.dp.pipeline.loads import pipeline_value
from partitioner.methods.dp.pipeline.sparse.decide import SparseDecider
from partitioner.methods.dp.pipeline.sparse.tables import SparseTables
from partitioner.methods.dp.search import UNLIMITED, Stopped
from partitioner.methods.method import ROUNDING, Part, Settings, meets

QUICK, WIDTHS = (60,), (60, 400, 2_500, 15_000)  # pipelines that each ideal keeps, in one round after another
UNTIMED = 3  # rounds without a limit of time
CLOSE = 1e-4  # of the value: brackets that are not halved again


@dataclass(eq=False)
class SparseBracket:
    """A bracket of the best pipeline of a lattice, searched with little effort.

    Parameters
    ----------
    tables
        The problem and the lattice.
    settings
        Say when to end and whom to report to.
    bound, value
        A lower bound on the value of the pipelines of the lattice, and the value of the incumbent.

    Attributes
    ----------
    stages, steps, complete
        The best pipeline found, if any; how much was tried; and whether bound and value meet.
    """

    tables: SparseTables
    settings: Settings
    bound: float
    value: float = np.inf
    stages: list[Part] | None = None
    steps: int = 0
    complete: bool = field(default=False, init=False)
    widths: tuple[int, ...] = field(default=QUICK, init=False)

    def __post_init__(self) -> None:
        self.decider = SparseDecider(self.tables, self.settings)
        self.least = self.value  # of all pipelines found, whatever the tables take their loads for

    @property
    def closed(self) -> bool:
        """Whether the bound meets the value within the requested gap, or there is no pipeline."""
        return bool(np.isinf(self.bound)) or meets(self.bound, self.value, self.settings.gap)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best pipeline; with `from_top` only if there is one better than the incumbent."""
        try:
            for width in self.widths:
                self._round(width, from_top)
                from_top = False
                if self.closed:
                    break
        except Stopped:
            pass
        self.complete = self.closed

    def _round(self, width: int, from_top: bool) -> None:
        """Halve the bracket, whose lower end is the highest threshold at which this round found nothing."""
        low = self.bound
        while not self.closed:
            near = self.value - low <= CLOSE * self.value
            top = from_top or near or bool(np.isinf(self.value))
            threshold = min(self.value * (1 - ROUNDING), UNLIMITED) if top else (low + self.value) / 2
            if self._ask(threshold, width):
                if near and not self.tables.upper:
                    return  # its value is a threshold
                from_top = False
            elif top:
                return
            else:
                low = threshold
            low = max(low, self.bound)

    def _ask(self, threshold: float, width: int) -> bool:
        """Narrow the bracket by one question; return whether a better pipeline was found."""
        verdict, before = self.decider.decide(threshold, width), self.value
        self.steps = self.decider.tried
        if verdict.refuted:
            self._raise(threshold)
        if verdict.stages is not None:
            found = pipeline_value(self.tables.problem, verdict.stages)
            if found < self.least:
                self.least, self.stages = found, verdict.stages
            self.value = min(self.value, found if self.tables.upper else threshold)
        self.settings.report_progress("thresholds", self.steps, 0, self.value, self.bound)
        return self.value < before

    def _raise(self, threshold: float) -> None:
        """Raise the bound: no pipeline has a load of at most the threshold."""
        if threshold >= UNLIMITED:
            self.bound = np.inf
        else:
            self.bound = self.value if meets(threshold, self.value) else max(self.bound, threshold)


class ThoroughSparseBracket(SparseBracket):
    """The same, searched with ever more effort until the bracket is closed or the run must end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        timed = self.settings.deadline is not None and not self.settings.deterministic
        self.widths = WIDTHS if timed else WIDTHS[:UNTIMED]
