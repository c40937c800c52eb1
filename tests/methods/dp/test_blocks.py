"""Merging runs of an order into blocks changes neither loads nor what a plan means."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.dp import forms
from partitioner.methods.loads import value_of
from partitioner.methods.method import Part
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import ChainProblem
from tests.contracted import contract_to


def chain_problem(n: int, rng: np.random.Generator, communication: str = "sequential") -> ChainProblem:
    """A chain of n supernodes with some skip edges; one in ten runs on CPUs only."""
    edges = [(i, i + 1) for i in range(n - 1)] + [(i, i + 7) for i in range(0, n - 7, 5)]
    time = rng.uniform(0.5, 2.0, n)
    cost = rng.uniform(0.1, 3.0, n)[[u for u, _ in edges]]
    allowed = np.arange(n) % 10 != 3
    graph = Graph.from_arrays(
        {"accelerator": time, "cpu": 5 * time}, edges, cost, allowed={"accelerator": allowed}
    )
    return contract_to(ChainProblem, graph, Devices.accelerated(3, cpus=2, communication=communication))


def training_problem(n: int, rng: np.random.Generator, communication: str) -> ChainProblem:
    """A chain of n supernodes with a backward part each, which reads tensors of other forward parts."""
    edges = [(i, i + 1) for i in range(2 * n - 1)] + [(i, 2 * n - 1 - i) for i in range(0, n, 3)]
    edges += [(i, 2 * n - 4 - i) for i in range(0, n - 3, 4)]
    color = [*range(n), *range(n - 1, -1, -1)]
    graph = Graph.from_arrays(
        {"accelerator": rng.uniform(0.5, 2.0, 2 * n), "cpu": rng.uniform(2.0, 8.0, 2 * n)},
        edges,
        rng.uniform(0.1, 3.0, len(edges)),
        backward=np.arange(2 * n) >= n,
        color=color,
    )
    devices = Devices.accelerated(3, cpus=2, communication=communication)
    return contract_to(ChainProblem, graph, devices, Goal(Measure.LARGEST_LOAD_BY_PASS))


@pytest.mark.parametrize("communication", ["sequential", "overlapped", "duplex"])
@pytest.mark.parametrize("make", [chain_problem, training_problem])
def test_loads_are_the_same(
    monkeypatch: pytest.MonkeyPatch, communication: str, make: Callable[..., ChainProblem]
) -> None:
    """A chain of blocks and the chain of their supernodes have the same value."""
    monkeypatch.setattr(forms, "MOST_BLOCKS", 20)
    rng = np.random.default_rng(1)
    problem = make(60, rng, communication)
    order = np.arange(problem.n)
    for _ in range(20):
        block = forms.blocks_of(problem, order, [int(rng.integers(problem.n))])
        assert block is not None
        coarse = forms.merged(problem, block)
        assert coarse.work()[1].sum() == pytest.approx(problem.work()[1].sum())
        cuts = np.sort(rng.integers(0, coarse.n + 1, 3))
        parts = [Part(1, part) for part in np.split(np.arange(coarse.n), cuts) if len(part)]
        fine = forms.split_blocks(parts, block)
        assert sum(len(stage.nodes) for stage in fine) == problem.n
        assert value_of(coarse, parts) == pytest.approx(value_of(problem, fine))


def test_blocks_do_not_mix_what_may_run_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """All supernodes of a block may run on the same kinds, so nothing becomes infeasible."""
    monkeypatch.setattr(forms, "MOST_BLOCKS", 10)
    problem = chain_problem(80, np.random.default_rng(2))
    block = forms.blocks_of(problem, np.arange(problem.n), [])
    assert block is not None
    for number in range(int(block.max()) + 1):
        assert np.unique(problem.allowed[:, block == number], axis=1).shape[1] == 1


def test_short_orders_stay_whole() -> None:
    """An order within the limit is not split into blocks."""
    problem = chain_problem(30, np.random.default_rng(3))
    assert forms.blocks_of(problem, np.arange(problem.n), []) is None
