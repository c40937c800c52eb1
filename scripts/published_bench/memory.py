"""Memory of the first stage of Megatron-LM's pipelines (Korthikanti et al. 2022, Figures 1 and 7).

The figures count the blocks of the first stage alone, without embedding and head, and so do the predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitioner.workload.in_flight import stash
from published_bench.rows import MEGATRON, Row
from published_bench.training import load

SIZES: Mapping[str, tuple[dict[str, int], int, int, int]] = {  # config, sequences, stages, parts of a stage
    "22B": ({"n_embd": 6144, "n_layer": 48, "n_head": 64}, 4, 1, 1),
    "530B": ({"n_embd": 20480, "n_layer": 105, "n_head": 128}, 1, 35, 3),
}
WAYS: Mapping[str, dict[str, Any]] = {
    "none": {},
    "seqsel": {"recompute": "selective", "sequence_parallel": True},
    "full": {"recompute": "full"},
}
GIBI = 2**30


def predicted(row: Row) -> dict[str, float]:
    """Return GiB of states and of activations of the first stage's blocks."""
    size, way = row.name.split("-")[2:]
    shape, batch, stages, parts = SIZES[size]
    config = {"model_type": "gpt2", "vocab_size": 51200, "n_positions": 2048, "torch_dtype": "bfloat16"}
    graph = load(
        config | shape,
        sequence=2048,
        batch=batch,
        device="A100-80",
        bandwidth=25e9,
        tensor=8,
        attention="unfused",
        **MEGATRON,
        **WAYS[way],
    ).graph
    blocks = [i for i, name in enumerate(graph.names) if ".h." in str(name)]
    states, kept = graph.parts[:3, blocks].sum() / stages, graph.parts[3, blocks].sum() / stages / parts
    return {"parameters_and_optimizer": states / GIBI, "activations": kept * in_flight(stages, parts) / GIBI}


def in_flight(stages: int, parts: int) -> int:
    """Return how many samples the first stage keeps, counted in its parts."""
    if parts == 1:
        return stash("1f1b", 0, stages).activations
    return stash("interleaved", 0, stages, 8 * stages, chunks=parts).activations
