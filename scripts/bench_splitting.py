"""Measure operation splitting against the times of FastT's Table 4.

The paper gives no numbers of operators; the models here are synthetic training graphs of the sizes that
TensorFlow's graphs of these networks typically have, times the replicas of the data-parallel graph: a
forward pass with skip connections and its mirror image, a fifth of the operators heavy and divisible along
batch and channels. Replicas keep all devices busy, so that the search soon ends; with --start model one model
of as many operators is split instead, as where it does not fit one device, and the search goes on for long.
The bar is a twentieth of the paper's time. Exit code: 0; 1 if a row is above its bar.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

from partitioner import Devices, Dimension, Graph, SplitPlan, split_operations

PAPER = {
    "lenet": (120, (3.54, 8.71, 11.28)),
    "alexnet": (250, (4.23, 9.58, 18.46)),
    "vgg19": (500, (24.41, 62.74, 118.4)),
    "rnnlm": (1_500, (48.95, 92.31, 174.22)),
    "inception_v3": (3_000, (28.7, 64.5, 124.8)),
    "gnmt": (5_000, (122.31, 259.43, 522.85)),
    "bert_large": (6_000, (448.9, 470.3, 529.9)),
    "resnet200": (7_000, (201.2, 481.9, 792.5)),
    "transformer": (12_000, (783.0, 1952.6, 5775.2)),
}
COUNTS = (2, 4, 8)
FASTER = 20.0
HEAVY = 0.2
BATCH = Dimension("batch")
CHANNEL = Dimension("channel", divides_input=False, divides_parameters=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(PAPER)}; all by default")
    parser.add_argument("--devices", type=int, nargs="*", choices=COUNTS, default=COUNTS)
    parser.add_argument("--start", choices=("replicas", "model"), default="replicas")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.models if name not in PAPER]
    if unknown:
        parser.error(f"{unknown[0]} is no model; these are {', '.join(PAPER)}")
    measured(60, 2, True, options.seed)  # compiles the kernels if they are not yet
    good = True
    print("model         devices operators trials splits  faster by  seconds  paper  bar")
    for name in options.models or PAPER:
        size, seconds = PAPER[name]
        for count, paper in zip(COUNTS, seconds, strict=True):
            if count in options.devices:
                found, taken = measured(size, count, options.start == "replicas", options.seed)
                good &= taken <= paper / FASTER
                print(row(name, size * count, count, found, taken, paper), flush=True)
    return 0 if good else 1


def row(name: str, size: int, count: int, found: SplitPlan, taken: float, paper: float) -> str:
    """A line of the table."""
    gain = f"{1 - found.plan.value / found.unsplit:.1%}"
    cells = f"{name:13} {count:7} {size:9} {found.trials:6} {len(found.splits):6} {gain:>10}"
    return f"{cells} {taken:8.2f} {paper:6.1f} {paper / FASTER:.2f}"


def measured(size: int, count: int, parallel: bool, seed: int) -> tuple[SplitPlan, float]:
    """What is found for `size` operators a device on `count` devices, and the seconds that it took."""
    graph, along = model(np.random.default_rng(seed), size // 2 * (1 if parallel else count))
    started = time.perf_counter()
    found = split_operations(
        graph, Devices.accelerated(count), along, data_parallel=parallel, gradient_cost=0.01
    )
    return found, time.perf_counter() - started


def model(rng: np.random.Generator, layers: int) -> tuple[Graph, dict[int, list[Dimension]]]:
    """A training graph of `layers` forward operators and as many backward ones."""
    heavy = rng.random(layers) < HEAVY
    time = np.where(heavy, rng.lognormal(1.0, 1.0, layers), rng.exponential(0.02, layers))
    back = rng.random(layers) < 0.3
    skips = np.maximum(0, np.arange(layers) - rng.integers(2, 9, layers))
    forward = [(i - 1, i) for i in range(1, layers)]
    forward += [(int(skips[i]), i) for i in range(2, layers) if back[i] and skips[i] < i - 1]
    mirrored = [(layers + v, layers + u) for u, v in forward]
    across = [(i, layers + i) for i in range(layers)]
    edges = forward + mirrored + across
    size = rng.exponential(0.1, 2 * layers)
    graph = Graph.from_arrays(
        {"accelerator": np.concatenate((time, 2 * time))},
        edges,
        [float(size[u]) for u, _ in edges],
        parameters=np.concatenate((np.where(heavy, rng.exponential(10.0, layers), 0.0), np.zeros(layers))),
        backward=np.arange(2 * layers) >= layers,
        color=[i % layers if heavy[i % layers] else None for i in range(2 * layers)],
    )
    along = {int(i): [BATCH, CHANNEL] for i in np.flatnonzero(np.tile(heavy, 2))}
    return graph, along


if __name__ == "__main__":
    sys.exit(main())
