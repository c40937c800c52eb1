"""One stage over several groups has a number of devices that it may have, and holds what it must."""

from __future__ import annotations

import numpy as np

from partitioner import DeviceKind, Devices, Graph, Level
from partitioner.methods.dp.levels_tables import one_stage, spread
from partitioner.methods.dp.pipeline_tables import StateSpace
from tests.methods.dp.pipeline_cases import problem_of
from tests.random_pipelines import Case

DEVICES = Devices((DeviceKind("gpu", 8),), levels=(Level("server", {"gpu": 2}, 3.0),))
GRAPH = Graph.from_arrays({"gpu": [1.0, 2.0]}, [(0, 1)], cost=1.0)


def test_only_whole_groups() -> None:
    problem = problem_of(Case(GRAPH, DEVICES, replicas=8, schedule="1f1b"))
    copies = np.array([4, 6])
    states = one_stage(1, 0, 6, dominance=True)
    memory_model = spread(problem, StateSpace(problem), 3, copies, states)
    assert np.flatnonzero(np.isfinite(memory_model.in_flight[0])).tolist() == [4, 6]
    assert memory_model.in_flight[0, 4] == 2  # ceil((3 + 4) / 4)
    assert memory_model.in_flight[0, 6] == 2  # ceil((3 + 6) / 6)
    assert memory_model.versions[0, 4] == 1
    assert states.left[:, 0].tolist() == [6, 0, 0, 0, 0, 0, 0]
