"""A transfer costs by the group that both its ends share; a tensor leaves once, to its farthest reader."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, Level
from partitioner.methods.dp.pipeline_loads import work_over_links
from partitioner.methods.method import Part
from partitioner.problem.variants import PipelineProblem
from tests.methods.dp.pipeline_cases import problem_of
from tests.random_pipelines import Case

LEVELS = (Level("server", {"gpu": 2}, 3.0), Level("rack", {"gpu": 4}, 10.0))


def chain_of(count: int, communication: str = "sequential") -> PipelineProblem:
    """A tensor of cost 1 made by node 0 and read by every other node, all of time 1."""
    edges = [(0, v) for v in range(1, count)]
    graph = Graph.from_arrays({"gpu": [1.0] * count}, edges, cost=1.0)
    return problem_of(Case(graph, Devices((DeviceKind("gpu", 8),), communication, LEVELS)))


def stages_on(*devices: tuple[int, ...]) -> list[Part]:
    """One stage for each supernode, on these devices."""
    return [Part(0, np.array([v]), len(each), each) for v, each in enumerate(devices)]


@pytest.mark.parametrize(("place", "slow"), [(1, 1.0), (2, 3.0), (3, 3.0), (4, 10.0), (7, 10.0)])
def test_a_transfer_costs_by_the_smallest_common_group(place: int, slow: float) -> None:
    work, _ = work_over_links(chain_of(2), stages_on((0,), (place,)))
    assert work.tolist() == [1 + slow, 1 + slow]


def test_a_tensor_leaves_once_to_its_farthest_reader() -> None:
    work, _ = work_over_links(chain_of(4), stages_on((0,), (1,), (2,), (4,)))
    assert work.tolist() == [11.0, 2.0, 4.0, 11.0]


def test_replicas_over_groups_are_as_far_as_their_farthest() -> None:
    work, own = work_over_links(chain_of(2), stages_on((0, 1, 2, 3), (4,)))
    assert own.tolist() == [3.0, 1.0]
    assert work.tolist() == [11.0, 11.0]
    work, own = work_over_links(chain_of(2), stages_on((1,), (2, 3, 4, 5)))
    assert own.tolist() == [1.0, 10.0]
    assert work.tolist() == [11.0, 11.0]


@pytest.mark.parametrize(("communication", "middle"), [("overlapped", 3.0), ("duplex", 3.0)])
def test_transfers_beside_the_work(communication: str, middle: float) -> None:
    work, _ = work_over_links(chain_of(2, communication), stages_on((0,), (2,)))
    assert work.tolist() == [middle, middle]
