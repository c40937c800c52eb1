"""The states of the dynamic program: the devices that the stages placed so far use."""

from __future__ import annotations

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Bools, DeviceStates
from partitioner.methods.dp.pipeline.loads import largest_copies
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem

BYTES_PER_STATE = 17
HEAVY = 50_000  # states above which ideals take long


class StateSpace:
    """All vectors of used devices by kind in mixed radix, with the number of stages if that is needed.

    It is needed if the number of stages is fixed and a stage may have several devices.

    Parameters
    ----------
    problem
        The problem, whose counts, replicas and limits are used.

    Attributes
    ----------
    count
        How many states there are; the first one uses no device.
    free
        Shape (S, K): devices that a state leaves.
    states
        The arrays that the kernel reads.
    final
        Shape (S,): whether a pipeline may end with these devices.
    """

    def __init__(self, problem: Problem) -> None:
        limits, counted = problem.limits, counts_stages(problem)
        radix = problem.count + 1
        stride = np.concatenate((np.ones(1, np.int64), np.cumprod(radix)))
        self.count = state_count(problem)
        number = np.arange(self.count)
        used = (number[:, None] // stride[:-1]) % radix
        behind = used.sum(axis=1)
        stages = number // stride[-1] if counted else behind
        self.free: Ints = problem.count - used
        left = np.minimum(self.free, largest_copies(problem))
        left[(stages >= limits.stages) & (limits.stages > 0)] = 0
        self.states = DeviceStates(
            left=left,
            stride=stride[:-1],
            hop=int(stride[-1]) if counted else 0,
            behind=behind,
            dominance=not limits.all_devices and limits.stages == 0,
        )
        enough = (self.free == 0).all(axis=1) | (not limits.all_devices)
        self.final: Bools = enough & ((stages == limits.stages) | (limits.stages == 0))

    def step(self, kind: int, copies: int) -> int:
        """Return by how much a stage on `copies` devices of a kind changes the number of the state."""
        return int(copies * self.states.stride[kind]) + self.states.hop


def counts_stages(problem: Problem) -> bool:
    """Whether states must record the number of stages."""
    return problem.limits.stages > 0 and int(problem.copies.max()) > 1


def state_count(problem: Problem) -> int:
    """Return how many states there are."""
    stages = problem.limits.stages + 1 if counts_stages(problem) else 1
    return int(np.prod(problem.count + 1, dtype=object)) * stages


def state_bytes(problem: Problem) -> int:
    """Return the bytes that the table takes for each ideal, times :func:`heaviness`."""
    count = state_count(problem)
    return BYTES_PER_STATE * count * heaviness(count)


def heaviness(states: int) -> int:
    """Return a weight in the memory budget for many states, so that no ideal takes long; 1 if they are few.

    Examples
    --------
    >>> heaviness(50_000), heaviness(390_625)
    (1, 61)
    """
    return max(1, states**2 // HEAVY**2)
