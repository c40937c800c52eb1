"""``partitioner plot``: pictures into files."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from partitioner.base.distribution import remedy
from partitioner.cli.inputs import read_workload
from partitioner.cli.simulate import simulation_arguments
from partitioner.errors import BackendUnavailable, OptionError
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import PlanRecord
from partitioner.files import check_writable, write_bytes
from partitioner.formats.plan_record import evaluation_arguments, load_record, resolved
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import DEFAULT, OBJECTIVES
from partitioner.plots.graph import plot_graph
from partitioner.plots.loads import plot_loads
from partitioner.plots.memory import plot_memory
from partitioner.plots.timeline import plot_timeline
from partitioner.schedule.simulation import LINKS, simulate
from partitioner.schedule.timeline import Timeline
from partitioner.workload.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
MICROBATCHES = 16


def add_plot_options(parser: argparse.ArgumentParser) -> None:
    """Add what ``partitioner plot`` takes beyond a workload."""
    parser.add_argument("plan", metavar="PLAN", help="a plan, or a split with fpgas and cpus")
    parser.add_argument("--what", choices=PICTURES, default="loads", help="the picture (loads)")
    parser.add_argument("--output", required=True, metavar="FILE", help=f"to write: {', '.join(FORMATS)}")
    parser.add_argument(
        "--schedule", metavar="NAME", help="of timeline and memory (the plan's, else 1f1b or inference)"
    )
    parser.add_argument(
        "--microbatches", type=int, metavar="N", help=f"of these (the plan's, else {MICROBATCHES})"
    )
    parser.add_argument("--links", choices=LINKS, default="host", help="the way of tensors in these")
    parser.add_argument("--dark", action="store_true", help="light on a dark background")


def run_plot(options: argparse.Namespace) -> None:
    """Draw the picture that the options ask for and write it to a file.

    Raises
    ------
    WorkloadError
        If a file is not sound.
    OptionError
        If the file's name ends in none of the formats, or options do not go together.
    BackendUnavailable
        If matplotlib is not installed.
    PartitionerError
        If the file cannot be written.
    """
    suffix = Path(options.output).suffix.lower()
    if suffix not in FORMATS:
        raise OptionError(f"--output {options.output}: must end in one of {', '.join(FORMATS)}")
    scheduled = options.what in ("timeline", "memory")
    if not scheduled and (options.schedule is not None or options.microbatches is not None):
        raise OptionError("--schedule and --microbatches are for --what timeline and memory")
    check_writable(options.output)
    write_bytes(options.output, _drawn(PICTURES[options.what], options, suffix))


def _drawn(picture: Callable[[argparse.Namespace], Axes], options: argparse.Namespace, suffix: str) -> bytes:
    """The picture as a file's content, the same for the same input."""
    try:
        import matplotlib
        from matplotlib import pyplot, style
    except ImportError as error:
        raise BackendUnavailable(f"pictures need matplotlib: {remedy('plots')}") from error
    pyplot.switch_backend("agg")
    content = io.BytesIO()
    styles = ["dark_background"] if options.dark else []
    with style.context([*styles, {"svg.hashsalt": "partitioner"}]):
        figure = picture(options).get_figure(root=True)
        assert isinstance(figure, matplotlib.figure.Figure)
        figure.savefig(content, format=suffix[1:], metadata=FORMATS[suffix])
        pyplot.close(figure)
    return content.getvalue()


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


def _read(options: argparse.Namespace) -> tuple[Workload, PlanRecord]:
    """The workload on the devices asked for, by default those of the plan, and the plan."""
    record = load_record(options.plan)
    workload = read_workload(options, record.hardware)
    return workload, resolved(record, workload.graph, workload.devices)


def _evaluated(workload: Workload, record: PlanRecord) -> Evaluation:
    """The loads of the plan as a pipeline, whatever it is made for."""
    given = evaluation_arguments(record, workload.graph, OBJECTIVES[DEFAULT].terms, {})
    return evaluate(workload.graph, workload.devices, record.placement, DEFAULT, **given)


def _simulated(options: argparse.Namespace) -> Timeline:
    workload, record = _read(options)
    given = simulation_arguments(options, record)
    if given["microbatches"] is None:
        given["microbatches"] = MICROBATCHES
    schedule = record.schedule if options.schedule is None else options.schedule
    return simulate(workload.graph, workload.devices, schedule=schedule, **given)
