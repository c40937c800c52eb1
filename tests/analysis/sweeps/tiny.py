"""Tiny workloads, and graphs that end the process or fail when a worker reads them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partitioner import DevicePool, Devices, Graph, Workload
from partitioner.analysis.sweeps.task import SweepTask

POOLS = (DevicePool(accelerators=1), DevicePool(accelerators=2), DevicePool(accelerators=3))
METHODS = {"method": "single_device"}  # needs no kernel


def chain(nodes: int = 3) -> Graph:
    """A path of nodes that take 1, 2, 3 and so on."""
    edges = [(v, v + 1) for v in range(nodes - 1)]
    return Graph.from_arrays({"accelerator": [v + 1.0 for v in range(nodes)]}, edges, cost=0.5, size=1.0)


def workload(nodes: int = 3) -> Workload:
    return Workload(chain(nodes), Devices.accelerated(1), f"chain{nodes}")


def task(nodes: int = 3, graph: object = None) -> SweepTask:
    """A task whose options need no kernel; `graph` is what a worker reads in place of the path."""
    own = chain(nodes)
    content = pickle.dumps(own if graph is None else graph)
    options = {"objective": "throughput", **METHODS}
    return SweepTask(f"chain{nodes}", "one", content, own.digest, Devices.accelerated(1), options)


class Read:
    """An object whose reading is a call."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call, self.arguments


def killed() -> Any:
    """End the process as the system does when memory runs out."""
    os.kill(os.getpid(), 9)


def killed_once(mark: Path) -> Graph:
    """End the process, but not the second time."""
    if not mark.exists():
        mark.touch()
        killed()
    return chain()


def too_large() -> Any:
    raise MemoryError


def broken() -> Any:
    raise RuntimeError("a defect")
