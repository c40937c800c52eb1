"""Devices are those of the groups, in the order of the pipeline, and pins have their place."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, Level
from partitioner.methods.dp.levels_model import in_group, layout_of, over_groups
from partitioner.methods.method import Part
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.constraints import Constraints
from tests.methods.dp.pipeline_cases import problem_of, solved
from tests.random_pipelines import Case

DEVICES = Devices(
    (DeviceKind("gpu", 12),), levels=(Level("server", {"gpu": 2}, 3.0), Level("rack", {"gpu": 4}, 9.0))
)


def some_problem(schedule: str | None = None) -> PipelineProblem:
    """Three nodes in a row, the last one pinned to the second device of the second server."""
    graph = Graph.from_arrays({"gpu": [1.0, 2.0, 3.0]}, [(0, 1), (1, 2)], cost=1.0)
    return problem_of(Case(graph, DEVICES, Constraints(pin={2: "gpu3"}), schedule=schedule))


def test_groups_and_positions() -> None:
    layout = layout_of(some_problem())
    assert (layout.groups, layout.spans.tolist(), layout.bound) == (6, [1, 2, 6], True)
    assert [layout.end(1, position) for position in range(6)] == [2, 2, 4, 4, 6, 6]
    assert layout.devices(0, 1) == range(2, 4)
    assert layout.home.tolist() == [[6, -1], [6, -1], [1, 1]]
    assert layout.at_home(1, 2).tolist() == [True, True, True]
    assert layout.at_home(2, 6).tolist() == [True, True, False]


def test_turned_problems_count_from_the_end() -> None:
    layout = layout_of(some_problem("1f1b").turned())
    assert layout.devices(0, 0) == range(10, 12)
    assert layout.devices(0, 1, 2) == range(6, 10)
    assert layout.home.tolist() == [[4, 4], [6, -1], [6, -1]]


def test_pinned_stages_have_their_device() -> None:
    problem = some_problem()
    layout = layout_of(problem)
    stages = [Part(0, np.array([0, 1])), Part(0, np.array([2]))]
    assert [stage.devices for stage in in_group(problem, layout, stages, 1)] == [(2,), (3,)]
    assert over_groups(layout, 0, np.arange(3), 1, 2).devices == (2, 3, 4, 5)


@pytest.mark.parametrize("schedule", [None, "inference", "gpipe", "1f1b"])
def test_devices_ascend_along_the_pipeline(schedule: str | None) -> None:
    devices = Devices((DeviceKind("gpu", 8),), levels=(Level("server", {"gpu": 4}, 3.0),))
    graph = Graph.from_arrays({"gpu": [9.0] * 8}, [(v, v + 1) for v in range(7)], cost=0.1)
    outcome = solved(Case(graph, devices, schedule=schedule, microbatches=8))
    assert outcome.parts is not None
    assert [part.devices for part in outcome.parts] == [(i,) for i in range(8)]


def test_a_pin_keeps_its_device_and_the_others_ascend_around_it() -> None:
    devices = Devices((DeviceKind("gpu", 4),), levels=(Level("server", {"gpu": 4}, 3.0),))
    graph = Graph.from_arrays({"gpu": [9.0] * 4}, [(v, v + 1) for v in range(3)], cost=0.1)
    outcome = solved(Case(graph, devices, Constraints(pin={0: "gpu2"}), schedule="1f1b"))
    assert outcome.parts is not None
    assert [part.devices for part in outcome.parts] == [(2,), (0,), (1,), (3,)]
