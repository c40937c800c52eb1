"""Times per batch, and memory, of training runs with a uniform layout, from config and layout alone."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import partitioner as pt
from published_bench.layouts import Predicted, copies, uniform, with_exchange
from published_bench.rows import Row

SERVER = 8  # GPUs


def load(config: Mapping[str, Any], **options: Any) -> pt.Workload:
    """Return the workload of a config."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        return pt.load_config(path, **options)


def predicted(row: Row) -> Predicted:
    """Return the prediction for a run; each device of the workload stands for `tensor` GPUs."""
    layout, known = row.layout, row.known
    servers, memory = known.pop("servers"), known.pop("memory", None)
    tensor, data, stages = layout["tensor"], layout["data"], layout["pipeline"]
    options = {"recompute": "full"} if layout["full_recompute"] else {}
    workload = load(
        row.model,
        sequence=layout["sequence"],
        batch=layout["microbatch"],
        bandwidth=servers,
        accelerators=stages * data,
        memory=memory,
        dtype=layout["dtype"],
        microbatches=layout["microbatches_per_pipeline"],
        **known | options | {"tensor": tensor, "data_parallel": data},
    )
    devices = with_exchange(workload.devices, servers * SERVER / tensor)
    chunks = layout["virtual_stages"]
    timeline = pt.schedule.simulate(
        workload.graph,
        devices,
        uniform(workload.graph, devices, stages, data, chunks),
        "interleaved" if chunks > 1 else layout["schedule"],
        layout["microbatches_per_pipeline"] * data,
        replicas=copies(devices, stages, data),
        links="direct",
    )
    limit = float(timeline.memory_limit.min())
    return Predicted(timeline.makespan / 1e3, float(timeline.peak_memory.max()), limit)
