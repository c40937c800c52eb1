"""Rows of ``published.json``, and what the sources say of each run that the rows do not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from partitioner.estimation import named_device

Facts = Mapping[str, Any]
MEGATRON: Facts = {"gradient_dtype": "float32"}  # Megatron-LM sums gradients in four bytes
RECIPES: Facts = {"device": "H100", "servers": 50e9, "zero": 1, "fused_gate": True, "fused_gradients": True}
# An H100 of 96 GB of HBM2e, 2.4 TB/s, at 500 W instead of 700: its speed is taken to be in proportion.
FULL = named_device("H100")
LIMITED = replace(
    FULL,
    name="H100-96",
    peak={dtype: speed * 500 / 700 for dtype, speed in FULL.peak.items()},
    bandwidth=2.4e12,
    memory=96e9,
    like="H100",
)
# By the beginning of a row's id: options of load_config, and `servers`, the bytes a second of a GPU's share
# of its server's network: 8 x 200 Gb/s (Selene), 4 x 100 Gb/s (Jean Zay), 8 x 400 Gb/s (Eos).
KNOWN: Mapping[str, Facts] = {
    "sc21-": {"device": "A100-80", "servers": 25e9, "attention": "unfused", **MEGATRON},
    "megascale-": {
        **{"device": "A100-80", "servers": 25e9, "attention": "unfused", "recompute": "selective"},
        **{"sequence_parallel": True, "fused_gradients": True, "zero": 1},
        **MEGATRON,
    },
    "bloom-": {
        **{
            "device": "A100-80",
            "servers": 6.25e9,
            "attention": "unfused",
            "zero": 1,
            "copied_gradients": True,
        },
        **MEGATRON,
    },
    "bridge-": {**RECIPES, "zero": 3},
    "nemo-": {**RECIPES, "sequence_parallel": True, "overlapped": True, "fused_casts": True},
    "titan-": {"device": LIMITED, "servers": 50e9, "zero": 3, "recompute": "alternate"},
}


@dataclass(frozen=True)
class Row:
    """A published measurement."""

    name: str
    kind: str
    model: Any
    layout: Mapping[str, Any]
    measured: Any
    hardware: str

    @property
    def known(self) -> dict[str, Any]:
        """What the source says of the run beyond the row."""
        found = [dict(facts) for prefix, facts in KNOWN.items() if self.name.startswith(prefix)]
        return found[0] if found else {}


# Jiang et al. 2024 (MegaScale, arXiv 2402.15627), Table 2: Megatron-LM, 1,024 GPUs, a batch of 768 sequences
GPT3 = {"model_type": "gpt2", "n_embd": 12288, "n_layer": 96, "n_head": 96, "n_positions": 2048}
MEGASCALE = Row(
    "megascale-175B",
    "training time",
    GPT3 | {"vocab_size": 64000, "torch_dtype": "bfloat16"},
    {"tensor": 8, "pipeline": 8, "data": 16, "virtual_stages": 6, "microbatch": 1}
    | {"microbatches_per_pipeline": 48, "sequence": 2048, "dtype": "bfloat16", "full_recompute": False},
    {"seconds_per_batch": 11.9},
    "1024 x A100-80",
)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file, and one of another paper."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    found = [
        Row(
            row["id"],
            row["kind"],
            row.get("model_config"),
            row.get("layout", {}),
            row["measured"],
            row.get("hardware", ""),
        )
        for row in rows
    ]
    return [*found, MEGASCALE]
