"""How many sequences decoders hold on unlike GPUs: plans for capacity beside the usual ways to divide layers.

A sample is a sequence that is read and continued; times are estimates by the roofline for every kind of GPU,
caches and weights are counted. "equal layers" gives each GPU the same number of blocks, as vLLM does by
default; "by memory" gives blocks in proportion to the GPUs' memory. "best order" is the best of all orders of
the GPUs. Exit code: 0; 1 if a plan is not proven optimal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
from grids import markdown_grid, text_grid

import partitioner as pt

PROVEN, OPEN = 0, 1
SHARED = {"torch_dtype": "bfloat16", "tie_word_embeddings": False}
HEADS = ("model and GPUs", "plan", "sequences", "times equal", "ms a sequence", "sequences/s", "s")
Blocks = Sequence[int]


@dataclass(frozen=True)
class Case:
    """A model, and the GPUs that serve it: names of devices in the order in which layers are dealt."""

    title: str
    config: dict[str, Any]
    gpus: tuple[str, ...]


def llama(
    hidden: int, inner: int, layers: int, heads: int, kind: str = "llama", **more: Any
) -> dict[str, Any]:
    """Return the config of a decoder with 8 heads of keys and values."""
    sizes = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    sizes |= {"num_attention_heads": heads, "num_key_value_heads": 8, "vocab_size": 128256}
    return {"model_type": kind} | SHARED | sizes | more


CASES = {
    "llama-3-8b": Case(
        "LLaMA-3-8B, two RTX 4090, A100-40, A100-80",
        llama(4096, 14336, 32, 32),
        ("RTX 4090", "RTX 4090", "A100-40", "A100-80"),
    ),
    "llama-3-70b": Case(
        "LLaMA-3-70B, A100-40, two A100-80, H200",
        llama(8192, 28672, 80, 64),
        ("A100-40", "A100-80", "A100-80", "H200"),
    ),
    "gemma-2-27b": Case(
        "Gemma-2-27B, two RTX 4090, A100-40, H100",
        llama(4608, 36864, 46, 32, "gemma2", vocab_size=256000, num_key_value_heads=16, head_dim=128)
        | {"sliding_window": 4096, "tie_word_embeddings": True},
        ("RTX 4090", "RTX 4090", "A100-40", "H100"),
    ),
    "llama-3-8b-equal": Case("LLaMA-3-8B, four RTX 4090", llama(4096, 14336, 32, 32), ("RTX 4090",) * 4),
}


def workload_of(case: Case, options: argparse.Namespace) -> pt.Workload:
    """Return the model with the times of every kind of GPU, and these GPUs."""
    kinds = list(dict.fromkeys(case.gpus))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(case.config), encoding="utf-8")
        read = served(path, kinds, options)
    found = [
        replace(kind, count=case.gpus.count(kind.name), memory=options.usable * (kind.memory or 0.0))
        for kind in read.devices.kinds
    ]
    return pt.Workload(read.graph, pt.Devices(tuple(found)), case.title)


def served(path: Path, devices: list[str], options: argparse.Namespace) -> pt.Workload:
    """Return the model as these kinds of GPU serve it."""
    return pt.load_config(
        path,
        sequence=options.sequence,
        generate=options.generate,
        batch=options.batch,
        device=devices,
        bandwidth=options.bandwidth,
        efficiency=options.efficiency,
        training=False,
    )


def names_in_order(case: Case) -> list[str]:
    """Return the names of the devices in the order of the case."""
    used: dict[str, int] = {}
    found = []
    for gpu in case.gpus:
        kind = pt.DeviceKind(gpu, case.gpus.count(gpu))
        found.append(kind.device(used.setdefault(gpu, 0)))
        used[gpu] += 1
    return found


def dealt(graph: pt.Graph, devices: Sequence[str], blocks: Blocks) -> dict[Any, str]:
    """Return the placement of consecutive blocks on each device; what is before or after goes along."""
    bounds = np.cumsum([0, *blocks])
    home = {i: device for (a, b), device in zip(pairwise(bounds), devices, strict=True) for i in range(a, b)}
    order = [graph.layer_labels[code] for code in graph.layer.tolist()]
    first = next(i for i, label in enumerate(order) if ".layers." in str(label))
    last = int(bounds[-1]) - 1
    return {node: home[min(max(i - first, 0), last)] for i, node in enumerate(graph.ids)}


def in_proportion(count: int, weights: Sequence[float]) -> list[int]:
    """Return the number of blocks of each device in proportion to its weight (largest remainders)."""
    exact = count * np.array(weights) / sum(weights)
    found = np.floor(exact).astype(int)
    found[np.argsort(found - exact, kind="stable")[: count - int(found.sum())]] += 1
    return [int(blocks) for blocks in found]


def rivals(case: Case, workload: pt.Workload) -> Iterator[tuple[str, pt.Evaluation]]:
    """Yield the evaluations of the usual ways to divide the blocks."""
    names, count = names_in_order(case), int(case.config["num_hidden_layers"])
    limits = {load: kind.memory for kind in workload.devices.kinds for load in _devices(kind)}

    def value(devices: Sequence[str], by_memory: bool) -> pt.Evaluation:
        weights = [limits[name] or 0.0 if by_memory else 1.0 for name in devices]
        blocks = in_proportion(count, weights)
        placement = dealt(workload.graph, devices, blocks)
        return pt.evaluate(workload.graph, workload.devices, placement, "capacity")

    for title, by_memory in (("equal layers", False), ("by memory", True)):
        yield title, value(names, by_memory)
        every = [value(order, by_memory) for order in permutations(names)]
        best = max((one for one in every if one.feasible), key=_rank, default=None)
        if best is not None:
            yield f"{title}, best order", best


def _devices(kind: pt.DeviceKind) -> list[str]:
    return [kind.device(i) for i in range(kind.count)]


def _rank(found: pt.Evaluation) -> tuple[float, float]:
    return found.value, -found.bottleneck.load


def rows_of(case: Case, options: argparse.Namespace) -> Iterator[tuple[list[str], bool]]:
    """Yield the rows of a case, the usual ways first, and whether each plan is proven."""
    workload, title = workload_of(case, options), case.title
    equal = 0.0
    for name, found in rivals(case, workload):
        equal = equal or found.value
        held = found.value if found.feasible else 0.0
        yield _row(title, name, held, equal, found.bottleneck.load, ""), True
        title = ""
    for slowdown in (*options.slowdowns, None):
        plan = pt.solve(workload.graph, workload.devices, "capacity", max_slowdown=slowdown)
        name = "capacity" if slowdown is None else f"capacity within {slowdown:g} x the least time"
        seconds = f"{plan.runtime_seconds:.2f}"
        row = _row(title, name, plan.value, equal, plan.bottleneck.load, seconds)
        yield row, plan.status == "optimal"
        if options.plans:
            print(plan.summary(), end="\n\n")


def _row(title: str, name: str, held: float, equal: float, time: float, seconds: str) -> list[str]:
    times = f"{held / equal:.2f}" if equal else "-"
    if not held:
        return [title, name, "does not fit", times, "", "", seconds]
    return [title, name, f"{held:,.0f}", times, f"{time:.1f}", f"{1e3 / time:.2f}", seconds]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--sequence", type=int, default=2048, help="tokens of a prompt (2048)")
    parser.add_argument("--generate", type=int, default=256, help="tokens that a sequence generates (256)")
    parser.add_argument("--batch", type=int, default=64, help="sequences that pass together (64)")
    parser.add_argument("--bandwidth", type=float, default=25e9, help="bytes per second between GPUs (25e9)")
    parser.add_argument(
        "--efficiency", type=float, default=0.5, help="part of the peak that is reached (0.5)"
    )
    parser.add_argument("--usable", type=float, default=0.9, help="part of a GPU's memory that is used (0.9)")
    parser.add_argument("--slowdowns", type=float, nargs="*", default=[1.0, 1.25], help="of max_slowdown")
    parser.add_argument("--plans", action="store_true", help="print every plan in addition")
    parser.add_argument("--markdown", action="store_true", help="print a table in markdown")
    parser.add_argument("--save", type=Path, help="write the workloads to this folder, and solve none")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        parser.error(f"{unknown[0]}: must be one of {', '.join(CASES)}")
    if options.save is not None:
        for name in options.cases:
            workload_of(CASES[name], options).save(options.save / f"{name}.json")
        return PROVEN
    found = [row for name in options.cases for row in rows_of(CASES[name], options)]
    grid = markdown_grid if options.markdown else text_grid
    print(grid(HEADS, [row for row, _ in found]))
    return PROVEN if all(proven for _, proven in found) else OPEN


if __name__ == "__main__":
    sys.exit(main())
