"""Solves that are repeated, of every objective; deterministic methods always have the same answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import psutil

import partitioner as pt


class Job(NamedTuple):
    """A call of `solve` on the graph of :func:`workload`."""

    objective: str
    options: Mapping[str, Any]
    deterministic: bool = True


JOBS = (
    Job("throughput", {}),
    Job("throughput", {"method": "dpl"}),
    Job("throughput", {"replicas": 2, "schedule": "1f1b", "microbatches": 4}),
    Job("batch", {"microbatches": 4}),
    Job("makespan", {"schedule": "1f1b", "microbatches": 4}),
    Job("makespan", {"method": "heft"}),
    Job("makespan", {"method": "m-sct"}),
    Job("latency", {"method": "latency_dp"}),
    Job("throughput", {"split": "free", "workers": 2, "time_limit": 2.0}, False),
    Job("gpipe", {"split": "convex", "workers": 1, "time_limit": 2.0}, False),
    Job("latency", {"method": "latency_ip", "time_limit": 1.0}, False),
    Job("makespan", {"method": "portfolio", "time_limit": 0.5}, False),
)


def workload() -> tuple[pt.Graph, pt.Devices]:
    """A path of eight nodes with a branch, its backward nodes, two accelerators and a CPU."""
    n = 8
    edges = [(i, i + 1) for i in range(2 * n - 1)] + [(1, 3), (4, 7)]
    graph = pt.Graph.from_arrays(
        {"accelerator": [1.0 + i * 7 % 5 for i in range(2 * n)], "cpu": [9.0 + i % 3 for i in range(2 * n)]},
        edges,
        [0.5 + i % 4 / 4 for i in range(len(edges))],
        size=1.0,
        activations=0.5,
        backward=[i >= n for i in range(2 * n)],
        color=[min(i, 2 * n - 1 - i) for i in range(2 * n)],
    )
    accelerator = pt.DeviceKind("accelerator", 2, memory=40.0, bandwidth=50.0)
    return graph, pt.Devices((accelerator, pt.DeviceKind("cpu", 1, pays_communication=False)))


def run(number: int) -> tuple[float, float, dict[Any, str]] | None:
    """Value, bound and placement of a job; None where a clock may decide."""
    job = JOBS[number % len(JOBS)]
    graph, devices = workload()
    plan = pt.solve(graph, devices, job.objective, **job.options)
    return (plan.value, plan.bound, dict(plan.placement)) if job.deterministic else None


def held() -> dict[str, int]:
    """What this process holds: open descriptors, children, threads."""
    here = psutil.Process()
    children = here.children(recursive=True)
    ended = sum(child.status() == psutil.STATUS_ZOMBIE for child in children)
    return {
        "descriptors": here.num_fds(),
        "children": len(children) - ended,
        "zombies": ended,
        "threads": threading.active_count(),
        "native threads": here.num_threads(),
    }
