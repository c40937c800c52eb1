"""The kinds of pipeline that are recommended, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from partitioner.workload.in_flight import SCHEDULES


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


RECIPES = (*(Recipe(name, name) for name in SCHEDULES), Recipe("zb-h1", "1f1b"))
