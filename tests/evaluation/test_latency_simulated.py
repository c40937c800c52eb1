"""On random workloads the schedule is the one that a slow simulator finds from event to event."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, evaluate
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.schedule import Run, Schedule
from tests.evaluation.simulator import Simulation, simulate
from tests.random_workloads import random_workload

Case = tuple[Graph, Devices, dict[Any, str], dict[str, Any]]


def random_case(rng: np.random.Generator) -> Case:
    """A workload of whole eighths, any placement or one in order, q of 1 or 2, subgraphs given or not."""
    graph, devices = random_workload(rng, 9, 4)
    graph = replace(graph, time=np.ceil(graph.time * 8) / 8, cost=np.ceil(graph.cost * 8) / 8)
    n = len(graph)
    home = rng.integers(0, len(devices.names), n)
    home = np.sort(home) if rng.random() < 0.4 else home
    placement = {node: devices.names[home[i]] for i, node in enumerate(graph.ids)}
    options: dict[str, Any] = {"subgraphs_per_accelerator": int(rng.integers(1, 3))}
    options["limited_cpus"] = bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        index = rng.integers(0, 3, n) if rng.random() < 0.3 else np.arange(n) * rng.integers(1, 5) // n
        options["subgraphs"] = dict(zip(graph.ids, index.tolist(), strict=True))
    return graph, devices, placement, options


def is_critical(schedule: Schedule, simulation: Simulation) -> bool:
    """Does the path start at 0, end with the last finish, and wait from step to step for a reason?"""
    runs = [schedule.entries[place] for place in schedule.critical_path]
    task = {tuple(simulation.graph.ids[i] for i in sorted(t.nodes)): t for t in simulation.tasks}
    return (
        runs[0].start == 0
        and runs[-1].finish == max(run.finish for run in schedule.entries)
        and all(
            before.finish == after.start
            and (task[before.nodes] in simulation.waits(task[after.nodes]) or before.device == after.device)
            for before, after in pairwise(runs)
        )
    )


def never_overlap(runs: list[Run]) -> bool:
    """Is there one at a time?"""
    return all(before.finish <= after.start for before, after in pairwise(runs))


def check(evaluation: Evaluation, simulation: Simulation) -> None:
    """Compare all that both know."""
    schedule, limited = evaluation.schedule, simulation.limited
    assert evaluation.value == simulation.value
    for entry in evaluation.loads:
        mine = [task for task in simulation.tasks if task.device == entry.name]
        parts = [task.parts for task in mine] or [(0.0, 0.0, 0.0)]
        into, compute, out = np.sum(parts, axis=0)
        assert (sum(entry.transfer_in), sum(entry.transfer_out)) == (into, out)
        assert sum(entry.compute) == compute or (limited and entry.kind == "cpu")
        assert entry.load == sum(task.length for task in mine) or entry.kind == "cpu"
    assert (schedule is None) == (simulation.value == math.inf)
    if schedule is None:
        return
    ids = simulation.graph.ids
    expected = {tuple(ids[i] for i in sorted(t.nodes)): (t.start, t.finish) for t in simulation.tasks}
    assert {run.nodes: (run.start, run.finish) for run in schedule.entries} == expected
    assert [run.start for run in schedule.entries] == sorted(run.start for run in schedule.entries)
    assert is_critical(schedule, simulation)
    for entry in evaluation.loads:
        runs = [run for run in schedule.entries if run.device == entry.name]
        assert never_overlap(runs) or (entry.kind == "cpu" and not limited)
        assert entry.load == sum(r.finish - r.start for r in runs) or (entry.kind == "cpu" and not limited)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_the_schedule_agrees_with_a_slow_simulator(seed: int) -> None:
    """On 250 random cases each: value, times, loads and critical path; some cannot be ordered."""
    rng = np.random.default_rng(seed)
    endless = 0
    for _ in range(250):
        graph, devices, placement, options = random_case(rng)
        simulation = simulate(graph, devices, placement, options.get("subgraphs"), options["limited_cpus"])
        check(evaluate(graph, devices, placement, "latency", **options), simulation)
        endless += simulation.value == math.inf
    assert 10 < endless < 200
