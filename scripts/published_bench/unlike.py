"""Sailor's runs of OPT-350 whose stages have copies on unlike GPUs, from its measured profiles of layers.

The runs are those of eth-easl/sailor, sailor/Planner/simulations/validation (mit and mit_v2; SOSP 2025, MIT):
layers of each stage, GPUs of each copy of it, microbatches of two sequences, seconds of a batch. A copy is a
group of GPUs that divide its layers; all copies run equal shares of the batch. The network is a gigabit a
second for each server (its measured 117.5 MB/s), which the GPUs of a group share. In `mit/N4_D4`
the measured exchange of 1.5 s contradicts that rate: it needs 14 times as much (perhaps the groups of four
GPUs are two in each server); it is a group of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from partitioner.estimation.named_devices import NamedDevice
from partitioner.formats.hugging_face import decoder_of
from partitioner.planning.layouts.costs import LayerCosts, ModelCosts
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.pools.pool import PooledKind, PoolPart
from partitioner.planning.pools.training import PoolCosts, PoolLayout, PoolRun, pipeline_of

TIMES = Path("sailor", "metis", "OPT-350")
SERVERS, MICROBATCH = 117.5e6, 2
OPT = {"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24}
OPT |= {"num_attention_heads": 16, "vocab_size": 50272, "max_position_embeddings": 2048}


class UnlikeRun(NamedTuple):
    """A run: the GPUs of every copy's stages, where stages begin, and what was measured.

    `plain` says whether the measured exchange is that of the measured network.
    """

    name: str
    copies: tuple[tuple[str, ...], ...]
    borders: tuple[int, ...]
    tensor: int
    global_batch: int
    seconds: float
    plain: bool = True


A, B, C = "RTX-3090", "RTX-2080", "Titan-RTX"
RUNS = (
    UnlikeRun("mit_v2/N4_D2", ((A, C), (B, B)), (0, 12, 26), 8, 256, 66.06712),
    UnlikeRun("mit_v2/N4_D4", ((A,), (B,), (C,), (B,)), (0, 26), 8, 256, 83.45238),
    UnlikeRun("mit/N6_D2", ((A, B, B), (B, C, C)), (0, 8, 17, 26), 8, 288, 59.45533),
    UnlikeRun("mit/N6_D3", ((A, C), (B, B), (B, C)), (0, 12, 26), 8, 288, 54.2392),
    UnlikeRun("mit/N2_D2", ((C,), (A,)), (0, 26), 2, 256, 91.78),
    UnlikeRun("mit/N4_D4", ((C,), (C,), (B,), (B,)), (0, 26), 4, 256, 30.9223, False),
    UnlikeRun("mit/N6_D6", ((A,), (B,), (B,), (C,), (B,), (C,)), (0, 26), 8, 288, 70.78508),
)


@dataclass(frozen=True, eq=False)
class ProfiledCosts(ModelCosts):
    """The costs of the layers on a GPU of a group, from a profile in Metis's format."""

    path: Path = Path()
    layer_names: tuple[str, ...] = tuple(map(str, range(26)))

    def layers(self, layout: ClusterLayout) -> LayerCosts:
        """Return the costs of the profile; a backward pass takes two thirds of a layer's time."""
        content = json.loads(self.path.read_text(encoding="utf-8"))
        times = np.array(content["execution_time"]["layer_compute_total_ms"])
        model = content["model"]["parameters"]
        held = np.array(model["parameters_per_layer_bytes"], dtype=np.float64)
        sent = np.array(model["activation_parameters_bytes"], dtype=np.float64) / layout.tensor
        nothing = np.zeros(len(times))
        costs = (times / 3, 2 * times / 3, held, held, 2 * held, nothing, nothing, sent)
        return LayerCosts(*costs, routed=nothing, updated=2 * held, collectives=nothing)


def predicted(run: UnlikeRun, benchmarks: Path) -> float:
    """Return the predicted seconds of a batch."""
    costs = PoolCosts(decoder_of(OPT, "config"), 2048, "float32", SERVERS / run.tensor, 0.0)
    kinds = {name: _kind(name, run.tensor) for name in {name for copy in run.copies for name in copy}}
    for name, kind in kinds.items():
        cluster = Cluster(8, kind.device, 8, 1e10, SERVERS / run.tensor, 0.0, kind.memory)
        path = benchmarks / TIMES / name / f"mbs{MICROBATCH}_tmp{run.tensor}.json"
        costs._known[name] = ProfiledCosts(costs.decoder, cluster, 2048, "float32", path=path)
    parts = []
    for copy in run.copies:
        own = tuple(dict.fromkeys(copy))
        groups = tuple(copy.count(name) for name in own)
        parts.append(PoolPart(tuple(kinds[name] for name in own), (run.tensor,) * len(own), groups, 1))
    layout = PoolLayout(tuple(parts), MICROBATCH)
    share = run.global_batch // (MICROBATCH * len(parts))
    runs = []
    for part, copy in zip(parts, run.copies, strict=True):
        names = [kind.name for kind in part.kinds]
        order = tuple(names.index(name) for name in copy)
        runs.append(pipeline_of(costs, layout, part, order, run.borders, share))
    return PoolRun(costs, layout, tuple(runs)).seconds


def lines(benchmarks: Path) -> Iterator[tuple[str, str, float, float]]:
    """Yield group, name, measured and predicted seconds of every run."""
    for run in RUNS:
        group = "Sailor, unlike GPUs: time" if run.plain else "Sailor, unlike GPUs, another network: time"
        yield group, f"sailor-OPT-350/{run.name}", run.seconds, predicted(run, benchmarks)


def _kind(name: str, tensor: int) -> PooledKind:
    device = NamedDevice(name, {"float32": 1.0}, 6e11, 24e9, "the optimizer of a card of its class")
    return PooledKind(name, device, 8, 24e9, 8)
