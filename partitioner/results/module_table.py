"""The slowest modules of a graph as a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, percentage
from partitioner.workload.graph import Graph

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
