"""Times and costs are the weighted sums of the phases, and a field of phases that breaks a rule is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner import Devices, Graph, OptionError, Workload, WorkloadError
from partitioner.workload.extras import Extras

NODES = [
    {"phases": {"prefill": {"gpu": 4.0, "cpu": 40.0}, "decode": {"gpu": 0.5, "cpu": 1.0}}},
    {"phases": {"prefill": {"gpu": 8.0, "cpu": 80.0}, "decode": {"gpu": 0.25, "cpu": 2.0}}, "kept": 1},
]
EDGES = [{"phases": {"prefill": 2.0, "decode": 0.125}}]


def served(nodes: Any = NODES, edges: Any = EDGES) -> Graph:
    extras = Extras({"timeUnit": "ms"}, nodes, edges)
    times = {"gpu": [1.0, 1.0], "cpu": [1.0, 1.0]}
    return Graph.from_arrays(times, [(0, 1)], 1.0, cache=[3.0, 4.0], extras=extras)


def test_times_and_costs_are_weighted_sums() -> None:
    graph = pt.weigh_phases(served(), {"prefill": 2, "decode": 8})
    assert graph.time.tolist() == [[12.0, 18.0], [88.0, 176.0]]
    assert graph.cost.tolist() == [5.0]
    assert graph.extras.top == {"timeUnit": "ms", "phaseWeights": {"prefill": 2, "decode": 8}}
    assert graph.extras.nodes == NODES and graph.cache.tolist() == [3.0, 4.0]


def test_weights_can_be_changed_again_and_phases_left_out() -> None:
    once = pt.weigh_phases(served(), {"prefill": 1})
    assert once.time[0].tolist() == [4.0, 8.0]
    assert pt.weigh_phases(once, {"decode": 4}).time[0].tolist() == [2.0, 1.0]


def test_a_load_is_the_weighted_sum_of_the_loads_of_the_phases() -> None:
    """If transfers and processing add up."""
    rng = np.random.default_rng(0)
    devices = Devices((pt.DeviceKind("gpu", 2),))
    placement = {0: "gpu0", 1: "gpu1"}
    for prefill, decode in rng.integers(1, 9, (10, 2)).tolist():
        loads = [
            np.array(
                [one.load for one in pt.evaluate(pt.weigh_phases(served(), w), devices, placement).loads]
            )
            for w in ({"prefill": 1}, {"decode": 1}, {"prefill": prefill, "decode": decode})
        ]
        np.testing.assert_allclose(loads[2], prefill * loads[0] + decode * loads[1])


def test_a_workload_file_keeps_them(tmp_path: Path) -> None:
    devices = Devices((pt.DeviceKind("gpu", 2, memory=50.0), pt.DeviceKind("cpu", 0)))
    Workload(served(), devices).save(tmp_path / "served.json")
    plain = pt.load(tmp_path / "served.json").graph
    assert plain.time[0].tolist() == [1.0, 1.0] and plain.cache.tolist() == [3.0, 4.0]
    assert plain.digest == served().digest
    graph = pt.load(tmp_path / "served.json", phases={"prefill": 1, "decode": 8}).graph
    assert graph.time[0].tolist() == [8.0, 10.0]


BROKEN: tuple[tuple[Any, Any, str], ...] = (
    ([{"phases": 3}, NODES[1]], EDGES, "node 0: phases = 3: must be an object with an entry for every phase"),
    (
        [{"phases": {"prefill": {"gpu": 1.0}}}, NODES[1]],
        EDGES,
        r"node 0: phases\[prefill\] = {'gpu': 1.0}: must have the times on gpu, cpu",
    ),
    (
        [{"phases": {"prefill": {"gpu": -1.0, "cpu": 1.0}}}, NODES[1]],
        EDGES,
        r"node 0: phases\[prefill\]\[gpu\] = -1.0: must be a number from 0",
    ),
    (NODES, [{"phases": {"prefill": "much"}}], r"edge 0 -> 1: phases\[prefill\] = 'much': must be a number"),
    ([{}, NODES[1]], EDGES, r"node 0: phases = \[\]: must have phase 'prefill', because it has a weight"),
    (NODES, [{}], r"edge 0 -> 1: phases = \[\]: must have phase 'prefill', because it has a weight"),
)


@pytest.mark.parametrize(("nodes", "edges", "message"), BROKEN)
def test_a_field_that_breaks_a_rule_is_named(nodes: Any, edges: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        pt.weigh_phases(served(nodes, edges), {"prefill": 1})


def test_a_broken_field_is_refused_when_a_file_is_read(tmp_path: Path) -> None:
    devices = Devices((pt.DeviceKind("gpu", 2),))
    Workload(served([{"phases": 3}, NODES[1]]), devices).save(tmp_path / "broken.json")
    with pytest.raises(WorkloadError, match=r"broken.json: node 0: phases = 3: must be an object"):
        pt.load(tmp_path / "broken.json")


@pytest.mark.parametrize("weights", [None, {}, {"prefill": 0}, {"prefill": -1}, {"prefill": "1"}, {1: 1.0}])
def test_weights_that_mean_nothing_are_refused(weights: Any) -> None:
    with pytest.raises(
        OptionError, match=r"phases = .*: must be a mapping from phases to numbers of at least 0"
    ):
        pt.weigh_phases(served(), weights)
