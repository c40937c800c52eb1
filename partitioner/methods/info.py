"""What is known of a method before it is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    features_for
        The objectives for which it knows these; empty for all of its objectives.
    splits_of
        The splits for an objective, where they are not `splits`.
    """

    name: str
    place: str
    objectives: tuple[str, ...]
    splits: tuple[str, ...]
    backends: tuple[str, ...]
    guarantee: str
    features: tuple[str, ...] = ()
    features_for: tuple[str, ...] = ()
    splits_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def places_operators(self) -> bool:
        """Whether it is a list scheduler, or like one."""
        return "operators" in self.features

    def splits_for(self, objective: str) -> tuple[str, ...]:
        """Return the splits that it can be asked for with that objective."""
        return self.splits_of.get(objective, self.splits)

    def knows(self, feature: str, objective: str) -> bool:
        """Whether it takes account of a feature for that objective."""
        return feature in self.features and (not self.features_for or objective in self.features_for)

    def load(self) -> Method:
        """Import the method's module and return the method."""
        return cast(Method, imported(self.place))
