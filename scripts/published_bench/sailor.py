"""Sailor's pipelines of GPT-Neo on GH200, from its measured profiles of layers (SOSP 2025, MIT).

Times are those of the profiles for Metis, which have whole tensors between layers; memory that of the profile
for Piper, which tells what a sample keeps from what counts once: five times the parameters, which is weights,
gradients, Adam's two numbers, and the one buffer in which gradients are added up. The last layer of both is a
norm, of 20,480 bytes of parameters: the product with the tied embedding, and the loss of its logits, are in
neither profile.

The memory measured is that of a GPU as nvidia-smi has it, whole MiB: what tensors take, what CUDA keeps, and
the buffers of each communicator of NCCL. The engine has one for each group of ranks in :func:`groups`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import partitioner as pt
from partitioner.formats.llm.server import runtime_bytes
from published_bench.layouts import Predicted, copies, dealt, with_exchange
from published_bench.rows import Row

SERVERS = 25e9  # bytes a second of each GPU: 200 Gb/s Slingshot
MEMORY = Path("sailor", "piper", "GPT-Neo-2.7", "GH-96", "profile.json")
TIMES = Path("sailor", "metis", "GPT-Neo-2.7", "GH-96")
HIDDEN, VOCABULARY, SEQUENCE = 2560, 50257, 2048  # of GPT-Neo 2.7B
WIDTH = 4  # bytes of a number: a block's 78.67 million parameters are 314.7 MB


def predicted(row: Row, benchmarks: Path) -> Predicted:
    """Return the prediction for a run; a device of the workload stands for the GPUs of its degree."""
    layout = row.layout
    batch, degree, stages = layout["microbatch"], layout["tensor"], layout["pipeline"]
    path = benchmarks / TIMES / f"mbs{batch}_tmp{degree}.json"
    times = _timeline(row, path)
    memory = _timeline(row, benchmarks / MEMORY, batch=batch, degree=degree, time_unit="s")
    held = float(memory.peak_memory.max()) + kept(degree, stages, layout["data"])
    updates = json.loads(path.read_text(encoding="utf-8"))["execution_time"]["optimizer_time_ms"] / stages
    return Predicted((times.makespan + updates) / 1e3, held, 96e9)


def groups(tensor: int, stages: int, data: int) -> list[int]:
    """Return the sizes of the groups of ranks in which a rank of the first stage communicates.

    They serve the layers' all-reduces, parts of a transferred tensor, gradients, their norm, the next stage,
    the loss, tied weights, and barriers of all ranks.
    """
    pair = min(2, stages)
    return [tensor, tensor, data, tensor * stages, pair, stages, pair, tensor * stages * data]


def kept(tensor: int, stages: int, data: int) -> float:
    """Return the bytes that CUDA and all communicators keep on a GPU of the first stage."""
    alone = runtime_bytes(1)
    return alone + sum(runtime_bytes(size) - alone for size in groups(tensor, stages, data))


def equal_blocks(graph: pt.Graph, devices: pt.Devices, stages: int, data: int) -> dict[Any, str]:
    """Return the placement of equal numbers of blocks; embedding and head are in the first and last stage."""
    blocks = len(set(graph.layer.tolist())) - 2
    inner = [i * stages // blocks for i in range(blocks)]
    return dealt(graph, devices, [0, *inner, stages - 1], data)


def with_head(graph: pt.Graph) -> pt.Graph:
    """Return the graph whose last layer also computes logits, at the speed of the profile's blocks.

    A token takes 2 h V operations in the head, and 24 h^2 + 4 s h in a block (hidden size h, vocabulary V,
    sequences of s tokens, whose whole square is computed).
    """
    ratio = 2 * VOCABULARY / (24 * HIDDEN + 4 * SEQUENCE)
    layers = list(dict.fromkeys(graph.layer.tolist()))
    time = graph.time.copy()
    for backward in (False, True):
        block = (graph.layer == layers[1]) & (graph.backward == backward)
        head = (graph.layer == layers[-1]) & (graph.backward == backward)
        time[:, head] += ratio * time[:, block]
    return replace(graph, time=time)


def _timeline(row: Row, path: Path, **options: Any) -> pt.schedule.Timeline:
    layout = row.layout
    stages, data = layout["pipeline"], layout["data"]
    workload = pt.load(path, bandwidth=SERVERS, accelerators=stages * data, **options)
    graph, devices = with_head(workload.graph), with_exchange(workload.devices, SERVERS)
    return pt.schedule.simulate(
        graph,
        devices,
        equal_blocks(graph, devices, stages, data),
        "1f1b",
        layout["microbatches_per_pipeline"] * data,
        replicas=copies(devices, stages, data),
        links="direct",
    )
