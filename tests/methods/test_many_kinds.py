"""With a thousand kinds of devices limits of time and memory hold, and notes stay short."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, Plan, solve

SLACK = 6.0  # seconds over the limit on a busy machine; what is refuted took 20 to 90
PROGRAM = """
import numpy, partitioner
rng, n = numpy.random.default_rng(0), 200
star = [(0, i) for i in range(1, n - 1)] + [(i, n - 1) for i in range(1, n - 1)]
graph = partitioner.Graph.from_arrays({"gpu": rng.uniform(1, 9, n)}, star, 0.5, size=1.0)
devices = partitioner.Devices((partitioner.DeviceKind("gpu", 8),))
plan = partitioner.solve(graph, devices, replicas=4, time_limit=5)
print(plan.status, *plan.notes)
"""


def case(kinds: int, n: int = 50) -> tuple[Graph, Devices]:
    """A path of nodes that take different times on each of very many kinds."""
    rng = np.random.default_rng(0)
    names = [f"k{i}" for i in range(kinds)]
    path = [(i, i + 1) for i in range(n - 1)]
    graph = Graph.from_arrays({name: rng.uniform(1, 9, n) for name in names}, path, 0.5, size=1.0)
    return graph, Devices(tuple(DeviceKind(name, 1, memory=50.0) for name in names))


def timed(kinds: int, **options: Any) -> tuple[Plan, float]:
    graph, devices = case(kinds)
    began = time.perf_counter()
    return solve(graph, devices, workers=1, **options), time.perf_counter() - began


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["throughput", "makespan"])
@pytest.mark.parametrize("kinds", [80, 1000])
def test_limits_hold_with_many_kinds(objective: str, kinds: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plan, seconds = timed(kinds, objective=objective, time_limit=1.0)
    assert plan.bound <= plan.value and seconds < 1.0 + SLACK
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # a GiB
    assert all(len(note) < 300 for note in plan.notes)


def test_a_table_over_very_many_kinds_is_not_said_to_hold_no_ideals() -> None:
    plan, _ = timed(32, time_limit=1.0)
    assert not any("0 ideals" in note for note in plan.notes)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
@pytest.mark.slow
def test_a_process_with_little_memory_gets_a_plan() -> None:
    """The budget is 4 GiB by default; the process may have 2, and the ideals of a star are too many."""
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9)){PROGRAM}"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("feasible", "optimal"))
