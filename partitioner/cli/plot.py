"""The command ``partitioner plot``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from partitioner.analysis.plots.graph import plot_graph
from partitioner.analysis.plots.loads import plot_loads
from partitioner.analysis.plots.memory import plot_memory
from partitioner.analysis.plots.timeline import plot_timeline
from partitioner.analysis.reports.scheduled import MICROBATCHES
from partitioner.base.errors import OptionError
from partitioner.base.files import check_writable, write_bytes
from partitioner.cli.argument import Section, flag, value
from partitioner.cli.inputs import read_planned
from partitioner.cli.pictures import FORMATS, drawn, picture_suffix
from partitioner.cli.shared_arguments import OF_PLAN, PLAN, PROFILE, WORKLOAD, devices
from partitioner.cli.simulate import LINKS_ARGUMENT, simulation_arguments
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import PlanRecord
from partitioner.formats.plan_record import evaluation_arguments, load_record
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import DEFAULT, OBJECTIVES
from partitioner.schedule.simulation import simulate
from partitioner.schedule.timeline import Timeline
from partitioner.workload.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def run_plot(options: argparse.Namespace) -> None:
    """Draw the picture that the options ask for and write it to a file.

    Raises
    ------
    WorkloadError
        If a file breaks a rule.
    OptionError
        If the file's name ends in none of the formats, or options do not go together.
    BackendUnavailable
        If matplotlib is not installed.
    PartitionerError
        If the file cannot be written.
    """
    suffix = picture_suffix("--output", options.output)
    scheduled = options.what in ("timeline", "memory")
    if not scheduled and (options.schedule is not None or options.microbatches is not None):
        raise OptionError("--schedule and --microbatches are for --what timeline and memory")
    check_writable(options.output)
    picture = PICTURES[options.what]
    write_bytes(options.output, drawn(lambda: picture(options), suffix, bool(options.dark)))


def _loads(options: argparse.Namespace) -> Axes:
    workload, record = _read(options)
    proven = record.objective == DEFAULT and record.workload_sha256 == workload.sha256
    return plot_loads(_evaluated(workload, record), bound=record.bound if proven else None)


def _graph(options: argparse.Namespace) -> Axes:
    workload, record = _read(options)
    return plot_graph(workload.graph, record.placement, loads=_evaluated(workload, record).loads)


def _timeline(options: argparse.Namespace) -> Axes:
    return plot_timeline(_simulated(options))


def _memory(options: argparse.Namespace) -> Axes:
    return plot_memory(_simulated(options))


PICTURES: dict[str, Callable[[argparse.Namespace], Axes]] = {
    "loads": _loads,
    "timeline": _timeline,
    "memory": _memory,
    "graph": _graph,
}
PLOT = (
    Section(
        "",
        (
            WORKLOAD,
            PLAN,
            value(
                "--output",
                f"write the picture to this file, which ends in {', '.join(FORMATS)}; the option is required",
                required=True,
                metavar="FILE",
            ),
            value(
                "--what",
                "draw the loads of the devices, the timeline of a schedule, the memory over that time, "
                "or the graph in the colours of its devices (default: loads)",
                choices=PICTURES,
                default="loads",
            ),
            value(
                "--schedule",
                "draw a timeline or memory under this schedule (default: the plan's, else 1f1b, or inference "
                "for a graph without a backward pass)",
                metavar="NAME",
            ),
            value(
                "--microbatches",
                f"draw these two for this many samples (default: the plan's, else {MICROBATCHES})",
                type=int,
                metavar="N",
            ),
            LINKS_ARGUMENT,
            flag("--dark", "draw light on a dark background (default: dark on a light one)"),
        ),
    ),
    devices(OF_PLAN),
    PROFILE,
)


def _read(options: argparse.Namespace) -> tuple[Workload, PlanRecord]:
    """Return the workload on the requested devices, by default those of the plan, and the plan."""
    return read_planned(options, load_record(options.plan))


def _evaluated(workload: Workload, record: PlanRecord) -> Evaluation:
    """Return the loads of the plan as a pipeline, for a plan of any objective."""
    given = evaluation_arguments(record, workload.graph, OBJECTIVES[DEFAULT].terms, {})
    return evaluate(workload.graph, workload.devices, record.placement, DEFAULT, **given)


def _simulated(options: argparse.Namespace) -> Timeline:
    workload, record = _read(options)
    given = simulation_arguments(options, record)
    if given["microbatches"] is None:
        given["microbatches"] = MICROBATCHES
    schedule = record.schedule if options.schedule is None else options.schedule
    return simulate(workload.graph, workload.devices, schedule=schedule, **given)
