"""The command ``partitioner compare``."""

from __future__ import annotations

import argparse
from typing import Any

from partitioner.cli.inputs import read_constraints, read_transfers, read_workload
from partitioner.cli.progress import ProgressLine
from partitioner.errors import InfeasibleError, NoPlanFound
from partitioner.planning.comparison.methods import MethodComparison, compare_methods
from partitioner.planning.comparison.runs import INFEASIBLE
from partitioner.workload.workload import Workload

METHOD_OPTIONS = ("subgraphs_per_accelerator", "schedule", "microbatches")


def compare_all(options: argparse.Namespace) -> None:
    """Run the methods on a workload and print what each found.

    Raises
    ------
    InfeasibleError
        If every method proved that there is no plan.
    NoPlanFound
        If no method found a plan.
    PartitionerError
        If something in files or options is not sound.
    """
    workload = read_workload(options)
    with ProgressLine() as line:
        comparison = compare_methods(
            workload.graph,
            workload.devices,
            options.objective,
            split=options.split,
            methods=None if options.methods is None else _names(options.methods),
            time_limit=options.time_limit,
            seed=options.seed,
            workers=options.workers,
            on_progress=line.show,
            **_method_options(options, workload),
        )
    print(comparison.to_json() if options.format == "json" else comparison.summary())
    if comparison.best is None:
        raise _nothing(comparison)


def _names(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


def _method_options(options: argparse.Namespace, workload: Workload) -> dict[str, Any]:
    """Those that differ from their defaults."""
    constraints = read_constraints(options, workload.graph)
    chosen = {name: getattr(options, name) for name in METHOD_OPTIONS}
    chosen |= {"constraints": None if constraints.empty else constraints}
    chosen |= {"refine": options.refine or None, "transfers": read_transfers(options)}
    return {name: value for name, value in chosen.items() if value is not None}


def _nothing(comparison: MethodComparison) -> Exception:
    if all(one.against == INFEASIBLE for one in comparison.compared):
        return InfeasibleError(comparison.compared[0].reason)
    return NoPlanFound("no method found a plan")
