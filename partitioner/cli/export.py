"""The command ``partitioner export``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from partitioner.base.errors import OptionError
from partitioner.base.files import check_writable
from partitioner.base.safe_text import visible
from partitioner.cli.argument import Section, value
from partitioner.cli.inputs import as_planned, read_workload
from partitioner.cli.shared_arguments import OF_PLAN, PLAN, PROFILE, WORKLOAD, devices
from partitioner.exports.writers import WRITERS, export, write_content
from partitioner.formats.plan import load_plan
from partitioner.integrations.onnx import write_pieces
from partitioner.results.plan import Plan

PIECES, MODEL = "onnx-pieces", ".onnx"

EXPORT = (
    Section(
        "",
        (
            WORKLOAD,
            PLAN,
            value(
                "--to",
                f"write the plan for this tool: {', '.join(WRITERS.own)}, {PIECES} (an ONNX model cut "
                "into a file for each stage), or one of another package; the option is required",
                required=True,
                metavar="NAME",
            ),
            value(
                "--output",
                f"write to this file, or for {PIECES} to this folder, which must exist (default: print)",
                metavar="FILE",
            ),
        ),
    ),
    devices(OF_PLAN),
    PROFILE,
)


def export_plan(options: argparse.Namespace) -> None:
    """Print a plan for another tool, or write it to a file; or write the pieces of an ONNX model.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, the tool cannot express the plan, or the file cannot be written.
    """
    plan = load_plan(options.plan)
    if options.to == PIECES:
        _cut(options, plan)
        return
    check_writable(options.output)
    content = export(read_workload(as_planned(options, plan.record), plan.hardware), plan, options.to)
    if options.output is not None:
        write_content(options.output, content)
    elif isinstance(content, str):
        print(visible(content) if sys.stdout.isatty() else content, end="")
    else:
        raise OptionError(f"--to {options.to} writes bytes: --output must name a file")


def _cut(options: argparse.Namespace, plan: Plan) -> None:
    """Write the pieces of an ONNX model into the folder that the options name."""
    if Path(options.workload).suffix.lower() != MODEL:
        raise OptionError(f"--to {PIECES}: {options.workload}: must be an ONNX model ({MODEL})")
    if options.output is None or not Path(options.output).is_dir():
        said = "--output" if options.output is None else f"--output {options.output}"
        raise OptionError(f"--to {PIECES}: {said}: must name a folder that exists")
    workload = read_workload(as_planned(options, plan.record), plan.hardware)
    plan.record.check_graph(workload.graph, workload.devices, strict=True)
    write_pieces(workload, plan, options.workload, options.output)
