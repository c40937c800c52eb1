"""How far the makespans of pipelines are from their lower bounds: a line for each workload and schedule.

    python scripts/bench_makespans.py instances/*training*.json --schedules 1f1b gpipe --microbatches 8 32 128

A line has the value, its distance to the bound, and the seconds of the call, for each number of microbatches.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import partitioner

FORBIDDEN = partitioner.InfeasibleError, partitioner.NoPlanFound


def cell(path: Path, schedule: str, microbatches: int, time_limit: float) -> str:
    """Return the figures of one call, or why there is no plan."""
    workload = partitioner.load(path)
    given: dict[str, Any] = {"schedule": schedule, "microbatches": microbatches, "time_limit": time_limit}
    try:
        plan = partitioner.solve(workload.graph, workload.devices, "makespan", **given)
    except FORBIDDEN as error:
        return type(error).__name__
    return f"{plan.value:.6g}, {plan.gap:.2%}, {plan.runtime_seconds:.1f} s"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--schedules", nargs="+", default=["1f1b", "gpipe"])
    parser.add_argument("--microbatches", nargs="+", type=int, default=[8, 32, 128])
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    print(f"| workload | schedule | {' | '.join(map(str, options.microbatches))} |")
    print("| --- " * (2 + len(options.microbatches)) + "|")
    for path in options.files:
        for schedule in options.schedules:
            cells = [cell(path, schedule, count, options.time_limit) for count in options.microbatches]
            print(f"| `{path.stem}` | {schedule} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
