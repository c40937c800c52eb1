"""The result of the planner."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One stage of a pipeline.

    Parameters
    ----------
    layers
        Positions of its layers, ascending.
    first
        On each level, the innermost first, the number of its first machine in a group of that level.
    replicas
        The number of replicas on each level, the innermost first; their product is the number of machines
        of the stage.
    """

    layers: tuple[int, ...]
    first: tuple[int, ...]
    replicas: tuple[int, ...]

    @property
    def machines(self) -> int:
        """How many machines the stage takes."""
        return math.prod(self.replicas)


@dataclass(frozen=True)
class PipeDreamPlan:
    """A planned pipeline with its predicted times, per minibatch in the unit of the layers' times.

    Parameters
    ----------
    time
        Time of the slowest part of the pipeline.
    stages
        The stages in order, each on machines of the innermost level.
    single_machine_time, data_parallel_time
        For comparison: the time of everything on one machine, and of one stage replicated on all machines.
    states
        The number of states at which the pipeline could be cut.
    """

    time: float
    stages: tuple[Stage, ...]
    single_machine_time: float
    data_parallel_time: float
    states: int
