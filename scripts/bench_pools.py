"""Plan models measured on pools of eight unlike GPUs (Sailor's profiles), and compare with Metis's way.

The profiles are those of Sailor (SOSP 2025) in Metis's format. A row has the value of the plan, whether it is
proven, the seconds of the call without compiling, the value of the best split in which layers are dealt to
all devices in proportion to their speed (over all orders of the kinds), and what the plan leaves unused.
Exit code: 0; 1 if a plan is not proven or is worse than the split by speed; 2 if the profiles are missing.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grids import markdown_grid, text_grid
from pools_bench.pools import POOLS, Pool
from pools_bench.proportional import best_proportional

import partitioner as pt
from partitioner.base.clock import METER

FOLDER = Path(__file__).parents[2] / "shared" / "benchmarks" / "sailor" / "metis"
COLUMNS = ["model", "GPUs a device", "links", "ms a sample", "", "seconds", "by speed, ms", "gain", "unused"]
GOOD, FAILED, BAD_INPUT = 0, 1, 2


@dataclass(frozen=True)
class Row:
    """A pool with its plan, the seconds of the call, and the values by speed, with and without memory."""

    pool: Pool
    plan: pt.Plan
    seconds: float
    by_speed: float | None
    without_memory: float

    @property
    def good(self) -> bool:
        """Whether the plan is proven and at least as good as the split by speed."""
        return self.plan.status == "optimal" and self.plan.value <= (self.by_speed or math.inf) * (1 + 1e-9)

    @property
    def cells(self) -> list[str]:
        """The cells of the table."""
        pool, plan = self.pool, self.plan
        idle = [load.name for load in plan.devices if not load.nodes]
        speed = self.without_memory if self.by_speed is None else self.by_speed
        return [
            pool.model,
            str(pool.degree),
            "by pair of servers" if pool.links else "equal",
            f"{plan.value:.2f}",
            plan.status,
            f"{self.seconds:.2f}",
            f"{speed:.2f}" + (" (exceeds memory)" if self.by_speed is None else ""),
            f"{speed / plan.value:.2f}",
            ", ".join(idle) or "-",
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="the profiles of all models")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each plan (default: 30)")
    parser.add_argument("--markdown", action="store_true", help="write markdown (default: aligned columns)")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        print(f"bench_pools: {options.folder}: is not a folder", file=sys.stderr)
        return BAD_INPUT
    rows = [row_of(pool, options.folder, options.limit) for pool in POOLS]
    print((markdown_grid if options.markdown else text_grid)(COLUMNS, [row.cells for row in rows]))
    return GOOD if all(row.good for row in rows) else FAILED


def row_of(pool: Pool, folder: Path, limit: float) -> Row:
    """Return the row of a pool."""
    workload = pool.workload(folder)
    began, compiled = time.perf_counter(), METER.seconds
    plan = pt.solve(workload.graph, workload.devices, time_limit=limit)
    seconds = time.perf_counter() - began - (METER.seconds - compiled)
    return Row(pool, plan, seconds, *best_proportional(workload))


if __name__ == "__main__":
    sys.exit(main())
