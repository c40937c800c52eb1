"""What the value of a solution is, as far as methods need to know."""

from __future__ import annotations

from enum import Enum


class Measure(Enum):
    """What the value of a solution is."""

    LARGEST_LOAD = "the largest load of a device"
    LARGEST_LOAD_BY_PASS = "the largest forward load plus the largest backward load"
    BATCH = "the sum of the loads, and the largest load once more for each sample after the first"
    ONE_SAMPLE = "the end of the last subgraph of one sample"
    LAST_OPERATOR = "the end of the last operator"
    OTHER = "what the evaluator of the objective computes, which no method of this package knows"

    @property
    def passes(self) -> int:
        """How many passes have loads of their own: 2 where forward and backward loads are added up."""
        return 2 if self is Measure.LARGEST_LOAD_BY_PASS else 1
