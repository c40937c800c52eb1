"""The command ``partitioner profile``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from partitioner.base.argument_types import is_count
from partitioner.base.errors import OptionError, shown
from partitioner.base.files import check_writable
from partitioner.base.units import MS_PER_SECOND
from partitioner.cli.argument import Section, flag, rate, value
from partitioner.cli.output import show
from partitioner.cli.progress import ProgressLine
from partitioner.cli.scripts import CALL_RULE, call_made_by
from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, percentage, render
from partitioner.integrations.torch.graphs.granularity import GRANULARITIES
from partitioner.integrations.torch.installed import require_torch
from partitioner.integrations.torch.profiling.layer_memory import layer_memory
from partitioner.integrations.torch.profiling.links import links
from partitioner.integrations.torch.profiling.options import CLOCKS
from partitioner.integrations.torch.profiling.profile import profile
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload

MEASURE = (
    Section(
        "",
        (
            value(
                "script",
                f"call this function in a file of Python code; it {CALL_RULE}",
                metavar="SCRIPT:FUNCTION",
            ),
            flag(
                "--training",
                "measure forward and backward pass (default: true)",
                default=True,
            ),
            flag(
                "--inference",
                "measure the forward pass only (default: forward and backward pass)",
                stands_for=False,
                dest="training",
            ),
            value(
                "--granularity",
                f"let a node be this: {', '.join(GRANULARITIES)} (default: block)",
                default="block",
                choices=GRANULARITIES,
            ),
            value(
                "--device",
                "run the model on this device, where the function must have put it: cpu, or cuda, with a "
                "colon and a number if there are several (default: cpu)",
                default="cpu",
                metavar="NAME",
            ),
            value(
                "--clock",
                "measure the CPU time of the calling thread, or the time that passes (default: thread)",
                default="thread",
                choices=CLOCKS,
            ),
            value(
                "--threads", "let torch use this many threads (default: 1)", type=int, default=1, metavar="N"
            ),
            value(
                "--beside",
                "let this many further processes run the model meanwhile, as a pipeline on one machine does "
                "(default: 0)",
                type=int,
                default=0,
                metavar="N",
            ),
            flag(
                "--accumulate",
                "add gradients to those of earlier microbatches, as a pipeline does (default: false)",
            ),
            value(
                "--bandwidth",
                "move this many bytes per second between devices (default: measured between two processes)",
                type=rate,
                metavar="BYTES",
            ),
            value(
                "--time-limit",
                "begin no round of the measurement after this many seconds (default: 30)",
                type=float,
                default=30.0,
                metavar="SECONDS",
            ),
        ),
    ),
    Section(
        "output",
        (
            value(
                "--rows",
                "print this many modules, the slowest first (default: 20)",
                type=int,
                default=20,
                metavar="N",
            ),
            value("--output", "write the workload to this file (default: none)", metavar="FILE"),
            value(
                "--cache",
                "read what was measured before from this folder, else write it there (default: none)",
                metavar="FOLDER",
            ),
        ),
    ),
)


def measure_model(options: argparse.Namespace) -> None:
    """Print the slowest modules of a model, and write it as a workload.

    Raises
    ------
    PartitionerError
        If torch is not installed, the function or an option breaks a rule, or a file cannot be written.
    """
    require_torch()
    check_writable(options.output)
    for name, count in (("--threads", options.threads), ("--rows", options.rows)):
        if not is_count(count):
            raise OptionError(f"{name} {shown(count)}: must be an integer of at least 1")
    call = call_made_by(options.script)
    loss = call.loss if options.training else None
    with ProgressLine() as line:
        import torch

        torch.set_num_threads(options.threads)
        bandwidth = options.bandwidth or _measured_bandwidth(line)
        workload = profile(
            call.model,
            call.args,
            call.kwargs,
            bandwidth=bandwidth,
            training=options.training,
            loss=loss,
            targets=call.targets if loss is not None else (),
            granularity=options.granularity,
            device=options.device,
            clock=options.clock,
            time_limit=options.time_limit,
            beside=options.beside,
            accumulate=bool(options.accumulate),
            cache=options.cache,
            on_progress=line.show,
        )
    _show(workload, bandwidth, options)


def _measured_bandwidth(line: ProgressLine) -> float:
    """Return the bytes per second between two processes."""
    slope = np.array(links(Devices.accelerated(2), on_progress=line.show).transfers.slope)[0, 1]
    if not slope:
        raise OptionError("--bandwidth: cannot be measured while other programs run: give it, or try again")
    return float(MS_PER_SECOND / slope)


def _show(workload: Workload, bandwidth: float, options: argparse.Namespace) -> None:
    graph = workload.graph
    memory = {layer: (each.permanent, each.temporary) for layer, each in layer_memory(graph).items()}
    lines = [
        render(module_table(graph, memory, options.rows)),
        f"transfers: {amount(bandwidth)}B per second, {'given' if options.bandwidth else 'measured'}",
        *(f"note: {note}" for note in graph.extras.top["notes"]),
    ]
    if options.output is None:
        show("\n".join(lines))
        return
    show("\n".join(lines), lambda: workload.save(options.output))
    print(f"written: {options.output}")


# The slowest modules of a graph as a table.

FIGURES = ("forward", "backward", "time %", "permanent", "temporary")


def module_table(
    graph: Graph, memory: Mapping[str, tuple[float, float]], most: int, width: int | None = None
) -> list[RenderableType]:
    """Return a table of the `most` slowest layers of a graph, and a line for all layers together.

    Parameters
    ----------
    graph
        The graph, whose times are those of its first kind of device.
    memory
        The permanent and the temporary memory of each layer.
    most
        The number of layers in the table.
    width
        Columns of text; None for those of the terminal.
    """
    time, total = graph.time[0], float(graph.time[0].sum())
    forward, backward = (
        np.bincount(graph.layer, np.where(which, time, 0.0), len(graph.layer_labels))
        for which in (~graph.backward, graph.backward)
    )
    table = figure_table(columns(width) >= WIDE, ("module",), FIGURES)
    both = forward + backward
    for code in np.argsort(-both, kind="stable")[:most]:
        label = str(graph.layer_labels[code])
        times = figure(forward[code]), figure(backward[code]), percentage(both[code] / (total or 1.0))
        table.add_row(*map(Text, (label, *times, *map(amount, memory[label]))))
    return [table, Text(_whole(graph, total, len(both)))]


def _whole(graph: Graph, total: float, layers: int) -> str:
    unit = graph.extras.time_unit
    parts = ("parameters", graph.parts[0]), ("kept activations", graph.parts[3])
    sizes = ", ".join(f"{amount(float(values.sum()))}B of {name}" for name, values in parts if values.any())
    return f"{layers} modules, {len(graph.ids)} nodes, {figure(total)} {unit} per sample; {sizes}"
