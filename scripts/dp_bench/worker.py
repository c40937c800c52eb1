"""One workload in a process of its own, which solves it whenever it is asked to.

Called as ``worker.py METHOD [FILE]``. It solves a tiny graph and then the file once, untimed, and prints
a JSON object; then it reads lines, and for each it solves the file again and prints another one.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import partitioner as pt
from partitioner.problem.contract import contract


def main(method: str, file: str | None = None) -> None:
    """Serve the requests on standard input."""
    workload = pt.Workload(tiny(), pt.Devices.accelerated(3)) if file is None else pt.load(file)
    started = time.perf_counter()
    pt.solve(tiny(), pt.Devices.accelerated(3), method=method)
    record = _solved(workload, method)
    _say(
        record
        | {
            "first_seconds": time.perf_counter() - started,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "supernodes": contract(workload.graph, workload.devices).n,
        }
    )
    for _ in sys.stdin:
        _say(_solved(workload, method))


def tiny() -> pt.Graph:
    """Two branches of two nodes between a source and a sink: small, yet it needs every kernel."""
    edges = [(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5)]
    return pt.Graph.from_arrays({"accelerator": [1.0, 2.0, 2.0, 3.0, 1.0, 1.0]}, edges, cost=1.0)


def _solved(workload: pt.Workload, method: str) -> dict[str, Any]:
    started = time.perf_counter()
    plan = pt.solve(workload.graph, workload.devices, method=method)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "value": plan.value,
        "proven": plan.status == "optimal",
        "ideals": plan.statistics.get("ideals"),
        "steps": plan.statistics.get("steps"),
    }


def _say(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except pt.PartitionerError as error:
        _say({"error": str(error)})
