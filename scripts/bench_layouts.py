"""Where the layouts of published training runs stand among all of Megatron-LM.

For each run: how many layouts there are, how long ranking them takes, the first one and its time, and how
much longer the published one takes by the same simulation, compared with the first of all and with the first
of those that compute again and divide states as it does. The table is printed as Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import partitioner as pt
from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption
from partitioner.estimation.named_devices import named_device
from partitioner.formats.hugging_face import decoder_of
from partitioner.planning.layouts.costs import ModelCosts
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.layouts.runtimes import RUNTIMES
from partitioner.planning.layouts.search import ClusterLayoutSearch
from partitioner.planning.layouts.space import LayoutSpace

NODE, LATENCY = 8, 5e-6
NETWORK = {"A100-80": 25e9, "H100": 50e9}  # bytes a second and GPU, of the published clusters
HEAD = "| run | GPUs | layouts | s | first | s a batch | published | more | more than its like |"


@dataclass(frozen=True)
class PublishedRun:
    """A published run: its model, cluster and batch, and its layout."""

    name: str
    config: dict[str, Any]
    gpus: int
    device: str
    global_batch: int
    sequence: int
    layout: ClusterLayout


def gpt(hidden: int, layers: int, heads: int, vocabulary: int = 51200) -> dict[str, Any]:
    """Return the config of a GPT with learned positions for 2,048 tokens."""
    sizes = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": vocabulary}
    return {"model_type": "gpt2", "n_positions": 2048, "n_ctx": 2048} | sizes


def run_of_sc21(
    name: str, config: dict[str, Any], gpus: int, batch: int, layout: ClusterLayout
) -> PublishedRun:
    """Return a row of Table 1 of Narayanan et al., SC 2021."""
    return PublishedRun(f"SC'21 {name}", config, gpus, "A100-80", batch, 2048, layout)


FULL = "full"
RUNS = (
    PublishedRun(
        "MegaScale 175B", gpt(12288, 96, 96), 1024, "A100-80", 1536, 2048,
        ClusterLayout(8, 8, 16, 1, 6, schedule="interleaved_1f1b", zero=1),
    ),
    run_of_sc21("145.6B", gpt(12288, 80, 96), 1536, 2304, ClusterLayout(8, 8, 24, 2, recompute=FULL)),
    run_of_sc21("76.1B", gpt(10240, 60, 80), 1024, 1792, ClusterLayout(8, 4, 32, 2, recompute=FULL)),
    run_of_sc21("39.1B", gpt(8192, 48, 64), 512, 1536, ClusterLayout(8, 2, 32, 4, recompute=FULL)),
    PublishedRun(
        "BLOOM-176B", gpt(14336, 70, 112, 250880), 384, "A100-80", 2048, 2048,
        ClusterLayout(4, 12, 8, 2, zero=1, recompute=FULL),
    ),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="bench_layouts", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="only runs whose name has this word")
    options = parser.parse_args(arguments)
    print(HEAD + "\n| :-- | --: | --: | --: | :-- | --: | :-- | --: | --: |")
    for run in RUNS:
        if options.only in run.name:
            print(row(run), flush=True)
    return 0


def row(run: PublishedRun) -> str:
    """Rank all layouts of a run; returns its line of the table."""
    started = time.perf_counter()
    space, search = asked(run)
    first = search.search(space)[0]
    seconds = time.perf_counter() - started
    published = search.run_of(run.layout)
    like = [each for each in space if (each.recompute, each.zero) == (run.layout.recompute, run.layout.zero)]
    _, other = asked(run)
    best = other.search(like)[0]
    cells = (
        run.name,
        f"{run.gpus:,}",
        f"{search.tried:,}",
        f"{seconds:.1f}",
        first.layout.name,
        f"{first.seconds:.2f}",
        published.layout.name,
        f"{published.seconds / first.seconds - 1:.1%}",
        f"{published.seconds / best.seconds - 1:.1%}",
    )
    return f"| {' | '.join(cells)} |"


def asked(run: PublishedRun) -> tuple[LayoutSpace, ClusterLayoutSearch]:
    """Return the layouts that Megatron-LM can run, and a search for the best five."""
    device = named_device(run.device)
    peer, network = device.peer or NETWORK[run.device], NETWORK[run.device]
    cluster = Cluster(run.gpus, device, NODE, peer, network, LATENCY, device.memory)
    decoder = decoder_of(run.config, run.name)
    costs = ModelCosts(decoder, cluster, run.sequence, "bfloat16")
    space = LayoutSpace(decoder, cluster, run.global_batch, RUNTIMES["megatron"])
    return space, ClusterLayoutSearch(costs, run.global_batch, 5, Clock(), Interruption())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except pt.PartitionerError as error:
        sys.exit(f"bench_layouts: {error}")
