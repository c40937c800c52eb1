"""The small calls that together compile all kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from partitioner.methods.catalogue import PLACERS
from partitioner.planning.solve import solve
from partitioner.planning.splitting.dimension import Dimension
from partitioner.planning.splitting.operations import split_operations
from partitioner.schedule import simulate
from partitioner.workload.alternatives import Alternative, Alternatives
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.groups import DeviceGroup, GroupLink
from partitioner.workload.levels import Level
from partitioner.workload.transfers import Transfers

SmallCall = Callable[[], object]
Asked = tuple[str, dict[str, Any]]
ONE_STATE = 1000  # bytes of memory, in which no lattice fits
TOO_MANY_KINDS = 18  # for a table with all subsets of them
OPERATORS = "makespan"
LONG: tuple[Asked, ...] = (  # each compiles for seconds what no other does, the longest ones first
    (OPERATORS, {"method": "m-sct"}),
    ("latency", {"method": "latency_search"}),
    ("throughput", {"split": "convex", "method": "local_search"}),
    ("latency", {"method": "latency_dp"}),
    ("throughput", {"memory_budget": ONE_STATE, "method": "dp"}),
    ("batch", {"microbatches": 2}),
    (OPERATORS, {"method": "exact"}),
    ("throughput", {"method": "local_search_baseline", "split": "free"}),
    ("gpipe", {}),
    ("throughput", {}),
    (OPERATORS, {"schedule": "1f1b", "microbatches": 2}),
    ("throughput", {"split": "convex", "method": "ip"}),
    (OPERATORS, {"schedule": "interleaved_1f1b", "microbatches": 4}),
    ("latency", {"method": "latency_ip"}),
)
CHOOSING = ("piper", "two_bw")
SHORT: tuple[Asked, ...] = (
    *((OPERATORS, {"method": info.name}) for info in PLACERS),
    ("throughput", {"method": "pipedream"}),
    ("throughput", {"split": "free", "method": "ip"}),
    ("throughput", {"split": "free", "method": "local_search"}),
    ("throughput", {"method": "pipedream_path"}),
    ("throughput", {"method": "dpl"}),
    ("gpipe", {"method": "dpl"}),
    ("gpipe", {"split": "convex", "method": "local_search"}),
    ("batch", {"microbatches": 2, "replicas": 2, "schedule": "1f1b"}),
    ("throughput", {"schedule": "interleaved_1f1b", "microbatches": 4}),
    ("latency", {"method": "max_load"}),
    ("latency", {"method": "heft"}),
)


def small_calls() -> list[SmallCall]:
    """Return the calls; those that compile for the longest time come first."""
    graph, machine = training(), devices()
    return [
        partial(split_operations, graph, machine, {0: [Dimension("batch")]}),
        *(_solve(graph, machine, *asked) for asked in LONG[:2]),
        _solve(unrelated(), machine, OPERATORS, {"method": "portfolio"}),
        *(_solve(graph, machine, *asked) for asked in LONG[2:]),
        _solve(*with_alternatives(), "throughput", {"method": "alternatives"}),
        _solve(*different_devices(TOO_MANY_KINDS), "throughput", {}),
        _solve(graph, linked_servers(), "throughput", {"replicas": 2}),
        *(_solve(graph, machine, *asked) for asked in SHORT),
        *_others(),
    ]


def _solve(graph: Graph, machine: Devices, objective: str, options: dict[str, Any]) -> SmallCall:
    """Return a solve that counts its work in steps, so that it always comes to the same kernels."""
    return partial(solve, graph, machine, objective, deterministic=True, **options)


def _others() -> list[SmallCall]:
    """Return short calls for other devices, transfers and graphs."""
    graph, machine, levels = training(), devices(), servers()
    contention = {"transfers": Transfers(contention=True)}
    return [
        _solve(graph, levels, "throughput", {"replicas": 4}),
        _solve(graph, levels, "batch", {"replicas": 4, "microbatches": 2}),
        _solve(graph, levels, "throughput", {"method": "pipedream", "replicas": 4}),
        _solve(graph, levels, OPERATORS, {"method": "portfolio"}),
        _solve(graph, machine, OPERATORS, {"method": "portfolio", **contention}),
        _solve(unrelated(), machine, OPERATORS, {"method": "heft", "refine": True, **contention}),
        _solve(unrelated(), machine, OPERATORS, {"method": "exact", **contention}),
        partial(simulate, graph, machine, halves(graph), "1f1b", microbatches=2),
        _solve(inference(), machine, "throughput", {}),
        *(_solve(*with_alternatives(), "throughput", {"method": method}) for method in CHOOSING),
        _solve(*with_alternatives(), "batch", {"microbatches": 2}),
        _extend_nothing,
        _exchange_kinds,
        _bound_in_four_bytes,
    ]


def _extend_nothing() -> None:
    """Compile the kernels of the search over sets of devices that run only where prices find no pipeline."""
    from partitioner.methods.dp._sparse_core import COUNT, DevicePrices, extend
    from partitioner.methods.dp.sparse_tables import empty_pool, empty_stages, enter_root, packed

    stages, counts = empty_stages(2, 1, 1), packed(np.ones(2, np.int64), exact=False)
    pool, at, ones = empty_pool(2, 1, 1, 1), np.zeros(3, np.int64), np.ones((2, 1, 1))
    enter_root(pool, 1.0, 1)
    at[COUNT] = 1
    extend(stages, counts, DevicePrices(np.ones(1), 1.0, ones), pool, at, 1, 1)
    pool.grown().enter(1)


def _exchange_kinds() -> None:
    """Compile the kernel of the exchanges of kinds, which run only after many partial chains."""
    from partitioner.methods.dp.exchange import KindExchange
    from partitioner.methods.method import Part
    from partitioner.problem.contract import contract
    from partitioner.problem.variants import ChainProblem

    problem = contract(*different_devices(2))
    assert isinstance(problem, ChainProblem)
    KindExchange(problem, 0).attempt([Part(0, np.arange(problem.n))], 1.0)


def _bound_in_four_bytes() -> None:
    """Compile the kernels of bounds by paths for times of four bytes, which those of large graphs have."""
    from partitioner.methods.method import Settings
    from partitioner.methods.virtual_stages.bound_arcs import ArcLists
    from partitioner.methods.virtual_stages.bound_nets import JointNets, with_sure_transfers
    from partitioner.methods.virtual_stages.bound_walk import ChainWalk
    from partitioner.problem.arrays import rows_of

    one, two, bits = np.zeros(1, np.int64), np.zeros((2, 1), np.int64), np.zeros((2, 1), np.uint64)
    nets = JointNets(two, two, two, np.ones((1, 1)), one, one, one, bits[:1], bits, rows_of(one, one, 2))
    start, end, times = np.array([[0, 1]]), np.array([[1, 1]]), np.ones((3, 1), np.float32)
    lists = ArcLists(start, end, np.ones(1, np.int32), times, times)
    path = np.ones((1, 3))
    lists = with_sure_transfers(lists.up_to([path], 9.0), nets)
    ChainWalk(lists, nets, [path], 9.0, Settings()).following()


# Tiny workloads whose solves compile kernels.

HALF = 5  # nodes of each pass
MEMORY = 20.0


def training() -> Graph:
    """Return a path with a branch, and its backward pass."""
    n = 2 * HALF
    edges = [*((v, v + 1) for v in range(n - 1)), (0, 2), (n - 3, n - 1)]
    return Graph.from_arrays(
        {"accelerator": [1.0 + v * 7 % 5 for v in range(n)], "cpu": [9.0 + v % 3 for v in range(n)]},
        edges,
        [0.5 + i % 4 / 4 for i in range(len(edges))],
        size=1.0,
        activations=0.5,
        backward=[v >= HALF for v in range(n)],
        color=[min(v, n - 1 - v) for v in range(n)],
    )


def inference() -> Graph:
    """Return a graph of one pass with branchings."""
    n = 2 * HALF
    edges = [(v, v + step) for v in range(n) for step in (2, 3) if v + step < n]
    time = [1.0 + v * 7 % 5 for v in range(n)]
    return Graph.from_arrays({"accelerator": time, "cpu": time}, edges, 0.25, size=1.0)


def unrelated() -> Graph:
    """Return nodes without edges, of times that no two devices share evenly, so that searches go on."""
    time = [3.0, 3.1, 3.3, 3.7, 4.2]
    return Graph.from_arrays({"accelerator": time, "cpu": time}, [], [], size=1.0)


def devices() -> Devices:
    """Return two accelerators and a CPU."""
    kinds = (
        DeviceKind("accelerator", 2, memory=MEMORY, bandwidth=50.0),
        DeviceKind("cpu", 1, pays_communication=False),
    )
    return Devices(kinds)


def servers() -> Devices:
    """Return two servers of two accelerators each."""
    kind = DeviceKind("accelerator", 4, memory=MEMORY, bandwidth=50.0)
    return Devices((kind,), levels=(Level("server", {"accelerator": 2}, slowdown=5.0),))


def linked_servers() -> Devices:
    """Return two servers of one and of two accelerators, with a link between them."""
    kind = DeviceKind("accelerator", 3, memory=MEMORY, bandwidth=50.0)
    groups = DeviceGroup("one", {"accelerator": 1}), DeviceGroup("two", {"accelerator": 2})
    return Devices((kind,), groups=groups, links=(GroupLink(5.0),))


def different_devices(count: int) -> tuple[Graph, Devices]:
    """Return a graph and devices of which each has its own times."""
    names = [f"accelerator-{i}" for i in range(count)]
    n = 2 * HALF
    time: Mapping[str, list[float]] = {
        name: [1.0 + (v * (i + 2)) % 7 for v in range(n)] for i, name in enumerate(names)
    }
    graph = Graph.from_arrays(time, [(v, v + 2) for v in range(n - 2)])
    return graph, Devices(tuple(DeviceKind(name, 1) for name in names))


def with_alternatives() -> tuple[Graph, Devices]:
    """Return a path of equal devices whose nodes may take less memory and more time."""
    n, edges = HALF, [(v, v + 1) for v in range(HALF - 1)]
    graph = Graph.from_arrays({"accelerator": [2.0 + v % 3 for v in range(n)]}, edges, 0.25, size=2.0)
    ways = {v: [Alternative("small", {"accelerator": 3.1 + v % 2}, size=1.0 + v / 7)] for v in range(n)}
    devices = Devices((DeviceKind("accelerator", 2, memory=4.0),))
    return replace(graph, alternatives=Alternatives(ways)), devices


def halves(graph: Graph) -> dict[int | str, str]:
    """Return a placement of the two halves of each pass on two accelerators."""
    n = len(graph)
    return {graph.ids[v]: f"accelerator{int(n // 4 <= v < n - n // 4)}" for v in range(n)}
