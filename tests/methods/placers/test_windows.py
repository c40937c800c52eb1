"""Least times before and after tasks count transfers that cannot be avoided: by hand, and by the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph, Transfers
from partitioner.methods.placers.bound import makespan_bound
from partitioner.methods.placers.windows import windows
from tests.methods.placers.cases import cases, problem_of
from tests.oracle_paper_makespan import paper_makespan

Edges = list[tuple[int, int]]


def heads(times: list[float], edges: Edges, cost: list[float], devices: int = 3) -> list[float]:
    """The least time before each task."""
    graph = Graph.from_arrays({"accelerator": times}, edges, cost=cost)
    tasks = problem_of(graph, Devices.accelerated(devices), Transfers(slope=1.0)).tasks
    return [float(head) for head in windows(tasks, np.array(times))[0]]


def test_a_chain_stays_on_one_device() -> None:
    assert heads([1.0, 2.0, 3.0], [(0, 1), (1, 2)], [9.0, 9.0]) == [0.0, 1.0, 3.0]


def test_of_two_producers_one_sends_or_one_waits() -> None:
    assert heads([4.0, 3.0, 1.0], [(0, 2), (1, 2)], [9.0, 2.0])[2] == 5.0  # the second one sends
    assert heads([4.0, 3.0, 1.0], [(0, 2), (1, 2)], [9.0, 9.0])[2] == 7.0  # both run on one device
    assert heads([4.0, 3.0, 1.0], [(0, 2), (1, 2)], [0.5, 0.5])[2] == 4.0  # one of them sends in time


def test_producers_of_producers_must_be_there_too() -> None:
    edges = [(0, 2), (1, 3), (2, 4), (3, 4)]
    assert heads([1.0, 1.0, 1.0, 1.0, 1.0], edges, [9.0] * 4)[4] == 4.0


def test_one_device_runs_everything() -> None:
    assert heads([1.0, 1.0, 1.0], [(0, 2), (1, 2)], [0.0, 0.0], devices=1)[2] == 2.0


def test_tails_are_the_heads_of_the_graph_turned_round() -> None:
    for seed, graph, devices, transfers in cases(0, 60, 9):
        tasks = problem_of(graph, devices, transfers).tasks
        least = np.where(np.isfinite(tasks.time), tasks.time, 0.0).max(axis=0)
        head, tail = windows(tasks, least)
        for u, v in zip(tasks.before.items.tolist(), tasks.before.owners().tolist(), strict=True):
            assert head[v] >= head[u] + least[u], seed
            assert tail[u] >= tail[v] + least[v], seed


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 15), *(pytest.param(first, 500, marks=pytest.mark.slow) for first in range(30_000, 32_000, 500))],
)
def test_with_them_the_bound_is_at_most_the_optimum(first: int, count: int) -> None:
    for seed, graph, devices, transfers in cases(first, count, 4):
        alone = Transfers(transfers.slope, transfers.intercept)
        bound = makespan_bound(problem_of(graph, devices, alone))
        assert bound <= paper_makespan(graph, devices, alone) * (1 + 1e-9), seed
