"""What the planner answers."""

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
        How often it is replicated on each level, the innermost first; their product is the
        machines it takes.
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
    """What the planner predicts. Times are per minibatch, in the unit of the layers' times.

    Parameters
    ----------
    time
        Time of the slowest part of the pipeline.
    stages
        The innermost stages in order.
    single_machine_time, data_parallel_time
        For comparison: everything on one machine, and one stage on all of them, level after level.
    states
        How many states the pipeline could be cut at.
    """

    time: float
    stages: tuple[Stage, ...]
    single_machine_time: float
    data_parallel_time: float
    states: int
