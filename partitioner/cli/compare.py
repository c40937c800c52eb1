"""The command ``partitioner compare``."""

from __future__ import annotations

import argparse

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.base.files import check_writable, write_text
from partitioner.cli.inputs import read_workload
from partitioner.cli.output import saved, show
from partitioner.cli.progress import ProgressLine
from partitioner.cli.solve_arguments import solve_options
from partitioner.planning.comparison.methods import MethodComparison, compare_methods
from partitioner.planning.comparison.runs import INFEASIBLE


def compare_all(options: argparse.Namespace) -> None:
    """Run the methods on a workload and print the result of each.

    Raises
    ------
    InfeasibleError
        If every method proved that there is no plan.
    NoPlanFound
        If no method found a plan.
    PartitionerError
        If a file or an option breaks a rule.
    """
    check_writable(options.output, options.csv)
    workload = read_workload(options)
    with ProgressLine() as line:
        comparison = compare_methods(
            workload.graph,
            workload.devices,
            methods=options.methods,
            on_progress=line.show,
            **solve_options(options, workload),
        )
    best = None if comparison.best is None else comparison.best.plan
    text = comparison.to_json() if options.format == "json" else comparison.summary()
    table = [] if options.csv is None else [lambda: write_text(options.csv, comparison.to_csv())]
    show(text, *saved(best, workload, options), *table)
    if best is None:
        raise _nothing(comparison)


def _nothing(comparison: MethodComparison) -> Exception:
    if all(one.against == INFEASIBLE for one in comparison.compared):
        return InfeasibleError(comparison.compared[0].reason)
    return NoPlanFound("no method found a plan")
