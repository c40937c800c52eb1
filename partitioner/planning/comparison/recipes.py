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
    ways
        Whether nodes run in the best of their alternatives. Such plans are made for throughput, for which
        :func:`partitioner.solve` chooses among alternatives; others run all nodes by their own figures and
        are made for the makespan.
    """

    schedule: str
    planned: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    ways: bool = False

    @property
    def exact(self) -> bool:
        """Whether a plan that is optimal for what it is made for is optimal for what is simulated."""
        return self.planned == self.schedule and not self.ways

    @property
    def title(self) -> str:
        """The schedule, and how many stages each device has where that is chosen."""
        chunks = self.options.get("virtual_stages")
        return self.schedule if chunks is None else f"{self.schedule} v{chunks}"

    @property
    def uneven(self) -> bool:
        """Whether stages may have different numbers of devices."""
        return self.planned not in VIRTUAL


RECIPES = (
    *(Recipe(name, name) for name in SCHEDULES),
    *(Recipe("interleaved_1f1b", "interleaved_1f1b", {"virtual_stages": chunks}) for chunks in (2, 4)),
    *(Recipe(name, name) for name in VIRTUAL if name != "interleaved_1f1b"),
    Recipe("zb_h1", "1f1b"),  # for stages with different numbers of devices; with one each, another start
)
WITH_WAYS = (*(Recipe(name, name, ways=True) for name in SCHEDULES), Recipe("zb_h1", "1f1b", ways=True))
