"""Within any limit there is a plan, also of large graphs, and at least as good as the chain found first."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, NoPlanFound, solve
from partitioner.clock import Clock
from partitioner.methods.dp.linear import solve_linear
from partitioner.methods.ip.solve import solve_ip
from partitioner.methods.method import Settings
from partitioner.preprocess.contract import Goal, contract
from tests.large_graphs import SHAPES, large_graph

DEVICES = Devices.accelerated(4, cpus=1)
PAST = Settings(clock=Clock(0.0))
LARGE = 20_000


@pytest.mark.parametrize(
    ("shape", "n"), [*((shape, 200) for shape in SHAPES), ("star_in", 5000), ("path", 5000)]
)
@pytest.mark.parametrize("objective", ["throughput", "batch"])
def test_a_chain_is_found_even_if_all_time_is_over(shape: str, n: int, objective: str) -> None:
    options: dict[str, Any] = {"microbatches": 8} if objective == "batch" else {}
    graph = large_graph(shape, n)
    plan = solve(graph, DEVICES, objective=objective, time_limit=1e-6, **options)
    assert plan.stop_reason == "time_limit"
    assert len(plan.stages) > 1


@pytest.mark.parametrize("split", ["free", "convex"])
@pytest.mark.parametrize("shape", SHAPES)
def test_other_splits_begin_with_the_chain(shape: str, split: str) -> None:
    problem = contract(large_graph(shape, 200), DEVICES, Goal("throughput", split))
    assert problem.chain is not None
    chain = solve_linear(problem.chain, PAST).value
    found = solve_ip(problem, PAST)
    assert np.isfinite(chain)
    assert found.value <= chain * (1 + 1e-9)
    assert found.stop_reason == "time_limit"


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["star_in", "star_out", "path", "grid", "sparse"])
@pytest.mark.parametrize("split", ["chain", "free"])
def test_large_graphs_keep_the_limit(shape: str, split: str) -> None:
    """As far as that can be said of a machine that does other work: in processor time of this process."""
    solve(large_graph(shape, 100), DEVICES, split=split, time_limit=5.0)  # loads the kernels
    graph = large_graph(shape, LARGE)
    before = time.process_time()
    plan = solve(graph, DEVICES, split=split, time_limit=1.0)
    assert time.process_time() - before < 2 * 4.0  # two threads at most
    assert len(plan.placement) == len(graph)


def test_pipedreams_planner_ends_when_the_time_is_over() -> None:
    with pytest.raises(NoPlanFound, match="had not ended when the time was over"):
        solve(large_graph("path", 1000), Devices.accelerated(4), method="pipedream", time_limit=1e-6)
