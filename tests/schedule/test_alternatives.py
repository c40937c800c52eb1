"""Plans with alternatives are simulated with the chosen figures: loads and memory are the evaluator's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partitioner import (
    Alternative,
    Alternatives,
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Solution,
    WorkloadError,
    evaluate,
    solve,
)
from partitioner.schedule import simulate
from tests.random_alternatives import devices_of, options_of, random_case


def agrees_with_the_evaluator(rng: np.random.Generator) -> bool:
    """Whether a random case has a plan; if so, its simulation has the evaluator's load and no more memory."""
    case = random_case(rng)
    devices, options = devices_of(case), options_of(case) | {"objective": "throughput"}
    if case.schedule is None:
        return False
    try:
        plan = solve(case.graph, devices, **options)
    except (InfeasibleError, NoPlanFound, WorkloadError):
        return False
    judged = evaluate(case.graph, devices, plan, "throughput")
    schedule = None if case.schedule == "inference" and case.graph.backward.any() else case.schedule
    if not case.graph.backward.any():
        schedule = "inference"
    found = simulate(case.graph, devices, plan, schedule or "single_stream", case.microbatches or 24)
    assert found.bound == pytest.approx(judged.value)
    assert found.makespan >= found.bound * (1 - 1e-9)
    memory = {load.name: load.memory for load in judged.loads}
    if schedule == case.schedule:
        for name, peak in zip(found.devices, found.peak_memory.tolist(), strict=True):
            assert peak <= memory[name] * (1 + 1e-9) + 1e-9
    return bool(plan.alternatives)


def test_loads_and_memory_are_the_evaluators() -> None:
    rng = np.random.default_rng(5)
    assert sum(agrees_with_the_evaluator(rng) for _ in range(60)) > 10


@pytest.mark.slow
def test_many_loads_and_memories_are_the_evaluators() -> None:
    rng = np.random.default_rng(6)
    assert sum(agrees_with_the_evaluator(rng) for _ in range(400)) > 60


def test_a_way_on_one_device_is_as_its_own_figures() -> None:
    """The same path twice: with the figures of the ways, and with the ways to choose."""
    own = {"gpu": [1.0, 2.0, 3.0, 4.0]}
    slow = {"gpu": [1.5, 2.0, 3.0, 5.0]}
    edges = [(0, 1), (1, 2), (2, 3)]
    shared: dict[str, Any] = {"backward": [False, False, True, True], "color": ["a", "b", "b", "a"]}
    graph = Graph.from_arrays(own, edges, 0.5, activations=[8.0, 4.0, 0.0, 0.0], **shared)
    expected = Graph.from_arrays(slow, edges, 0.5, activations=[1.0, 4.0, 0.0, 0.0], **shared)
    ways = Alternatives(
        {
            0: [Alternative("recomputed", {"gpu": 1.5}, activations=1.0)],
            3: [Alternative("recomputed", {"gpu": 5.0})],
        }
    )
    placement: dict[Any, str] = {0: "gpu0", 1: "gpu1", 2: "gpu1", 3: "gpu0"}
    devices = Devices((DeviceKind("gpu", 2),))
    chosen = Solution(placement, alternatives={0: "recomputed", 3: "recomputed"})
    for schedule in ("gpipe", "1f1b", "zb-h1"):
        one = simulate(replace(graph, alternatives=ways), devices, chosen, schedule, 6)
        other = simulate(expected, devices, placement, schedule, 6)
        assert one.makespan == other.makespan and one.peak_memory.tolist() == other.peak_memory.tolist()


def pair_of_devices() -> Graph:
    """A path of two nodes; two devices run the first one in half of its time, with a surcharge."""
    graph = Graph.from_arrays({"gpu": [8.0, 4.0]}, [(0, 1)], 1.0, parameters=[6.0, 2.0])
    outputs = {1: 0.5}
    pair = Alternative("pair", {"gpu": 4.0}, 2, parameters=3.0, outputs=outputs)
    return replace(graph, alternatives=Alternatives({0: [pair]}))


def test_devices_that_run_a_stage_together_take_the_same_samples() -> None:
    """Of two copies of two devices each, the first device is shown: 4 and 1.5 out, then 1.5 for weights."""
    devices = Devices((DeviceKind("gpu", 5, bandwidth=2.0),))
    solution = Solution(
        {0: "gpu0", 1: "gpu4"}, {"gpu0": ("gpu1", "gpu2", "gpu3")}, ("gpu0", "gpu4"), alternatives={0: "pair"}
    )
    found = simulate(pair_of_devices(), devices, solution, "inference", 4)
    assert found.devices == ("gpu0", "gpu2", "gpu4")
    busy = dict(zip(found.devices, found.busy.tolist(), strict=True))
    assert busy["gpu0"] == busy["gpu2"] == 2 * (4 + 1.5 + 2 * 0.75) and busy["gpu4"] == 4 * (4 + 1)
    assert found.bound == evaluate(pair_of_devices(), devices, solution).value == 5.0
    assert "of devices that run a copy of a stage together, only the first one is shown" in found.notes


def test_a_stage_whose_devices_are_no_multiple_of_its_degree_is_refused() -> None:
    devices = Devices((DeviceKind("gpu", 4),))
    solution = Solution({0: "gpu0", 1: "gpu3"}, {"gpu0": ("gpu1", "gpu2")}, alternatives={0: "pair"})
    with pytest.raises(WorkloadError, match="the stage of gpu0 has 3 devices, which are no multiple of 2"):
        simulate(pair_of_devices(), devices, solution, "inference", 4)
