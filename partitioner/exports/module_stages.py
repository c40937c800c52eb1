"""Stages of whole modules, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from partitioner.workload.graph import Ints


@dataclass(frozen=True)
class ModuleStage:
    """The modules of a stage in forward order, and its device."""

    modules: tuple[str, ...]
    device: str


@dataclass(frozen=True, eq=False)
class Stages:
    """A plan as stages; every module is in exactly one.

    Parameters
    ----------
    stages
        The stages from first to last.
    of
        Shape (n,): the stage of every node; -1 for backward nodes of no module.
    ways
        The name of the alternative of each module that does not run by its own figures.
    """

    stages: tuple[ModuleStage, ...]
    of: Ints
    ways: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranks(self) -> tuple[str, ...]:
        """The devices in the order of their first stages."""
        return tuple(dict.fromkeys(stage.device for stage in self.stages))

    @property
    def rank_of(self) -> tuple[int, ...]:
        """The position among `ranks` of the device of each stage."""
        number = {device: i for i, device in enumerate(self.ranks)}
        return tuple(number[stage.device] for stage in self.stages)

    @property
    def modules(self) -> tuple[str, ...]:
        """All modules in the order of the stages."""
        return tuple(name for stage in self.stages for name in stage.modules)
