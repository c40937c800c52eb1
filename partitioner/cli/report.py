"""The command ``partitioner report``."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

from partitioner.analysis.explanations.explain import explain
from partitioner.analysis.reports.report import report
from partitioner.analysis.reports.scheduled import MICROBATCHES
from partitioner.base.errors import OptionError
from partitioner.base.files import check_writable
from partitioner.cli.argument import Section, value
from partitioner.cli.inputs import as_planned, read_workload
from partitioner.cli.shared_arguments import OF_PLAN, PLAN, PROFILE, WORKLOAD, devices
from partitioner.cli.simulate import LINKS_ARGUMENT
from partitioner.formats.plan import load_plan
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

SUFFIXES = (".html", ".htm")
REPORT = (
    Section(
        "",
        (
            WORKLOAD,
            PLAN,
            value(
                "--output",
                f"write the report to this file, ending in {' or '.join(SUFFIXES)}; the option is required",
                required=True,
                metavar="FILE.html",
            ),
            value(
                "--schedule",
                "show the pipeline under this schedule (default: the plan's, else 1f1b, or inference for a "
                "graph without a backward pass)",
                metavar="NAME",
            ),
            value(
                "--microbatches",
                f"show this many samples of the pipeline (default: the plan's, else {MICROBATCHES})",
                type=int,
                metavar="N",
            ),
            LINKS_ARGUMENT,
        ),
    ),
    devices(OF_PLAN),
    PROFILE,
)


def check_html(option: str, path: str) -> None:
    """Raise if an option's file does not end as pages do.

    Raises
    ------
    OptionError
        Naming option and file.
    """
    if Path(path).suffix.lower() not in SUFFIXES:
        raise OptionError(f"{option} {path}: must end in {' or '.join(SUFFIXES)}")


def write_report(options: argparse.Namespace) -> None:
    """Write the report of a plan to a file.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, bokeh is not installed, or the file cannot be written.
    """
    check_html("--output", options.output)
    check_writable(options.output)
    plan = load_plan(options.plan)
    workload = read_workload(as_planned(options, plan.record), plan.hardware)
    given = {"schedule": options.schedule, "microbatches": options.microbatches, "links": options.links}
    report(workload, plan, explanation=_sentences(workload, plan), **given).save(options.output)


def _sentences(workload: Workload, plan: Plan) -> list[str]:
    """Return the explanation of the plan without changes of its question; nothing if it has none."""
    with suppress(OptionError):
        found = explain(workload.graph, workload.devices, plan, what_if=()).sections()
        return [sentence for sentences in found.values() for sentence in sentences]
    return []
