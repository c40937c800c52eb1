"""Bytes of a GPU under a layout, from the sizes of the model alone: no code of the package takes part.

States: 2 bytes a parameter and gradient, 12 of Adam with a copy in float32, divided by the replicas that hold
them (Rajbhandari et al. 2020), of which experts that devices divide have fewer. Activations: the inputs of
all operators of a block, in 2 bytes (Korthikanti et al. 2022, for norms without dropout and a gated network).
Samples in flight: Megatron's order of passes, walked through; of zero bubble and V schedules the passes of
torch's own classes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from tests.workload.virtual_stages.test_orders import torch_rows

TORCHS = ("zb_h1", "zbv")
TOP, EXPERTS = 2, 4  # of the random models with experts
WIDTH, GRADIENT, ADAM = 2.0, 2.0, 12.0
Sizes = tuple[float, float, float]  # states, activations of a microbatch, workspace of a layer


def layer_bytes(config: dict[str, Any], kind: str, layout: Any, sequence: int) -> Sizes:
    """Return the bytes of a layer: ``"embedding"``, ``"block"``, ``"norm"`` or ``"head"``."""
    h, words, inner = config["hidden_size"], config["vocab_size"], config["intermediate_size"]
    t, tokens = layout.tensor, layout.microbatch * sequence / layout.context
    routed, own, kept = 0.0, 0.0, 0.0
    if kind == "embedding":
        own = words * h / t
    elif kind == "norm":
        own, kept = h, tokens * h / t
    elif kind == "head":
        own, kept = words * h / t, tokens * (h + words) / t
    elif config["model_type"] == "llama":
        own = (4 * h * h + 3 * h * inner) / t + 2 * h
        kept = tokens * (8 * h + 4 * inner) / t
    else:
        own = 4 * h * h / t + 2 * h + h * EXPERTS
        routed = EXPERTS / layout.expert * 3 * h * inner / t
        kept = tokens * ((8 * h + TOP * 4 * inner) / t + 2 * TOP * h)
    input_bytes = WIDTH * tokens * h / t
    recomputed = kind == "block" and layout.recompute == "full"
    held = input_bytes if recomputed else WIDTH * kept
    work = WIDTH * kept - input_bytes if recomputed else 0.0
    if layout.zero == 3:
        work += (WIDTH + GRADIENT) * (own + routed)
    return _states(own, routed, layout), held, work


def _states(own: float, routed: float, layout: Any) -> float:
    replicas = layout.data * layout.context
    total = 0.0
    for each, zero in ((WIDTH, 3), (GRADIENT, 2), (ADAM, 1)):
        shares = replicas if layout.zero >= zero else 1
        total += each * (own / shares + routed / max(1, shares / layout.expert))
    return total


def memory(
    config: dict[str, Any], layout: Any, sequence: int, batch: int, borders: Sequence[int]
) -> float | None:
    """Return the bytes of the fullest GPU; None for a schedule of torch's where torch is not installed."""
    if layout.schedule in TORCHS and find_spec("torch") is None:
        return None
    kinds = ["embedding", *["block"] * config["num_hidden_layers"], "norm", "head"]
    layers = [layer_bytes(config, kind, layout, sequence) for kind in kinds]
    stages = [layers[a:b] for a, b in pairwise(borders)]
    p, v = layout.pipeline, layout.virtual_stages
    count = batch // (layout.data * layout.microbatch)
    worst = 0.0
    for rank in range(p):
        places = [rank, 2 * p - 1 - rank] if layout.schedule == "zbv" else [rank + i * p for i in range(v)]
        own = [stages[place] for place in places]
        states = sum(layer[0] for stage in own for layer in stage)
        work = max(layer[2] for stage in own for layer in stage)
        kept = [sum(layer[1] for layer in stage) for stage in own]
        if layout.schedule in TORCHS:
            most = torchs_peak(layout.schedule, rank, p, count, dict(zip(places, kept, strict=True)))
        else:
            most = peak(rank, p, count, kept)
        worst = max(worst, states + work + most)
    return worst


def torchs_peak(schedule: str, rank: int, p: int, count: int, kept: dict[int, float]) -> float:
    """Return the most bytes that a device holds, stage s of which keeps `kept[s]` a sample.

    A sample is kept from its forward pass until the gradients of the weights are computed.
    """
    held = most = 0.0
    for cell in rows_of(schedule, p, len(kept), count)[rank]:
        stage, kind, _ = re.split("([A-Z])", cell)
        change = {"F": kept[int(stage)], "I": 0.0}.get(kind, -kept[int(stage)])
        held += change
        most = max(most, held)
    assert abs(held) < 1e-6 * (1 + most), "every sample is freed"
    return most


@lru_cache(4096)
def rows_of(schedule: str, p: int, chunks: int, count: int) -> list[list[str]]:
    """Return torch's passes of every device."""
    return torch_rows(schedule, p, chunks, count)


def peak(rank: int, p: int, count: int, kept: Sequence[float]) -> float:
    """Return the most bytes of activations that a device holds, chunk c of which keeps `kept[c]` a sample."""
    v = len(kept)
    if v == 1:
        warm = min(count, p - rank - 1)
        forwards = backwards = [0] * count
    else:
        warm = min(count * v, (p - rank - 1) * 2 + (v - 1) * p)
        forwards = [k % (p * v) // p for k in range(count * v)]
        backwards = [v - 1 - chunk for chunk in forwards]
    held = most = sum(kept[chunk] for chunk in forwards[:warm])
    for i, chunk in enumerate(forwards[warm:]):
        held += kept[chunk]
        most = max(most, held)
        held -= kept[backwards[i]]
    return most
