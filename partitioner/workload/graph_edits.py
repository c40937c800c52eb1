"""What changes of a graph share: bytes in a unit of its times, and colour classes that are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from partitioner.base.errors import OptionError
from partitioner.base.units import MS_PER_SECOND
from partitioner.workload.extras import TIME_UNITS
from partitioner.workload.graph import Graph, Ints


def bytes_per_time(graph: Graph, words: str) -> float:
    """Return the bytes that an edge carries in a unit of the graph's times.

    Parameters
    ----------
    graph
        The graph, whose file says its bandwidth and the unit of its times.
    words
        The option that needs them and its value, for the message.

    Raises
    ------
    OptionError
        If it does not say them.

    Examples
    --------
    >>> from partitioner.workload.layer import Layer
    >>> bytes_per_time(Graph.chain([Layer("a", 1.0, output=1e6)], bandwidth=1e9), "zero = 3")
    1000000.0
    """
    top = graph.extras.top
    bandwidth, unit = top.get("bandwidth"), graph.extras.time_unit
    if not isinstance(bandwidth, int | float) or not bandwidth or not unit:
        raise OptionError(f"{words}: needs the graph's bandwidth in bytes per second and its timeUnit")
    return float(bandwidth) * TIME_UNITS[unit] / MS_PER_SECOND


def with_classes_joined(graph: Graph, together: Sequence[Ints]) -> Graph:
    """Return the graph whose classes are joined where nodes must be together in addition.

    Parameters
    ----------
    graph
        The graph.
    together
        The nodes of each group that must share a device, with those of their classes.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 3}, color=["a", "a", None])
    >>> with_classes_joined(graph, [np.array([1, 2])]).color.tolist()
    [0, 0, 0]
    """
    classes: nx.Graph[Any] = nx.Graph()
    classes.add_nodes_from(range(len(graph)))
    same = [np.flatnonzero(graph.color == color) for color in range(len(graph.color_labels))]
    for nodes in [*same, *together]:
        nx.add_path(classes, nodes.tolist())
    color = np.full(len(graph), -1)
    groups = [sorted(nodes) for nodes in nx.connected_components(classes) if len(nodes) > 1]
    for number, group in enumerate(sorted(groups)):
        color[group] = number
    return replace(graph, color=color, color_labels=tuple(range(len(groups))))
