"""Copies of a pipeline with several stages on a device: each is simulated as the pipeline is by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, OptionError, Solution, evaluate
from partitioner.schedule import Timeline, simulate
from partitioner.schedule.passes import split_backward
from partitioner.schedule.reading import read_passes
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.schedule.lines import random_line
from tests.schedule.replay import contradictions, recomputed

Case = tuple[Graph, Devices, Solution, str, int, int]


def random_copies(rng: np.random.Generator, name: str, bandwidth: float | None = None) -> Case:
    """A path in stages on 1 to 3 devices, 1 to 3 copies of it, and microbatches that the schedule runs."""
    devices, copies = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    least, _, most = VIRTUAL[name].chunks
    chunks = int(rng.integers(least, min(most, 3) + 1))
    count = devices * chunks
    graph = random_line(rng, count).graph
    parts = graph.parts.copy()
    parts[4] = 0.0  # the evaluator adds the largest workspace to the worst moment, whenever it is needed
    graph = replace(graph, parts=parts)
    ranks = VIRTUAL[name].ranks(devices, chunks)
    stage_of: dict[Any, int] = {i: min(i, 2 * count - 1 - i) for i in range(2 * count)}
    order = tuple(f"gpu{copies * rank}" for rank in ranks)
    replicas = {
        f"gpu{copies * rank}": tuple(f"gpu{copies * rank + i}" for i in range(1, copies))
        for rank in range(devices)
    }
    solution = Solution(
        {node: order[stage] for node, stage in stage_of.items()},
        replicas={name: others for name, others in replicas.items() if others},
        order=order,
        stage_of=stage_of,
    )
    numbers = [
        each
        for each in range(copies, 24)
        if not any(VIRTUAL[name].rule(devices, part) for part in {each // copies, -(-each // copies)})
    ]
    communication = str(rng.choice(["sequential", "overlapped", "duplex"]))
    gpus = DeviceKind("gpu", devices * copies, bandwidth=bandwidth)
    return graph, Devices((gpus,), communication), solution, name, int(rng.choice(numbers)), copies


def alone(case: Case, microbatches: int) -> Timeline:
    """The timeline of one copy by itself."""
    graph, devices, solution, name, _, _ = case
    one = Solution(solution.placement, order=solution.order, stage_of=solution.stage_of)
    return simulate(graph, devices, one, name, microbatches)


def every_copy_is_the_pipeline_alone(rng: np.random.Generator, name: str) -> None:
    """Without an exchange of weights, in time and in memory; the evaluator finds the same memory and load."""
    case = random_copies(rng, name)
    graph, devices, solution, name, microbatches, copies = case
    found = simulate(graph, devices, solution, name, microbatches)
    parts = [len(range(copy, microbatches, copies)) for copy in range(copies)]
    expected = [alone(case, part) for part in parts]
    assert found.makespan == max(each.makespan for each in expected)
    peak = dict(zip(found.devices, found.peak_memory.tolist(), strict=True))
    for copy, each in enumerate(expected):
        for device, memory in zip(each.devices, each.peak_memory.tolist(), strict=True):
            assert peak[f"gpu{int(device[3:]) + copy}"] == pytest.approx(memory)
    judged = evaluate(graph, devices, solution, schedule=name, microbatches=microbatches)
    assert judged.feasible and judged.value == pytest.approx(found.bound)
    for load in judged.loads:
        lead = load.replica_of or load.name
        together = (lead, *solution.replicas.get(lead, ()))
        assert load.memory == pytest.approx(max(peak[each] for each in together))


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize("seed", range(4))
def test_every_copy_is_the_pipeline_alone(name: str, seed: int) -> None:
    every_copy_is_the_pipeline_alone(np.random.default_rng(seed), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", VIRTUAL)
def test_many_copies_are_the_pipeline_alone(name: str) -> None:
    rng = np.random.default_rng(9)
    for _ in range(150):
        every_copy_is_the_pipeline_alone(rng, name)


@pytest.mark.parametrize("name", VIRTUAL)
def test_copies_are_possible_and_wait_for_nothing_else(name: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(6):
        graph, devices, solution, name, microbatches, _ = random_copies(rng, name)
        found = simulate(graph, devices, solution, name, microbatches)
        passes = read_passes(graph, devices, solution)
        passes = passes if name == "interleaved_1f1b" else split_backward(passes, 0.5)
        assert contradictions(found, passes, devices.communication) == []
        if devices.communication == "sequential":
            expected = recomputed(found, passes)
            assert np.allclose(list(expected.values()), found.begin[:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", VIRTUAL)
def test_copies_exchange_weights(name: str) -> None:
    """The load with the exchange is the evaluator's, and no batch takes less time than that."""
    rng = np.random.default_rng(5)
    for _ in range(8):
        graph, devices, solution, name, microbatches, copies = random_copies(rng, name, bandwidth=2.0)
        found = simulate(graph, devices, solution, name, microbatches)
        judged = evaluate(graph, devices, solution, schedule=name, microbatches=microbatches)
        assert judged.value == pytest.approx(found.bound)
        assert found.makespan >= found.bound * (microbatches // copies) * copies * (1 - 1e-9)
        assert any(each.part == "sync" for each in found.operations()) == any(
            load.sync > 0 for load in judged.loads
        )


def test_copies_that_do_not_go_are_refused() -> None:
    graph = random_line(np.random.default_rng(1), 4).graph
    order = ("gpu0", "gpu1", "gpu1", "gpu0")
    stage_of: dict[Any, int] = {i: min(i, 7 - i) for i in range(8)}
    placement = {node: order[stage] for node, stage in stage_of.items()}
    uneven = Solution(placement, {"gpu0": ("gpu2",)}, order, stage_of=stage_of)
    even = Solution(placement, {"gpu0": ("gpu2",), "gpu1": ("gpu3",)}, order, stage_of=stage_of)
    devices = Devices((DeviceKind("gpu", 4),))
    with pytest.raises(OptionError, match="needs as many replicas of each device, there are 1 or 2"):
        simulate(graph, devices, uneven, "zbv", 4)
    words = "microbatches = 0 of one of 2 copies of the pipeline: must be at least 1 for schedule 'zbv'"
    with pytest.raises(OptionError, match=words):
        simulate(graph, devices, even, "zbv", 1)
    words = "microbatches = 2 of one of 2 copies of the pipeline: must be at least 4 for 2 devices"
    with pytest.raises(OptionError, match=words):
        simulate(graph, devices, even, "dualpipev", 4)

    def broken(solution: Solution, name: str, microbatches: int) -> tuple[str, ...]:
        return evaluate(graph, devices, solution, schedule=name, microbatches=microbatches).violations

    words = "schedule 'zbv' needs as many copies of each device, there are 1 or 2"
    assert broken(uneven, "zbv", 4) == (words,)
    assert broken(even, "zbv", 1) == (
        "the number of microbatches is 1, there are more copies of the pipeline",
    )
    assert broken(even, "dualpipev", 4) == (
        "the number of microbatches of a copy is 2, it must be at least 4 for 2 devices",
    )
    assert broken(even, "dualpipev", 8) == ()
