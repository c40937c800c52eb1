"""The small calls that together compile all kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from partitioner.methods.catalogue import PLACERS
from partitioner.planning.solve import solve
from partitioner.planning.splitting.dimension import Dimension
from partitioner.planning.splitting.operations import split_operations
from partitioner.planning.warm_up.workloads import devices, different_devices, inference, servers, training
from partitioner.schedule import simulate
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.transfers import Transfers

SmallCall = Callable[[], object]
ONE_STATE = 1000  # bytes of memory, in which no lattice fits
TOO_MANY_KINDS = 18  # for a table with all subsets of them
CONTENTION = Transfers(contention=True)
OPERATORS = "makespan"
Asked = tuple[str, dict[str, Any]]
GROUPS: tuple[Asked, ...] = (  # each compiles much that no other does, the longest ones first
    ("latency", {"method": "latency_search"}),
    (OPERATORS, {"method": "m-sct"}),
    (OPERATORS, {"method": "portfolio"}),
    ("latency", {"method": "latency_dp"}),
    (OPERATORS, {"method": "exact"}),
    (OPERATORS, {"method": "dpos"}),
    ("batch", {"microbatches": 2}),
    ("throughput", {"split": "convex", "method": "local_search"}),
    ("gpipe", {}),
    ("throughput", {}),
    ("throughput", {"memory_budget": ONE_STATE, "method": "dp"}),
    ("throughput", {"method": "pipedream"}),
)
OTHERS: tuple[Asked, ...] = (
    (OPERATORS, {"schedule": "1f1b", "microbatches": 2}),
    ("throughput", {"split": "convex", "method": "ip"}),
    ("throughput", {"split": "free", "method": "ip"}),
    ("throughput", {"split": "free", "method": "local_search"}),
    ("throughput", {"method": "local_search_baseline", "split": "free"}),
    ("throughput", {"method": "pipedream_path"}),
    ("throughput", {"method": "dpl"}),
    ("gpipe", {"method": "dpl"}),
    ("gpipe", {"memory_budget": ONE_STATE, "method": "dp"}),
    ("gpipe", {"split": "convex", "method": "ip"}),
    ("gpipe", {"split": "convex", "method": "local_search"}),
    ("batch", {"microbatches": 2, "replicas": 2, "schedule": "1f1b"}),
    ("batch", {"microbatches": 2, "memory_budget": ONE_STATE}),
    ("latency", {"method": "latency_ip"}),
    ("latency", {"method": "max_load"}),
    ("latency", {"subgraphs_per_accelerator": 2}),
    ("latency", {"method": "heft"}),
    *((OPERATORS, {"method": info.name}) for info in PLACERS),
)


def small_calls() -> list[SmallCall]:
    """Return the calls; those that compile for the longest time come first."""
    graph, machine = training(), devices()
    first = [_solve(graph, machine, *each) for each in GROUPS]
    others = [_solve(graph, machine, *each) for each in OTHERS]
    return [*first, _solve(*different_devices(TOO_MANY_KINDS), "throughput", {}), *others, *_special()]


def _solve(graph: Graph, machine: Devices, objective: str, options: dict[str, Any]) -> SmallCall:
    """Return a solve that counts its work in steps, so that it always comes to the same kernels."""
    return partial(solve, graph, machine, objective, deterministic=True, **options)


def _special() -> list[SmallCall]:
    """Return the calls for other devices, transfers and graphs."""
    graph, machine = training(), devices()
    levels = servers()
    return [
        _solve(graph, levels, "throughput", {"replicas": 4}),
        _solve(graph, levels, "batch", {"replicas": 4, "microbatches": 2}),
        _solve(graph, levels, "throughput", {"method": "pipedream", "replicas": 4}),
        _solve(graph, levels, OPERATORS, {"method": "portfolio"}),
        _solve(graph, machine, OPERATORS, {"method": "portfolio", "transfers": CONTENTION}),
        _solve(graph, machine, OPERATORS, {"method": "exact", "transfers": CONTENTION}),
        partial(simulate, graph, machine, _halves(graph), "1f1b", microbatches=2),
        partial(split_operations, graph, machine, {0: [Dimension("batch")]}),
        _solve(inference(), machine, "throughput", {}),
        _solve(inference(), machine, "latency", {}),
    ]


def _halves(graph: Graph) -> dict[int | str, str]:
    """Return a placement of the two halves of each pass on two accelerators."""
    n = len(graph)
    return {graph.ids[v]: f"accelerator{int(n // 4 <= v < n - n // 4)}" for v in range(n)}
