"""What a schedule is."""

from __future__ import annotations

from typing import Protocol

from partitioner.base.errors import OptionError
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table


class Kind(Protocol):
    """A rule that says in which order devices run the passes of any pipeline."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def trains(self) -> bool | None:
        """Whether it is for graphs with a backward pass, for those without, or (None) for both."""

    @property
    def halves(self) -> bool:
        """Whether it runs the backward pass in two halves."""

    @property
    def versions(self) -> bool:
        """Whether every sample in flight keeps the weights that it began with."""

    def table(self, passes: Passes, microbatches: int) -> Table:
        """What each device runs, in which order.

        Raises
        ------
        OptionError
            If the schedule does not suit the pipeline.
        """


def require_pairs(name: str, passes: Passes) -> None:
    """Refuse passes of which forward and backward ones are not stages on one device each."""
    if not passes.paired:
        rule = "needs a split in which the backward pass mirrors the forward pass"
        raise OptionError(f"schedule = {name!r}: {rule}")


def require_line(name: str, passes: Passes) -> None:
    """Refuse what is no pipeline of one stage a device."""
    require_pairs(name, passes)
    if not passes.line:
        raise OptionError(f"schedule = {name!r}: needs one stage a device, there are {passes.stages} stages")
