"""One stage on all devices of a kind in several groups: its states and what it takes of each device."""

from __future__ import annotations

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Burden, States
from partitioner.methods.dp.pipeline.loads import pipeline_of
from partitioner.methods.dp.pipeline.model import burden_of
from partitioner.methods.dp.pipeline.states import StateSpace
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem
from partitioner.workload.in_flight import held

MOST_MEMORY = 1e300


def one_stage(kinds: int, kind: int, most: int, thrifty: bool) -> States:
    """States of a single stage: how many devices of the kind it has, of `most`."""
    left = np.zeros((most + 1, kinds), dtype=np.int64)
    left[0, kind] = most
    return States(left, np.ones(kinds, dtype=np.int64), 0, np.zeros(most + 1, dtype=np.int64), thrifty)


def spread(problem: Problem, space: StateSpace, behind: int, copies: Ints, states: States) -> Burden:
    """What one stage takes of each device, infinitely much with a number of devices it may not have.

    Parameters
    ----------
    problem, space
        The problem on the devices of one group, and its states.
    behind
        The devices in use by the stages after it.
    copies
        The numbers of devices that it may have.
    states
        Its states, from `one_stage`.
    """
    pipeline = pipeline_of(problem)
    most = int(copies.max())
    samples, versions = np.full((2, most + 1, most + 1), np.inf)
    for each in copies.tolist():
        samples[:, each] = versions[:, each] = 1
        if pipeline.schedule is not None:
            found = held(pipeline.schedule, behind, each, pipeline.microbatches)
            samples[:, each], versions[:, each] = found
    base = burden_of(problem, space)
    shape = states.left.shape
    return base._replace(
        memory=np.minimum(base.memory, MOST_MEMORY),
        held=samples,
        versions=versions,
        least_held=np.full(shape, samples[0].min()),
        least_versions=np.full(shape, versions[0].min()),
        staged=True,
    )
