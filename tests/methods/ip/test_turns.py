"""With ``deterministic`` the same call gives the same plan, bound and value, whatever the solver."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from partitioner import Devices, Plan, solve
from tests.methods.ip.backends import EACH_BACKEND
from tests.methods.ip.cases import hard_graph
from tests.methods.slow_parameters import slow

DEVICES = Devices.accelerated(3)


def result(plan: Plan) -> tuple[Any, ...]:
    return dict(plan.placement), plan.value, plan.bound, plan.stop_reason, plan.subgraphs


def twice(n: int, objective: str, **options: Any) -> Plan:
    """The plan of a quiet run, after the check that a run beside a busy thread finds the same."""
    graph = hard_graph(n)
    plan = solve(graph, DEVICES, objective, deterministic=True, **options)
    ended = threading.Event()
    busy = threading.Thread(target=lambda: [None for _ in iter(ended.is_set, True)])
    busy.start()
    try:
        again = solve(graph, DEVICES, objective, deterministic=True, **options)
    finally:
        ended.set()
        busy.join()
    assert result(plan) == result(again)
    return plan


@pytest.mark.parametrize("backend", EACH_BACKEND)
def test_every_backend_ends_by_the_gap(backend: str) -> None:
    plan = twice(16, "throughput", split="free", backend=backend, gap=0.05)
    assert plan.stop_reason in ("gap", "optimal") and plan.gap <= 0.05 + 1e-6


@pytest.mark.parametrize(
    ("objective", "options"),
    [
        slow("gpipe", {"split": "free", "gap": 0.1}),
        slow("throughput", {"split": "convex", "gap": 0.1, "workers": 2}),
        slow("latency", {"gap": 0.3}),
        slow("makespan", {"gap": 0.1}),
    ],
)
def test_every_objective(objective: str, options: dict[str, Any]) -> None:
    twice(14, objective, **options)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("objective", "gap"), [("throughput", 0.02), ("gpipe", 0.02), ("latency", 0.1)])
def test_larger_graphs(objective: str, gap: float, seed: int) -> None:
    twice(24, objective, split=None if objective == "latency" else "free", gap=gap, seed=seed)
