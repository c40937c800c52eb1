"""The unit of the times in a workload file that does not say one."""

from __future__ import annotations

from dataclasses import replace

from partitioner.base.argument_types import check_word
from partitioner.base.errors import OptionError, shown
from partitioner.workload.extras import TIME_UNITS, Extras
from partitioner.workload.graph import Graph


def with_time_unit(graph: Graph, unit: str | None) -> Graph:
    """Return a graph whose times are in a unit; the graph itself for None.

    Raises
    ------
    OptionError
        If the unit is unknown, or the file of the graph says another one.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0]})
    >>> with_time_unit(graph, "ms").extras.time_unit
    'ms'
    """
    if unit is None:
        return graph
    check_word("time_unit", unit, tuple(TIME_UNITS))
    stated = graph.extras.time_unit
    if stated not in ("", unit):
        raise OptionError(f"time_unit = {shown(unit)}: the file says {shown(stated)}")
    extras = Extras({**graph.extras.top, "timeUnit": unit}, graph.extras.nodes, graph.extras.edges)
    return replace(graph, extras=extras)
