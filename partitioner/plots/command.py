"""``partitioner plot``: pictures into files."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from partitioner.distribution import remedy
from partitioner.errors import BackendUnavailable, OptionError
from partitioner.evaluate import evaluate
from partitioner.evaluation.verdict import Evaluation
from partitioner.files import check_writable, read_json, write_bytes
from partitioner.formats.placement import load_placement
from partitioner.formats.plan import load_plan
from partitioner.formats.replicas import load_order, load_replicas
from partitioner.graph import NodeId
from partitioner.inputs import read_workload
from partitioner.plots.graph import plot_graph
from partitioner.plots.loads import plot_loads
from partitioner.plots.memory import plot_memory
from partitioner.plots.timeline import plot_timeline
from partitioner.schedule.simulation import LINKS, simulate
from partitioner.schedule.timeline import Timeline
from partitioner.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
MICROBATCHES = 16


def add_plot_options(parser: argparse.ArgumentParser) -> None:
    """Add what ``partitioner plot`` takes beyond a workload."""
    parser.add_argument("plan", metavar="PLAN", help="a plan, or a split with fpgas and cpus")
    parser.add_argument("--what", choices=PICTURES, default="loads", help="the picture (loads)")
    parser.add_argument("--output", required=True, metavar="FILE", help=f"to write: {', '.join(FORMATS)}")
    parser.add_argument("--schedule", metavar="NAME", help="of timeline and memory (1f1b, or inference)")
    parser.add_argument("--microbatches", type=int, metavar="N", help=f"of these ({MICROBATCHES})")
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
    workload = read_workload(options)
    return plot_loads(_evaluated(options, workload)[1], bound=_bound(options.plan, workload))


def _graph(options: argparse.Namespace) -> Axes:
    workload = read_workload(options)
    placement, evaluation = _evaluated(options, workload)
    return plot_graph(workload.graph, placement, loads=evaluation.loads)


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


def _evaluated(options: argparse.Namespace, workload: Workload) -> tuple[dict[NodeId, str], Evaluation]:
    placement = load_placement(options.plan, workload.graph, workload.devices)
    replicas = load_replicas(options.plan) or None
    order = load_order(options.plan) if replicas else None
    found = evaluate(workload.graph, workload.devices, placement, replicas=replicas, order=order)
    return placement, found


def _simulated(options: argparse.Namespace) -> Timeline:
    workload = read_workload(options)
    usual = "1f1b" if workload.graph.backward.any() else "inference"
    return simulate(
        workload.graph,
        workload.devices,
        load_placement(options.plan, workload.graph, workload.devices),
        usual if options.schedule is None else options.schedule,
        MICROBATCHES if options.microbatches is None else options.microbatches,
        replicas=load_replicas(options.plan) or None,
        order=load_order(options.plan),
        links=options.links,
    )


def _bound(path: str | os.PathLike[str], workload: Workload) -> float | None:
    """The bound that a plan file proves for the loads of this workload; None if it has none."""
    if "bound" not in read_json(path):
        return None
    plan = load_plan(path)
    proven = plan.objective == "throughput" and plan.workload_sha256 == workload.sha256
    return plan.bound if proven else None
