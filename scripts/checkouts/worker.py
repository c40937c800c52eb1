"""Solve workloads with the package that ``PYTHONPATH`` names.

Each line of the input is a request, each line of the output the answer to it, both as JSON.
Only names that every checkout has are used here: the public ones, and the registry of methods.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import partitioner as pt
from partitioner.methods.registry import METHODS

Answer = dict[str, Any]
PROFILE = ".txt"
BANDWIDTH = 12e6  # bytes in a millisecond, where the workload does not say
SAMPLES = 8
GAP = 0.05  # of methods that call solvers, whose last per cent can take hours
STEPS = 20_000_000  # of the exact search


class Patience:
    """Asks a run to end once it takes too long, counted from the last report that a kernel compiles."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = time.perf_counter()
        self.over = False

    def hear(self, progress: pt.Progress) -> None:
        """Start again where a kernel is about to be compiled."""
        if progress.phase == "compiling":
            self._since = time.perf_counter()

    def is_set(self) -> bool:
        """Whether the run should end."""
        self.over = time.perf_counter() - self._since > self._seconds
        return self.over


def about() -> Answer:
    """Return where the package is, and every method with what it can be asked for."""
    able = [
        [name, objective, split, list(info.features)]
        for name, info in METHODS.items()
        for objective in info.objectives
        for split in info.splits_for(objective)
    ]
    return {"package": str(Path(pt.__file__).resolve().parent), "methods": able}


def solve(job: Answer) -> Answer:
    """Return what became of a job, with the seconds of the solve alone."""
    graph, devices = workload_of(job["file"])
    patience = Patience(job["patience"])
    options = options_of(job, bool(graph.backward.any()))
    if "replicas" in options:
        devices = with_bandwidth(devices)
    started = time.perf_counter()
    try:
        plan = pt.solve(
            graph, devices, job["objective"], stop=patience, on_progress=patience.hear, workers=1, **options
        )
    except pt.PartitionerError as error:
        found: Answer = {"failure": type(error).__name__, "message": str(error)}
    else:
        found = {"plan": record_of(plan)}
    return found | {"seconds": time.perf_counter() - started, "stopped": patience.over}


def options_of(job: Answer, trains: bool) -> Answer:
    """Return the options of a job: the same call gives the same plan, whatever the clock says."""
    method, setting = job["method"], job["setting"]
    options = {"method": method, "split": job["split"], "seed": job["seed"]}
    options |= {"deterministic": True, "step_limit": STEPS}
    if set(METHODS[method].backends) & {"highs", "scip"}:
        options["gap"] = GAP
    if job["objective"] == "batch":
        options["microbatches"] = SAMPLES
    if method == "simulated" or setting == "schedule":
        options |= {"schedule": "1f1b" if trains else "inference", "microbatches": SAMPLES}
    return options | ({"replicas": 2} if setting == "replicas" else {})


@functools.lru_cache(maxsize=1)
def workload_of(file: str) -> tuple[pt.Graph, pt.Devices]:
    """Read a workload; a profile is put on four accelerators."""
    if Path(file).suffix == PROFILE:
        workload = pt.load_pipedream(file, bandwidth=1000 * BANDWIDTH, accelerators=4)
    else:
        workload = pt.load(file)
    return workload.graph, workload.devices


def with_bandwidth(devices: pt.Devices) -> pt.Devices:
    """Return the devices with a bandwidth on which replicas exchange their weights."""
    kinds = (replace(kind, bandwidth=kind.bandwidth or BANDWIDTH) for kind in devices.kinds)
    return replace(devices, kinds=tuple(kinds))


def record_of(plan: pt.Plan) -> Answer:
    """Return all of a plan that must not depend on the checkout; the texts of its notes may."""
    names = ("value", "bound", "gap", "status", "stop_reason", "devices", "placement", "execution_order")
    record = json.loads(plan.to_json())
    return {name: record.get(name) for name in names}


def main() -> None:
    """Answer until the input ends; what solvers print goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            request = json.loads(line)
            print(json.dumps(about() if request == "about" else solve(request)), file=answers, flush=True)


if __name__ == "__main__":
    main()
