"""The options of the nodes of Piper's inputs as alternatives of the nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.formats.pass_shares import split_passes
from partitioner.formats.piper_nodes import NodeOption, read_option
from partitioner.formats.record import Record, listing
from partitioner.workload.alternatives import Alternative, Alternatives
from partitioner.workload.extras import TIME_UNITS
from partitioner.workload.graph import Graph
from partitioner.workload.layer import by_kind
from partitioner.workload.layer_graph import BACKWARD, time_per_byte

Ways = list[tuple[str, int, NodeOption]]
Bytes = Mapping[str, float]


def with_alternatives(
    graph: Graph, nodes: Sequence[Any], source: str, option: str, backward_share: float, time_unit: str
) -> Graph:
    """Return the graph of an input with all options but `option` of degree 1 as alternatives.

    Parameters
    ----------
    graph
        The graph of the layers at degree 1, with backward nodes or without.
    nodes, source
        The parsed nodes of the file, and its name for messages.
    option, backward_share, time_unit
        As in :func:`partitioner.formats.piper.piper_graph`.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    ways = {str(data["id"]): list(_ways(data, flaws)) for data in nodes}
    if flaws:
        raise WorkloadError(list(dict.fromkeys(flaws)), source)
    sent = _counted(graph, ways, option)
    found: dict[str, list[Alternative]] = {}
    mirrored, per_byte = bool(graph.backward.any()), time_per_byte(graph.extras.top["bandwidth"])
    for node, options in ways.items():
        for name, degree, given in options:
            if (name, degree) == (option, 1):
                continue
            title = name if degree == 1 else f"{name} x{degree}"
            time = split_passes(given.time * TIME_UNITS[time_unit], mirrored, backward_share)
            extra = _more(node, given, sent, per_byte)
            for end, way in _by_node(node, title, degree, given, time, extra):
                found.setdefault(end, []).append(way)
    try:
        return replace(graph, alternatives=Alternatives(found))
    except WorkloadError as error:
        raise type(error)(error.flaws, source) from error


def _ways(data: Any, flaws: list[Flaw]) -> Iterator[tuple[str, int, NodeOption]]:
    """Yield id, degree and figures of every option of a node."""
    where = f"node {data['id']}: TMPCs"
    degrees = Record(data["TMPCs"], where, flaws)
    for degree in degrees.data:
        if not (degree.isascii() and degree.isdigit()) or str(int(degree)) != degree or degree == "0":
            degrees.note("", repr(degree), "must be a degree, a whole number of at least 1")
            continue
        for one in degrees.take(degree, listing, []):
            record = Record(one, f"{where}: {degree}", flaws)
            name = record.take("id", str, "")
            yield name, int(degree), read_option("", record)


def _counted(graph: Graph, ways: Mapping[str, Ways], option: str) -> dict[tuple[str, str], float]:
    """Return for every edge of the forward pass the bytes that its cost counts for the node's own option."""
    own = {
        node: next(given for name, degree, given in options if (name, degree) == (option, 1))
        for node, options in ways.items()
    }
    edges = graph.edges[~graph.backward[graph.edges].any(axis=1)].tolist()
    pairs = [(str(graph.ids[u]), str(graph.ids[v])) for u, v in edges]
    return {(u, v): max(own[v].sync_in.get(int(u), 0.0), own[u].sync_out.get(int(v), 0.0)) for u, v in pairs}


def _more(
    node: str, given: NodeOption, sent: Mapping[tuple[str, str], float], per_byte: float
) -> tuple[Bytes, Bytes]:
    """Return the time that the option takes beyond the cost of the edges, by producer and by consumer."""
    into = {u: given.sync_in.get(int(u), 0.0) - known for (u, v), known in sent.items() if v == node}
    out = {v: given.sync_out.get(int(v), 0.0) - known for (u, v), known in sent.items() if u == node}
    return tuple({end: x * per_byte for end, x in side.items() if x > 0} for side in (into, out))  # type: ignore[return-value]


def _by_node(
    node: str, name: str, degree: int, given: NodeOption, time: Any, extra: tuple[Bytes, Bytes]
) -> Iterator[tuple[str, Alternative]]:
    """Yield the alternative of the forward node, and for training that of the backward node."""
    forward, backward = time
    weights = min(given.parameters, given.once)
    rest, (into, out) = given.once - weights, extra
    first = Alternative(
        name, by_kind(forward), degree, parameters=weights, inputs=dict(into), outputs=dict(out)
    )
    if backward is None:
        yield node, replace(first, size=rest)
        return
    yield node, replace(first, activations=given.each)
    inputs, outputs = ({f"{end}{BACKWARD}": x for end, x in side.items()} for side in (out, into))
    yield (
        f"{node}{BACKWARD}",
        Alternative(name, by_kind(backward), degree, optimizer=rest, inputs=inputs, outputs=outputs),
    )
