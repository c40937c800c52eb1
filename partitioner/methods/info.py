"""What is known of a method before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from partitioner.methods.imported import imported
from partitioner.methods.method import Method


@dataclass(frozen=True)
class MethodInfo:
    """What is known of a method before it is loaded.

    Parameters
    ----------
    name
        As in ``solve(method=...)``.
    place
        Module and function.
    objectives, splits, backends
        What it can be asked for.
    guarantee
        What its plans are worth, in words.
    features
        What it knows beyond stages of one device each on equal links, see
        :meth:`partitioner.workload.pipeline_settings.Regime.features`.
    """

    name: str
    place: str
    objectives: tuple[str, ...]
    splits: tuple[str, ...]
    backends: tuple[str, ...]
    guarantee: str
    features: tuple[str, ...] = ()

    @property
    def places_operators(self) -> bool:
        """Is it a list scheduler, or like one?"""
        return "operators" in self.features

    def splits_for(self, objective: str) -> tuple[str, ...]:
        """The splits that it can be asked for with that objective."""
        if not self.places_operators:
            return self.splits
        return ("convex",) if objective == "latency" else ("free",)

    def load(self) -> Method:
        """Import the method's module and return the method."""
        return cast(Method, imported(self.place))
