"""The interface of a schedule."""

from __future__ import annotations

from typing import Protocol

from partitioner.base.errors import OptionError
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table


class Kind(Protocol):
    """A schedule: a rule for the order in which devices run the passes of a pipeline."""

    @property
    def name(self) -> str:
        """The name of the schedule."""

    @property
    def trains(self) -> bool | None:
        """True if it is for graphs with a backward pass, False for graphs without one, None for both."""

    @property
    def halves(self) -> bool:
        """Whether it runs the backward pass in two halves."""

    @property
    def versions(self) -> bool:
        """Whether every sample in flight keeps the weights that it began with."""

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return the table: which passes each device runs, and in which order.

        Raises
        ------
        OptionError
            If the schedule does not support the pipeline.
        """


def require_pairs(name: str, passes: Passes) -> None:
    """Raise if the forward and the backward pass of a stage are not on one device."""
    if not passes.paired:
        rule = "needs a split in which the backward pass mirrors the forward pass"
        raise OptionError(f"schedule = {name!r}: {rule}")
