"""The fitted graph has a row of times for each kind, and obeys what constraints say of nodes."""

from __future__ import annotations

import numpy as np

from partitioner import Constraints, DeviceKind, Devices, Graph
from partitioner.demands import demands_of
from partitioner.preprocess.fit import fit
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


def test_what_is_together_is_of_one_colour() -> None:
    """Colour a with node 2 through node 1; nodes 1 and 3 share a device."""
    apart = fitted((OWN,), Constraints())
    assert len(set(apart.color.tolist()) - {-1}) == 2
    graph = fitted((OWN,), Constraints(together=[[0, 1], [1, 2]]))
    assert graph.color[0] == graph.color[1] == graph.color[2] != graph.color[3]
    pinned = fitted((OWN,), Constraints(pin={1: "gpu0", 3: "gpu0", 2: "gpu1"}))
    assert pinned.color[1] == pinned.color[3] != pinned.color[2]


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
        same = graph.color[:, None] == graph.color
        same &= (graph.color >= 0)[:, None]
        assert np.array_equal((again.color[:, None] == again.color) & (again.color >= 0)[:, None], same)
