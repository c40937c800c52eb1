"""How the steps of method ``dp`` change with each field of the effort of its tables.

Every workload is solved without a limit of time, with each field at half and at twice its value. Values and
bounds must stay as they are; the steps of the exact search are added up over the workloads.

Exit code: 0; 1 a value or a bound differs; 2 a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from grids import markdown_grid

import partitioner as pt
from partitioner.methods.dp import bracket
from partitioner.methods.dp.bracket import TableEffort

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
FIELDS = ("first_step", "highest", "narrow", "bisections", "least_cost")
DIFFERENT, BAD_INPUT = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="effort_fields", description=__doc__)
    files = sorted(INSTANCES.glob("*_*.json"))
    parser.add_argument("--workloads", type=Path, nargs="+", default=files, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        workloads = [pt.load(file) for file in options.workloads]
    except (OSError, pt.PartitionerError) as error:
        print(f"effort_fields: {error}", file=sys.stderr)
        return BAD_INPUT
    usual, (steps, proofs) = bracket.EFFORT, _solved(workloads, bracket.EFFORT)
    rows, same = [["all as they are", "", f"{steps:,}", ""]], True
    for name, value, effort in _variants(usual):
        varied, found = _solved(workloads, effort)
        same = same and found == proofs
        rows.append([name, f"{value:g}", f"{varied:,}", f"{100 * (varied / steps - 1):+.1f} %"])
    print(markdown_grid(["field", "value", "steps", "change"], rows))
    return 0 if same else DIFFERENT


def _variants(usual: TableEffort) -> Iterator[tuple[str, float, TableEffort]]:
    for name in FIELDS:
        value = getattr(usual, name)
        for factor in (0.5, 2):
            varied = type(value)(value * factor)
            yield name, varied, replace(usual, **{name: varied})


def _solved(workloads: Sequence[pt.Workload], effort: TableEffort) -> tuple[int, list[tuple[float, float]]]:
    """Return the steps in all, and value and bound of each workload."""
    usual, bracket.EFFORT = bracket.EFFORT, effort
    try:
        plans = [
            pt.solve(each.graph, each.devices, split="chain", method="dp", deterministic=True)
            for each in workloads
        ]
    finally:
        bracket.EFFORT = usual
    steps = sum(int(plan.statistics.get("steps", 0)) for plan in plans)
    return steps, [(plan.value, plan.bound) for plan in plans]


if __name__ == "__main__":
    sys.exit(main())
