"""The measure of a solution's value: what methods know of the objective."""

from __future__ import annotations

from enum import Enum


class Measure(Enum):
    """The definition of the value of a solution, independent of the objective's name."""

    LARGEST_LOAD = "the largest load of a device"
    LARGEST_LOAD_BY_PASS = "the largest forward load plus the largest backward load"
    BATCH = "the sum of the loads, and the largest load once more for each sample after the first"
    ONE_SAMPLE = "the end of the last subgraph of one sample"
    LAST_OPERATOR = "the end of the last operator"
    OTHER = "what the evaluator of the objective computes, which no method of this package knows"

    @property
    def passes(self) -> int:
        """The number of passes with separate loads: 2 if the value adds a forward and a backward load."""
        return 2 if self is Measure.LARGEST_LOAD_BY_PASS else 1
