"""Sailor's pipelines of GPT-Neo on GH200, from its measured profiles of layers (SOSP 2025, MIT).

Times are those of the profiles for Metis, which have whole tensors between layers; memory that of the profile
for Piper, which tells what a sample keeps from what counts once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import partitioner as pt
from partitioner.formats.llm.server import runtime_bytes
from published_bench.layouts import Predicted, copies, dealt, with_exchange
from published_bench.rows import Row

SERVERS = 25e9  # bytes a second of each GPU: 200 Gb/s Slingshot
MEMORY = Path("sailor", "piper", "GPT-Neo-2.7", "GH-96", "profile.json")
TIMES = Path("sailor", "metis", "GPT-Neo-2.7", "GH-96")


def predicted(row: Row, benchmarks: Path) -> Predicted:
    """Return the prediction for a run; a device of the workload stands for the GPUs of its degree."""
    layout = row.layout
    batch, degree = layout["microbatch"], layout["tensor"]
    times = _timeline(row, benchmarks / TIMES / f"mbs{batch}_tmp{degree}.json")
    memory = _timeline(row, benchmarks / MEMORY, batch=batch, degree=degree, time_unit="s")
    held = float(memory.peak_memory.max()) + runtime_bytes(degree)
    return Predicted(times.makespan / 1e3, held, 96e9)


def equal_layers(graph: pt.Graph, devices: pt.Devices, stages: int, data: int) -> dict[Any, str]:
    """Return the placement of equal numbers of a profile's layers; the first stages have one more."""
    base, more = divmod(len(set(graph.layer.tolist())), stages)
    return dealt(graph, devices, [i for i in range(stages) for _ in range(base + (i < more))], data)


def _timeline(row: Row, path: Path, **options: Any) -> pt.schedule.Timeline:
    layout = row.layout
    stages, data = layout["pipeline"], layout["data"]
    workload = pt.load(path, bandwidth=SERVERS, accelerators=stages * data, **options)
    devices = with_exchange(workload.devices, SERVERS)
    return pt.schedule.simulate(
        workload.graph,
        devices,
        equal_layers(workload.graph, devices, stages, data),
        "1f1b",
        layout["microbatches_per_pipeline"] * data,
        replicas=copies(devices, stages, data),
        links="host",
    )
