"""The states and the memory of one stage on all devices of a kind in several groups."""

from __future__ import annotations

import numpy as np

from partitioner.methods.dp.pipeline.arrays import DeviceStates
from partitioner.methods.dp.pipeline.states import StateSpace
from partitioner.methods.dp.stages import MemoryModel, memory_model_of
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.in_flight import samples_in_flight

MOST_MEMORY = 1e300


def one_stage(kinds: int, kind: int, most: int, dominance: bool) -> DeviceStates:
    """Return the states of a single stage: the number of devices of one kind that it has, up to `most`."""
    left = np.zeros((most + 1, kinds), dtype=np.int64)
    left[0, kind] = most
    return DeviceStates(
        left, np.ones(kinds, dtype=np.int64), 0, np.zeros(most + 1, dtype=np.int64), dominance
    )


def spread(
    problem: PipelineProblem, space: StateSpace, behind: int, copies: Ints, states: DeviceStates
) -> MemoryModel:
    """Return the memory that one stage takes on each device, infinity for numbers of devices not in `copies`.

    Parameters
    ----------
    problem, space
        The problem on the devices of one group, and its states.
    behind
        The number of devices of the stages after it.
    copies
        The numbers of devices that it may have.
    states
        Its states, from :func:`one_stage`.
    """
    pipeline = problem.pipeline
    most = int(copies.max())
    samples, versions = np.full((2, most + 1, most + 1), np.inf)
    for each in copies.tolist():
        samples[:, each] = versions[:, each] = 1
        if pipeline.schedule is not None:
            found = samples_in_flight(pipeline.schedule, behind, each, pipeline.microbatches)
            samples[:, each], versions[:, each] = found
    base = memory_model_of(problem, space.states)
    shape = states.left.shape
    return base._replace(
        memory=np.minimum(base.memory, MOST_MEMORY),
        in_flight=samples,
        versions=versions,
        least_in_flight=np.full(shape, samples[0].min()),
        least_versions=np.full(shape, versions[0].min()),
        staged=True,
    )
