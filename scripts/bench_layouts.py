"""Where the layouts of published training runs stand among all of Megatron-LM.

For each run: how many layouts there are, how long ranking them takes, the first one and its time, and the
place of the published one by the same simulation with how much longer it takes than the first: among all
layouts, and in its class, the layouts that compute again and divide states as it does, with the kernels of
its time. The table is printed as Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import partitioner as pt
from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption
from partitioner.estimation.named_devices import named_device
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.question import LayoutQuestion, cluster_of, decoder_to_train
from partitioner.planning.layouts.timing import LayoutRun

NODE, LATENCY, LOOKED = 8, 5e-6, 50
NETWORK = {"A100-80": 25e9, "H100": 50e9, "H800": 50e9}  # bytes a second and GPU, of the published clusters
HEAD = (
    "| run | GPUs | layouts | s | first | s a batch | published | place | more "
    "| place in class | more in class |"
)
OLD: LayoutOptions = {"attention": "unfused", "sequence_parallel": False}  # before FlashAttention


@dataclass(frozen=True)
class PublishedRun:
    """A published run: its model, cluster and batch, and its layout.

    `options` are what its kernels do. The class of the layout computes again and divides states as it does,
    if it is `old` with the kernels of its time.
    """

    name: str
    config: dict[str, Any]
    gpus: int
    device: str
    global_batch: int
    sequence: int
    layout: ClusterLayout
    dtype: str = "bfloat16"
    options: LayoutOptions = field(default_factory=LayoutOptions)
    runtime: str = "megatron"
    old: bool = False


def gpt(hidden: int, layers: int, heads: int, vocabulary: int = 51200) -> dict[str, Any]:
    """Return the config of a GPT with learned positions for 2,048 tokens."""
    sizes = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": vocabulary}
    return {"model_type": "gpt2", "n_positions": 2048, "n_ctx": 2048} | sizes


def llama(*sizes: int, **more: Any) -> dict[str, Any]:
    """Return the config of a model with gated networks, of hidden, inner, layers, heads, kv heads, words."""
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    fields = dict(zip((*names, "num_key_value_heads", "vocab_size"), sizes, strict=True))
    return {"model_type": "llama", "tie_word_embeddings": False} | fields | more


def run_of_sc21(
    name: str, config: dict[str, Any], gpus: int, batch: int, layout: ClusterLayout
) -> PublishedRun:
    """Return a row of Table 1 of Narayanan et al., SC 2021, with the stages of its scripts."""
    return PublishedRun(f"SC'21 {name}", config, gpus, "A100-80", batch, 2048, layout, old=True)


FULL, VIRTUAL = "full", "interleaved_1f1b"
MIXTRAL = {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
DEEPSEEK = {
    "model_type": "deepseek_v3", "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "num_experts_per_tok": 8,
    "n_shared_experts": 1, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "moe_layer_freq": 1,
    "topk_method": "noaux_tc", "n_group": 8, "topk_group": 4,
}  # fmt: skip
NEMOTRON = llama(18432, 73728, 96, 96, 8, 256000, model_type="nemotron", max_position_embeddings=4096)
RUNS = (
    # Jiang et al., MegaScale, NSDI 2024, Section 3.2: collectives of tensor parallelism run beside products
    PublishedRun(
        "MegaScale 175B", gpt(12288, 96, 96), 1024, "A100-80", 1536, 2048,
        ClusterLayout(8, 8, 16, 1, 6, schedule=VIRTUAL, zero=1), options={"overlapped": True},
    ),
    # performance summary of NeMo 25.02, in FP8
    PublishedRun(
        "NeMo 175B", gpt(12288, 96, 96), 512, "H100", 2048, 2048,
        ClusterLayout(4, 8, 16, 2, 6, schedule=VIRTUAL, zero=1), "float8",
    ),
    run_of_sc21(
        "145.6B", gpt(12288, 80, 96), 1536, 2304,
        ClusterLayout(8, 8, 24, 2, 2, schedule=VIRTUAL, recompute=FULL),
    ),
    run_of_sc21(
        "76.1B", gpt(10240, 60, 80), 1024, 1792,
        ClusterLayout(8, 4, 32, 2, 3, schedule=VIRTUAL, recompute=FULL),
    ),
    run_of_sc21("39.1B", gpt(8192, 48, 64), 512, 1536, ClusterLayout(8, 2, 32, 4, recompute=FULL)),
    # BigScience, 2022: ZeRO 1 for the optimizer's state in float32
    PublishedRun(
        "BLOOM-176B", gpt(14336, 70, 112, 250880), 384, "A100-80", 2048, 2048,
        ClusterLayout(4, 12, 8, 2, zero=1, recompute=FULL), old=True,
    ),
    # NeMo's recipe llama3_70b, 64 GPUs
    PublishedRun(
        "Llama-3 70B", llama(8192, 28672, 80, 64, 8, 128256), 64, "H100", 128, 8192,
        ClusterLayout(4, 4, 2, 1, 5, context=2, schedule=VIRTUAL, zero=1),
    ),
    # Llama Team, 2024, Table 4: the first and the last device have a block less; with interleaved stages, of
    # a number that is not stated, memory would not suffice by the count here
    PublishedRun(
        "Llama-3 405B", llama(16384, 53248, 126, 128, 8, 128256), 8192, "H100", 2048, 8192,
        ClusterLayout(8, 16, 64, zero=1), options={"fused_gate": True},
    ),
    # NVIDIA, 2024, Table 2
    PublishedRun(
        "Nemotron-4 340B", NEMOTRON, 1536, "H100", 768, 4096,
        ClusterLayout(8, 12, 16, 1, 8, schedule=VIRTUAL, zero=1),
    ),
    # DeepSeek-AI, 2024, Section 3.2: exchanges run beside products; of DualPipe the form of a V. It computes
    # less again than whole blocks, which is not known here
    PublishedRun(
        "DeepSeek-V3", llama(7168, 18432, 61, 128, 128, 129280) | DEEPSEEK, 2048, "H800", 15360, 4096,
        ClusterLayout(1, 16, 128, 1, 2, expert=64, schedule="dualpipev", zero=1, recompute=FULL),
        "float8_block", options={"overlapped": True}, runtime="any",
    ),
    # NeMo's recipe mixtral_8x7b, 64 GPUs
    PublishedRun(
        "Mixtral 8x7B", llama(4096, 14336, 32, 32, 8, 32000) | MIXTRAL, 64, "H100", 256, 4096,
        ClusterLayout(1, 4, 16, 1, 8, expert=8, schedule=VIRTUAL, zero=1),
    ),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="bench_layouts", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="only runs whose name has this word")
    options = parser.parse_args(arguments)
    print(f"{HEAD}\n| :-- | --: | --: | --: | :-- | --: | :-- | --: | --: | --: | --: |")
    for run in RUNS:
        if options.only in run.name:
            print(row(run), flush=True)
    return 0


def row(run: PublishedRun) -> str:
    """Rank all layouts of a run; returns its line of the table."""
    started = time.perf_counter()
    question = asked(run, run.options)
    search = question.search(LOOKED, Clock(), Interruption())
    found = search.search(question.space)
    seconds = time.perf_counter() - started
    own = asked(run, OLD if run.old else run.options)
    kind = own.search(LOOKED, Clock(), Interruption())
    like = [
        each for each in own.space if (each.recompute, each.zero) == (run.layout.recompute, run.layout.zero)
    ]
    cells = (
        run.name,
        f"{run.gpus:,}",
        f"{search.tried:,}",
        f"{seconds:.1f}",
        found[0].layout.name,
        f"{found[0].seconds:.2f}",
        run.layout.name,
        *place(search.run_of(run.layout), found),
        *place(kind.run_of(run.layout), kind.search(like)),
    )
    return f"| {' | '.join(cells)} |"


def place(published: LayoutRun, found: list[LayoutRun]) -> tuple[str, str]:
    """Return the place of a layout among those found, and how much longer it takes than the first."""
    if not found:
        return "none fits", "-"
    faster = sum(run.simulated[0] < published.simulated[0] for run in found)
    lacking = "" if published.fits else ", lacks memory"
    where = f"after {LOOKED}" if faster == LOOKED else str(faster + 1)
    return where + lacking, f"{published.seconds / found[0].seconds - 1:.1%}"


def asked(run: PublishedRun, options: LayoutOptions) -> LayoutQuestion:
    """Return the question of a run, with the options of kernels."""
    device = named_device(run.device)
    cluster = cluster_of(device, run.gpus, NODE, None, NETWORK[run.device], LATENCY, None)
    decoder = decoder_to_train(run.config)
    return LayoutQuestion(decoder, cluster, run.global_batch, run.sequence, run.dtype, run.runtime, options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except pt.PartitionerError as error:
        sys.exit(f"bench_layouts: {error}")
