"""The command ``partitioner diff``."""

from __future__ import annotations

import argparse
from dataclasses import replace

from partitioner.analysis.explanations.difference import diff
from partitioner.cli.argument import Section
from partitioner.cli.inputs import as_planned, chosen_devices, read_workload
from partitioner.cli.output import show
from partitioner.cli.shared_arguments import FORMAT, OF_PLAN, PLAN, PROFILE, WORKLOAD, devices
from partitioner.formats.plan_record import load_record, resolved

DIFF = (
    Section(
        "",
        (
            WORKLOAD,
            replace(PLAN, name="before", help="read the first plan from this file, which solve has written"),
            replace(PLAN, name="after", help="read the second plan from this file"),
            FORMAT,
        ),
    ),
    devices(f"{OF_PLAN}, for both plans"),
    PROFILE,
)


def diff_plans(options: argparse.Namespace) -> None:
    """Print what two plans of a workload differ in.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule.
    """
    before, after = load_record(options.before), load_record(options.after)
    workload = read_workload(as_planned(options, before), before.hardware)
    graph, later = workload.graph, chosen_devices(options, after.hardware or workload.devices)
    found = diff(
        graph,
        None,
        replace(resolved(before, graph, workload.devices), hardware=workload.devices),
        replace(resolved(after, graph, later), hardware=later),
    )
    show(found.to_json() if options.format == "json" else found.summary())
