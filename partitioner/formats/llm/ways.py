"""Further ways to run the layers of a config: on several devices, or computed again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from partitioner.base.argument_types import require_items
from partitioner.base.errors import OptionError, nearest, shown
from partitioner.formats.llm.layout_options import DIVISION, LayoutOptions, parallelism_of
from partitioner.workload.alternatives import Alternative, Alternatives
from partitioner.workload.graph import Graph

Build = Callable[[LayoutOptions], Graph]


def checked_ways(ways: Sequence[LayoutOptions] | None, layout: LayoutOptions) -> list[LayoutOptions]:
    """Return the layouts that are alternatives to a layout, each with the options that it does not change.

    Raises
    ------
    OptionError
        If a way is no layout or is given twice, or the first layout is not that of one device.
    """
    found = [] if ways is None else require_items("ways", ways)
    for way in found:
        if not isinstance(way, Mapping) or not way:
            raise OptionError(f"ways = {shown(way)}: must be a mapping with options of a layout")
        for name in way:
            if name not in DIVISION:
                rule = f"must be one of {', '.join(DIVISION)}{nearest(name, DIVISION)}"
                raise OptionError(f"ways: {shown(name)}: {rule}")
    titles = [title_of(way) for way in found]
    if len(set(titles)) < len(titles):
        raise OptionError(f"ways = {shown(titles)}: must not have a way twice")
    if found and parallelism_of(layout).devices > 1:
        raise OptionError(
            "ways: need tensor = 1 and context_parallel = 1 outside of them, a layout of one device"
        )
    return [{**layout, **way} for way in found]


def title_of(way: Mapping[str, Any]) -> str:
    """Return the name of a way: its options and their values.

    Examples
    --------
    >>> title_of({"tensor": 4, "sequence_parallel": True, "recompute": "full"})
    'tensor 4, sequence_parallel, recompute full'
    """
    return ", ".join(name if value is True else f"{name} {value}" for name, value in way.items())


def with_ways(
    graph: Graph, ways: Sequence[LayoutOptions] | None, layouts: Sequence[LayoutOptions], build: Build
) -> Graph:
    """Return a graph whose nodes can also run as those of other layouts of the same config.

    All figures of an alternative are those of one of its devices. A tensor between stages costs what the
    graph's edges say, whatever the way: all of it is sent.

    Parameters
    ----------
    graph
        The graph of the layout of one device.
    ways, layouts
        What each way changes, and its whole layout.
    build
        The graph of a layout.
    """
    if not ways:
        return graph
    found: dict[Any, list[Alternative]] = {node: [] for node in graph.ids}
    for way, layout in zip(ways, layouts, strict=True):
        other, degree = build(layout), parallelism_of(layout).devices
        for node, alternative in zip(graph.ids, _nodes(other, title_of(way), degree), strict=True):
            found[node].append(alternative)
    return replace(graph, alternatives=Alternatives(found))


def _nodes(graph: Graph, title: str, degree: int) -> list[Alternative]:
    """Return every node of a graph as an alternative."""
    times, (parameters, gradients, optimizer, activations, workspace) = graph.time.T, graph.parts
    return [
        Alternative(
            title,
            dict(zip(graph.kinds, times[i].tolist(), strict=True)),
            degree,
            size=float(graph.size[i]),
            parameters=float(parameters[i]),
            gradients=float(gradients[i]),
            optimizer=float(optimizer[i]),
            activations=float(activations[i]),
            workspace=float(workspace[i]),
        )
        for i in range(len(graph))
    ]
