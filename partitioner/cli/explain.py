"""The command ``partitioner explain``."""

from __future__ import annotations

import argparse

from partitioner.analysis.explanations.explain import TIME_LIMIT, explain
from partitioner.analysis.explanations.what_ifs.changes import CHANGES
from partitioner.cli.argument import Section, flag, names, value
from partitioner.cli.inputs import read_planned
from partitioner.cli.output import show
from partitioner.cli.progress import ProgressLine
from partitioner.cli.shared_arguments import FORMAT, OF_PLAN, PLAN, PROFILE, WORKLOAD, devices
from partitioner.formats.plan_record import load_record

EXPLAIN = (
    Section(
        "",
        (
            WORKLOAD,
            PLAN,
            value(
                "--what-if",
                f"solve again with these changes, separated by commas: {', '.join(CHANGES)} (default: all)",
                type=names,
                metavar="A,B,C",
            ),
            flag(
                "--no-what-if",
                "solve nothing again (default: with the changes of --what-if)",
                stands_for=False,
                dest="changed",
            ),
            value(
                "--time-limit",
                "let all changes together take this many seconds, in which compiling is not counted "
                f"(default: {TIME_LIMIT:g})",
                type=float,
                default=TIME_LIMIT,
                metavar="SECONDS",
            ),
            FORMAT,
        ),
    ),
    devices(OF_PLAN),
    PROFILE,
)


def explain_plan(options: argparse.Namespace) -> None:
    """Print why a plan takes as long as it does, and what changes would buy.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule.
    """
    workload, record = read_planned(options, load_record(options.plan))
    with ProgressLine() as line:
        found = explain(
            workload.graph,
            workload.devices,
            record,
            what_if=options.what_if if options.changed is None else (),
            time_limit=options.time_limit,
            on_progress=line.show,
        )
    show(found.to_json() if options.format == "json" else found.summary())
