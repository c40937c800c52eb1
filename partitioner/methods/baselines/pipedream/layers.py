"""The planner's input: the layers of a profile and their edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.problem.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Layers:
    """The forward graph of `n` layers, which are named by their positions.

    Parameters
    ----------
    time
        Shape (n,): forward and backward time of one minibatch.
    activation
        Shape (n,): bytes of the output.
    parameters
        Shape (n,): bytes of the weights.
    edges
        Shape (m, 2): producer and consumer. The order of the layers and edges is that of the
        profile: the planner starts from the first layer without a producer.

    Raises
    ------
    WorkloadError
        If the columns differ in length or hold a number that is negative or not finite, or if the edges
        are not an acyclic graph over the layers.

    Examples
    --------
    >>> chain = Layers([1.0, 2.0], [8.0, 4.0], [0.0, 6.0], [(0, 1)])
    >>> len(chain), chain.order.tolist()
    (2, [0, 1])
    """

    time: Floats
    activation: Floats
    parameters: Floats
    edges: Ints

    def __post_init__(self) -> None:
        for name in ("time", "activation", "parameters"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        object.__setattr__(self, "edges", np.asarray(self.edges, dtype=np.int64).reshape(-1, 2))
        flaws = _flaws(self)
        if not flaws and len(self.order) < len(self):
            flaws = [Flaw("layers", "edges", "", "have a cycle; there must be none")]
        if flaws:
            raise WorkloadError(flaws)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def order(self) -> Ints:
        """A topological order of the layers, without those of a cycle and behind one."""
        waiting = np.bincount(self.edges[:, 1], minlength=len(self))
        consumers = [self.edges[self.edges[:, 0] == v, 1] for v in range(len(self))]
        order = np.flatnonzero(waiting == 0).tolist()
        for v in order:
            for w in consumers[v]:
                waiting[w] -= 1
                if waiting[w] == 0:
                    order.append(int(w))
        return np.array(order, dtype=np.int64)


def _flaws(layers: Layers) -> list[Flaw]:
    n = len(layers)
    flaws = [] if n else [Flaw("layers", "time", "", "there must be at least one layer")]
    for name in ("time", "activation", "parameters"):
        column = getattr(layers, name)
        if column.shape != (n,):
            flaws.append(Flaw("layers", name, f"shape {column.shape}", f"must have shape ({n},)"))
            continue
        wrong = np.flatnonzero(~(np.isfinite(column) & (column >= 0))).tolist()
        rule = "must be a finite number of at least 0"
        flaws += [Flaw(f"layer {i}", name, shown(float(column[i])), rule) for i in wrong]
    outside = layers.edges[((layers.edges < 0) | (layers.edges >= n)).any(axis=1)].tolist()
    return flaws + [Flaw("layers", "edges", shown(e), f"must be from 0 to {n - 1}") for e in outside]


MAX_MACHINES = 1024


class MachineLevel(NamedTuple):
    """`machines` machines, or groups of the level below, joined by links of `bandwidth`."""

    machines: int
    bandwidth: float


def checked_levels(levels: Sequence[tuple[int, float]]) -> list[MachineLevel]:
    """Return the levels, or raise :class:`OptionError` if there is none or one is out of its range."""
    if not levels or not all(_is_level(level) for level in levels):
        rule = f"must be pairs (machines, bandwidth), 1 to {MAX_MACHINES} machines and a bandwidth above 0"
        raise OptionError(f"levels = {shown(levels)}: {rule}")
    return [MachineLevel(machines, float(bandwidth)) for machines, bandwidth in levels]


def _is_level(level: tuple[int, float]) -> bool:
    return (
        isinstance(level, Sequence)
        and len(level) == 2
        and isinstance(level[0], int)
        and 1 <= level[0] <= MAX_MACHINES
        and _positive(level[1])
    )


def _positive(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < math.inf  # type: ignore[operator]


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
    """A planned pipeline with its predicted time, per minibatch in the unit of the layers' times.

    Parameters
    ----------
    time
        Time of the slowest part of the pipeline.
    stages
        The stages in order, each on machines of the innermost level.
    data_parallel_time
        For comparison: the time of one stage replicated on all machines.
    states
        The number of states at which the pipeline could be cut.
    """

    time: float
    stages: tuple[Stage, ...]
    data_parallel_time: float
    states: int
