"""The command ``partitioner conflict``."""

from __future__ import annotations

import argparse
from dataclasses import replace

from partitioner.analysis.explanations.conflict import TIME_LIMIT, conflicting_demands
from partitioner.cli.argument import Section
from partitioner.cli.inputs import read_workload
from partitioner.cli.option_arguments import argument_of
from partitioner.cli.output import show
from partitioner.cli.progress import ProgressLine
from partitioner.cli.shared_arguments import FORMAT
from partitioner.cli.solve_arguments import OUTPUT, solve_options, solve_sections
from partitioner.planning.option_records import OPTIONS

NOT_TAKEN = ("--gap",)
LIMIT = argument_of(
    replace(
        OPTIONS["time_limit"],
        help="let all attempts together take this many seconds, in which compiling is not counted",
    ),
    f"{TIME_LIMIT:g}",
)


def conflict_sections() -> tuple[Section, ...]:
    """Return the arguments: those of ``solve`` that say what is demanded of a plan."""
    kept = [section for section in solve_sections() if section is not OUTPUT]
    return (*map(_changed, kept), Section("output", (FORMAT,)))


def _changed(section: Section) -> Section:
    kept = (LIMIT if one.name == LIMIT.name else one for one in section.arguments)
    return replace(section, arguments=tuple(one for one in kept if one.name not in NOT_TAKEN))


def find_conflict(options: argparse.Namespace) -> None:
    """Print the smallest set of demands that rules out every plan.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, or it is not known whether there is a plan.
    """
    workload = read_workload(options)
    with ProgressLine() as line:
        found = conflicting_demands(
            workload.graph, workload.devices, on_progress=line.show, **solve_options(options, workload)
        )
    show(found.to_json() if options.format == "json" else found.summary())
