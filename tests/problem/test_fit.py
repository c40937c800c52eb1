"""The fitted graph has a row of times for each kind, and obeys what constraints say of nodes."""

from __future__ import annotations

import numpy as np

from partitioner import Constraints, DeviceKind, Devices, Graph
from partitioner.problem.contract import contract
from partitioner.problem.fit import companions, fit
from partitioner.problem.goal import Goal
from partitioner.workload.resolved_constraints import demands_of
from tests.random_workloads import random_workload

GRAPH = Graph.from_arrays(
    {"gpu": [2.0, 4.0, 6.0, 8.0], "cpu": [9.0] * 4},
    [(0, 1), (1, 2), (2, 3)],
    size=1.0,
    allowed={"gpu": [True, True, True, False]},
    color=["a", None, None, "b"],
    parameters=[1.0, 2.0, 3.0, 4.0],
    gradients=10.0,
    optimizer=100.0,
    activations=1000.0,
    workspace=10_000.0,
)
FAST = DeviceKind("new", 2, times="gpu", time_factor=0.5)
OWN = DeviceKind("gpu", 2)
UNKNOWN = DeviceKind("tpu", 0)


def fitted(kinds: tuple[DeviceKind, ...], constraints: Constraints, by_schedule: bool = False) -> Graph:
    devices = Devices(kinds)
    return fit(GRAPH, devices, demands_of(GRAPH, devices, constraints), by_schedule)


def test_a_row_of_times_for_each_kind() -> None:
    graph = fitted((FAST, OWN, UNKNOWN), Constraints())
    assert graph.kinds == ("new", "gpu", "tpu")
    assert graph.time.tolist() == [[1, 2, 3, 4], [2, 4, 6, 8], [0, 0, 0, 0]]
    assert graph.allowed.tolist() == [[True] * 3 + [False]] * 2 + [[False] * 4]


def test_memory_in_parts_counts_once_or_by_schedule() -> None:
    assert fitted((OWN,), Constraints()).size.tolist() == [11_112, 11_113, 11_114, 11_115]
    assert fitted((OWN,), Constraints(), by_schedule=True).size.tolist() == [111] * 4


def test_pins_and_prohibitions_narrow_what_may_run() -> None:
    graph = fitted((FAST, OWN), Constraints(pin={0: "gpu"}, forbid={1: ["gpu"], 2: ["gpu", "new"]}))
    assert graph.allowed.tolist() == [[False, True, False, False], [True, False, False, False]]


def test_companions_share_a_class() -> None:
    """Node 2 is with 0 through 1; nodes 1 and 3 share a device; colours stay as they are."""
    devices = Devices((OWN,))
    apart = companions(demands_of(GRAPH, devices, Constraints()))
    assert apart.tolist() == [-1] * 4
    label = companions(demands_of(GRAPH, devices, Constraints(together=[[0, 1], [1, 2]])))
    assert label[0] == label[1] == label[2] >= 0 > label[3]
    label = companions(demands_of(GRAPH, devices, Constraints(pin={1: "gpu0", 3: "gpu0", 2: "gpu1"})))
    assert label[1] == label[3] != label[2] and label[0] == -1
    assert fitted((OWN,), Constraints(together=[[0, 1]])).color.tolist() == GRAPH.color.tolist()


def test_together_is_no_colour_for_orphans() -> None:
    """A backward node of its own colour stays an orphan, whose mirrored edges order stages (Appendix E.1)."""
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 4}, [(0, 1), (3, 2)], backward=[False, False, True, True], color=["a", "b", "a", None]
    )
    devices = Devices((OWN,))
    demands = demands_of(graph, devices, Constraints(together=[[1, 3]]))
    problem = contract(fit(graph, devices, demands), devices, Goal(classes=(companions(demands),)))
    assert problem.member[1] == problem.member[3]
    assert problem.successors.row(int(problem.member[0])).tolist() == [problem.member[1]]


def test_without_constraints_a_graph_stays_as_it_is() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        graph, devices = random_workload(rng)
        again = fit(graph, devices, demands_of(graph, devices, Constraints()))
        rows = [graph.kinds.index(kind.row) for kind in devices.kinds if kind.row in graph.kinds]
        assert len(rows) == len(devices.kinds)
        factors = np.array([[kind.time_factor] for kind in devices.kinds])
        assert np.array_equal(again.time, graph.time[rows] * factors)
        assert np.array_equal(again.allowed, graph.allowed[rows])
        assert np.array_equal(again.size, graph.size)
        assert np.array_equal(again.color, graph.color)
