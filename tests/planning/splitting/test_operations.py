"""Operations are split as Algorithm 2 of FastT says, and the plan is what the search promised.

What needs the kernel of list schedules, which takes long to compile, is marked slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    Dimension,
    Graph,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    Transfers,
    WorkloadError,
    evaluate,
    solve,
    split_operations,
)
from tests.methods.placers.plain_splits import random_model, search

pytestmark = pytest.mark.slow  # the kernels compile for 30 s

BATCH = Dimension("batch")


@pytest.mark.slow
def test_one_heavy_operation_by_hand() -> None:
    """A (1) -> heavy (8) -> b (1), tensors of 1: on one device 10.

    In two: a from 0 to 1, the first half from 1 to 5. The other half of the input arrives at 1.5, so the
    other half runs until 5.5 and is back at 6; b ends at 7.
    """
    graph = Graph.from_arrays({"accelerator": [1.0, 8.0, 1.0]}, [(0, 1), (1, 2)], 1.0)
    found = split_operations(graph, Devices.accelerated(2), {1: [BATCH]}, data_parallel=False)
    assert found.splits == ((1, "batch", 2),)
    assert (found.unsplit, found.plan.value, found.trials) == (10.0, 7.0, 1)
    schedule = found.plan.schedule
    assert schedule is not None
    times = {run.nodes[0]: (run.start, run.finish) for run in schedule.entries}
    assert times["1/batch/0of2"] == (1.0, 5.0)
    assert times["1/batch/1of2"] == (1.5, 5.5)
    assert times["1/batch/concatenate"] == (6.0, 6.0)
    assert times[2] == (6.0, 7.0)


@pytest.mark.slow
def test_nothing_is_split_where_transfers_eat_the_gain() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 8.0, 1.0]}, [(0, 1), (1, 2)], 10.0)
    found = split_operations(graph, Devices.accelerated(2), {1: [BATCH]}, data_parallel=False)
    assert (found.splits, found.unsplit, found.plan.value) == ((), 10.0, 10.0)
    assert found.trials == 1


@pytest.mark.slow
def test_the_first_that_does_not_help_ends_the_search() -> None:
    """The longest one cannot be sent; the next one, whose split would help, is not tried any more."""
    graph = Graph.from_arrays({"accelerator": [9.0, 8.0, 8.0]}, [(0, 1), (1, 2)], [0.0, 0.0])
    dear = Graph.from_arrays({"accelerator": [1.0, 9.0, 8.0]}, [(0, 1), (1, 2)], [50.0, 0.0])
    along = {1: [BATCH], 2: [BATCH]}
    helped = split_operations(graph, Devices.accelerated(2), along, data_parallel=False)
    stopped = split_operations(dear, Devices.accelerated(2), along, data_parallel=False)
    only = split_operations(dear, Devices.accelerated(2), {2: [BATCH]}, data_parallel=False)
    assert [node for node, _, _ in helped.splits] == [1, 2]
    assert (stopped.splits, stopped.trials) == ((), 1)
    assert only.splits == ((2, "batch", 2),)


@pytest.mark.slow
def test_as_brute_force() -> None:
    """The best dimension and number of parts of each operation, by calls of solve on rewritten graphs."""
    split = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph, along = random_model(rng, int(rng.integers(2, 8)))
        devices = Devices.accelerated(int(rng.integers(2, 4)))
        found = split_operations(graph, devices, along, data_parallel=False)
        value, splits = search(graph, devices, along, len(devices.names))
        assert list(found.splits) == splits
        assert found.plan.value == pytest.approx(value, rel=1e-12)
        split += bool(splits)
    assert split > 15


@pytest.mark.slow
@pytest.mark.parametrize("contention", [False, True])
def test_never_slower_than_the_start_and_as_evaluated(contention: bool) -> None:
    """From replicas too, with little memory and channels that are shared."""
    split = 0
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        graph, along = random_model(rng, int(rng.integers(2, 10)))
        sizes = graph.size + graph.parts.sum(axis=0)
        memory = max(float(rng.choice([0.6, 2.0])) * float(sizes.sum()), float(sizes.max()))
        devices = Devices.accelerated(3, memory=memory)
        transfers = Transfers(contention=contention)
        try:
            found = split_operations(graph, devices, along, transfers=transfers, gradient_cost=0.1)
        except NoPlanFound:
            continue
        again = evaluate(
            found.graph,
            devices,
            found.plan.placement,
            "makespan",
            transfers=transfers,
            execution_order=found.plan.execution_order,
        )
        assert found.plan.value == again.value <= found.unsplit
        assert again.feasible
        assert bool(found.splits) == (found.plan.value < found.unsplit)
        split += bool(found.splits)
    assert split > 10


@pytest.mark.slow
def test_a_model_that_fits_starts_as_replicas() -> None:
    """Two replicas of a chain of 2 + 2 run side by side in 2; one that does not fit starts as it is."""
    graph = Graph.from_arrays({"accelerator": [2.0, 2.0]}, [("a", "b")], 1.0, ids=["a", "b"], size=1.0)
    replicas = split_operations(graph, Devices.accelerated(2, memory=2.0), {})
    assert replicas.unsplit == 2.0
    assert len(replicas.graph) == 6
    assert split_operations(graph, Devices.accelerated(2, memory=1.0), {}).graph.ids == ("a", "b")


@pytest.mark.slow
def test_replicas_have_the_dimensions_of_their_operation() -> None:
    """The heavy replica is split further; the cost of gradients is 1 over the bandwidth."""
    kind = DeviceKind("gpu", 2, bandwidth=0.5)
    graph = Graph.from_arrays({"gpu": [2.0, 12.0]}, [("a", "b")], 0.5, ids=["a", "b"], size=[1.0, 0.0])
    found = split_operations(graph, Devices((kind,)), {"b": [BATCH]}, data_parallel=True)
    assert {node for node, _, _ in found.splits} <= {"b/replica0", "b/replica1"}
    assert found.trials >= 1
    assert found.graph.cost.max() == 2.0


@pytest.mark.slow
def test_a_time_limit_of_nothing_tries_nothing() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 8.0, 1.0]}, [(0, 1), (1, 2)], 1.0)
    found = split_operations(graph, Devices.accelerated(2), {1: [BATCH]}, data_parallel=False, time_limit=0.0)
    assert (found.trials, found.splits) == (0, ())


@pytest.mark.slow
def test_no_room_is_no_plan() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 3}, [(0, 1), (1, 2)], size=2.0)
    with pytest.raises(InfeasibleError):
        split_operations(graph, Devices.accelerated(2, memory=3.0), {})


@pytest.mark.parametrize(
    ("dimensions", "text"),
    [
        ({7: [BATCH]}, "node = 7: is not the id"),
        ({0: [BATCH, BATCH]}, "distinct names"),
        ({0: ["batch"]}, "distinct names"),
        ({0: "batch"}, "distinct names"),
        ([BATCH], "must map ids"),
    ],
)
def test_wrong_dimensions_are_named(dimensions: Any, text: str) -> None:
    with pytest.raises(WorkloadError, match=text):
        split_operations(Graph.from_arrays({"accelerator": [1.0]}), Devices.accelerated(2), dimensions)


@pytest.mark.parametrize(
    "option",
    [
        {"largest_split": 1},
        {"largest_split": 2.0},
        {"split_time": -1.0},
        {"concatenate_time": float("inf")},
        {"gradient_cost": "much"},
        {"time_limit": -1},
        {"data_parallel": "yes"},
    ],
)
def test_wrong_options_are_named(option: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(option))):
        split_operations(Graph.from_arrays({"accelerator": [1.0]}), Devices.accelerated(2), {}, **option)


@pytest.mark.slow
def test_unsplit_is_the_plan_of_dpos() -> None:
    rng = np.random.default_rng(5)
    graph, along = random_model(rng, 9)
    found = split_operations(graph, Devices.accelerated(2), along, data_parallel=False)
    assert found.unsplit == solve(graph, Devices.accelerated(2), "makespan", method="dpos").value
