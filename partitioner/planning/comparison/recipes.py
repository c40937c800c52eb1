"""The kinds of pipeline that are recommended, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from partitioner.workload.in_flight import SCHEDULES
from partitioner.workload.virtual_stages.schedules import VIRTUAL


@dataclass(frozen=True)
class Recipe:
    """A kind of pipeline: what is simulated, and how it is planned.

    Parameters
    ----------
    schedule
        The schedule that is simulated.
    planned
        The schedule that :func:`partitioner.solve` makes the plan for; the same if it knows that one.
    options
        Further options of that call.
    """

    schedule: str
    planned: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bounded(self) -> bool:
        """Whether the plan's bound is one for the schedule that is simulated."""
        return self.planned == self.schedule

    @property
    def title(self) -> str:
        """The schedule, and how many stages each device has where that is chosen."""
        chunks = self.options.get("virtual_stages")
        return self.schedule if chunks is None else f"{self.schedule} v{chunks}"

    @property
    def replicable(self) -> bool:
        """Whether several devices may hold a stage."""
        return self.planned not in VIRTUAL


RECIPES = (
    *(Recipe(name, name) for name in SCHEDULES),
    *(Recipe("interleaved_1f1b", "interleaved_1f1b", {"virtual_stages": chunks}) for chunks in (2, 4)),
    *(Recipe(name, name) for name in VIRTUAL if name != "interleaved_1f1b"),
    Recipe("zb_h1", "1f1b"),  # with copies, for which plans are not made
)
