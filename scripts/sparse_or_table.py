"""Pipelines on many unlike devices: what the search without a table of all sets of devices finds and proves.

Every workload is solved on every pool twice under the same limit of seconds, by the table and by the sparse
search; kernels are compiled before. The table has a row for each workload and pool.

Exit code: 0; 2 a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from grids import markdown_grid

import partitioner as pt
from partitioner.methods.dp import pipeline

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
NAMES = ("bert24_training", "gnmt_training", "gpt3_6b7_training", "gpt2xl_training")
BAD_INPUT = 2
TABLE, SPARSE = 10**18, 0  # the most states for which a table is filled
COLUMNS = ("workload", "pool", "states", "table", "bound", "s", "sparse", "bound", "s", "alone")


def pool(kinds: int, each: int, links: bool) -> pt.Devices:
    """Return devices of unlike kinds, `each` of every kind; `links` make them servers with links."""
    rng = np.random.default_rng(0)
    unlike = tuple(
        pt.DeviceKind(f"kind{i}", each, times="accelerator", time_factor=float(rng.uniform(0.5, 4)))
        for i in range(kinds)
    )
    if not links:
        return pt.Devices(unlike)
    groups = tuple(pt.DeviceGroup(f"server {i}", {f"kind{i}": each}) for i in range(kinds))
    pairs = combinations([group.name for group in groups], 2)
    joined = tuple(pt.GroupLink(float(rng.choice([2, 4, 8, 20])), pair) for pair in pairs)
    return pt.Devices(unlike, groups=groups, links=joined)


def solved(graph: pt.Graph, devices: pt.Devices, limit: float, most: int) -> tuple[float, float, float]:
    """Return value, bound and seconds where a table has at most so many states."""
    usual = pipeline.EFFORT
    pipeline.EFFORT = replace(usual, most_states=most)
    try:
        began = time.perf_counter()
        plan = pt.solve(graph, devices, method="pipeline", time_limit=limit)
        return plan.value, plan.bound, time.perf_counter() - began
    except pt.InfeasibleError:
        return np.inf, np.inf, time.perf_counter() - began
    finally:
        pipeline.EFFORT = usual


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="sparse_or_table", description=__doc__)
    files = [INSTANCES / f"{name}.json" for name in NAMES]
    parser.add_argument("--workloads", type=Path, nargs="+", default=files, metavar="FILE")
    parser.add_argument("--limit", type=float, default=20.0, metavar="SECONDS", help="of each run")
    options = parser.parse_args(arguments)
    try:
        graphs = {file.stem: pt.load(file).graph for file in options.workloads}
    except (OSError, pt.PartitionerError) as error:
        print(f"sparse_or_table: {error}", file=sys.stderr)
        return BAD_INPUT
    pools = {
        f"{kinds} {'servers' if links else 'kinds'} of {each}": (kinds, each, links)
        for kinds, each, links in ((3, 4, True), (5, 4, True), (8, 4, True), (4, 8, False), (6, 8, False))
    }
    rows = []
    for name, graph in graphs.items():
        for label, (kinds, each, links) in pools.items():
            devices = pool(kinds, each, links)
            for most in (TABLE, SPARSE):
                solved(graph, devices, 1.0, most)  # compiles the kernels
            states = (each + 1) ** kinds * (kinds**2 if links else 1)
            table, sparse = (solved(graph, devices, options.limit, most) for most in (TABLE, SPARSE))
            rows.append([name, label, f"{states:,}", *_texts(table), *_texts(sparse), _alone(table, sparse)])
            print(rows[-1], file=sys.stderr, flush=True)
    print(markdown_grid(COLUMNS, rows))
    return 0


def _texts(run: tuple[float, float, float]) -> list[str]:
    value, bound, seconds = run
    return [f"{value:.5g}", f"{bound:.5g}", f"{seconds:.1f}"]


def _alone(table: tuple[float, float, float], sparse: tuple[float, float, float]) -> str:
    """Say what the sparse search alone does, or the table."""
    said = []
    for name, one, other in (("sparse", sparse, table), ("table", table, sparse)):
        if one[0] < other[0] * (1 - 1e-6):
            said.append(f"{name} wins")
        if one[1] > one[0] * (1 - 1e-9) and other[1] < other[0] * (1 - 1e-9):
            said.append(f"{name} proves")
    return ", ".join(said)


if __name__ == "__main__":
    sys.exit(main())
