"""Reading of Piper's inputs (msr-fiddle/piper).

A node has, for every tensor-parallel degree, options with the time of a sample (both passes), the bytes of
its parameters, the memory that each sample in flight takes (``memoryUsageA``) and that counts once
(``memoryUsageB``), and bytes that are sent with its edges in addition (``syncTimeFw``, ``syncTimeBw``). All
are figures of one device. An edge has the bytes of its activation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.formats.devices_in_place import changed, one_accelerator
from partitioner.formats.pass_shares import BACKWARD_SHARE, check_passes, split_passes
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    amount,
    filled,
    identifier,
    listing,
    mapping,
    text,
    whole,
)
from partitioner.workload.alternatives import Alternative, Alternatives
from partitioner.workload.devices import Devices
from partitioner.workload.extras import TIME_UNITS, Extras
from partitioner.workload.graph import Graph
from partitioner.workload.layer import Layer, by_kind
from partitioner.workload.layer_graph import BACKWARD, time_per_byte

# The nodes and edges of Piper's inputs, for one tensor-parallel degree and one option of each node.

EDGE_FIELDS = ("sourceId", "destId", "communicationCost")
OPTION_FIELDS = (
    *("id", "timePerSample", "parameterSize", "memoryUsageA", "memoryUsageB"),
    *("syncTimeFw", "syncTimeBw"),
)
Sizes = dict[tuple[int, int], float]


@dataclass(frozen=True)
class NodeOption:
    """What a node takes under an option: time, bytes of parameters, memory for each sample and once.

    `sync_in` and `sync_out` are bytes that are sent in addition, by producer and by consumer.
    """

    title: str
    time: float
    parameters: float
    each: float
    once: float
    sync_in: Mapping[int, float]
    sync_out: Mapping[int, float]


def read_nodes(records: Sequence[Any], degree: str, option: str, flaws: list[Flaw]) -> dict[int, NodeOption]:
    """Return the chosen option of every node by its id; add every flaw to `flaws`."""
    found: dict[int, NodeOption] = {}
    for place, data in enumerate(records):
        given = data.get("id") if isinstance(data, dict) else None
        where = f"node {shown(given)}" if isinstance(given, int) else f"nodes[{place}]"
        record = Record(data, where, flaws)
        node = record.take("id", _id, -1 - place)
        title = record.take("name", text, str(node), False)
        degrees = Record(record.take("TMPCs", mapping, {}), f"{where}: TMPCs", flaws)
        chosen = _chosen(degrees, degree, option) if degrees.data else None
        if node in found:
            record.note("id", shown(node), "is given to more than one node")
        if chosen is not None:
            found[node] = read_option(title, Record(chosen, f"{where}: TMPCs: {degree}", flaws))
        elif "TMPCs" in record.data and not degrees.data:
            degrees.note("", degree, "has no options for this degree; there are none")
    return found


def _chosen(degrees: Record, degree: str, option: str) -> dict[str, Any] | None:
    """Return the option of that id for a degree; None if there is none, which adds a flaw."""
    if degree not in degrees.data:
        degrees.note("", degree, f"has no options for this degree; there are {', '.join(degrees.data)}")
        return None
    listed = [one for one in degrees.take(degree, listing, []) if isinstance(one, dict)]
    for one in listed:
        if one.get("id") == option:
            return one
    known = ", ".join(shown(one.get("id")) for one in listed) or "none"
    degrees.note(degree, shown(option), f"is not the id of an option; there are {known}")
    return None


def read_option(title: str, record: Record) -> NodeOption:
    """Return an option of a node with that title."""
    record.others(OPTION_FIELDS)
    time, parameters, each, once = (record.take(field, amount, 0.0) for field in OPTION_FIELDS[1:5])
    sync_in, sync_out = (record.take(field, _by_id, {}, False) for field in OPTION_FIELDS[5:])
    return NodeOption(title, time, parameters, each, once, sync_in, sync_out)


def read_edges(records: Sequence[Any], nodes: Mapping[int, NodeOption], flaws: list[Flaw]) -> Sizes:
    """Return the bytes of every edge; an unknown end adds a flaw, unless nodes have some already."""
    found: Sizes = {}
    sound = not flaws
    for place, data in enumerate(records):
        record = Record(data, f"edges[{place}]", flaws)
        record.others(EDGE_FIELDS)
        ends = record.take("sourceId", _id, None), record.take("destId", _id, None)
        nbytes = record.take("communicationCost", amount, 0.0)
        source, target = ends
        if source is None or target is None:
            continue
        unknown = [end for end in ends if end not in nodes]
        if unknown and sound:
            record.note("", shown(unknown[0]), "is not the id of a node")
        elif ends in found or source == target:
            record.note("", f"{source} -> {target}", "must join two different nodes, and no others twice")
        elif not unknown:
            found[source, target] = nbytes
    return found


def _id(value: Any) -> int:
    if isinstance(value, str) or identifier(value) != value:
        raise RuleBrokenError("must be an integer")
    return int(value)


def _by_id(value: Any) -> dict[int, float]:
    found = {}
    for name, nbytes in mapping(value).items():
        if not (name.isascii() and name.isdigit() and len(name) < 19):
            raise RuleBrokenError("must be an object of bytes by the id of a node")
        found[int(name)] = amount(nbytes)
    return found


TOP_FIELDS = ("maxDevices", "maxMemoryPerDevice", "bandwidth", "mbsInBatch", "maxBatchSize", "nodes", "edges")


@dataclass(frozen=True)
class PiperInput:
    """The content of a file for one degree: memory of a device, numbers, nodes by id, bytes of the edges."""

    devices: int
    memory: float
    bandwidth: float
    microbatches: int
    nodes: Mapping[int, NodeOption]
    edges: Sizes


def piper_graph(
    content: Any,
    source: str,
    *,
    degree: int = 1,
    option: str = "vanilla",
    bandwidth: float | None = None,
    time_unit: str = "s",
    training: bool = True,
    backward_share: float = BACKWARD_SHARE,
    alternatives: bool = True,
) -> tuple[Graph, Devices]:
    """Return the layer graph of an input at one tensor-parallel degree, and its devices.

    A device is a group of `degree` of the file's devices.

    Parameters
    ----------
    content, source
        The parsed JSON, and the file's name for messages.
    degree, option
        The tensor-parallel degree of every node, and the id of the option of every node.
    bandwidth
        Bytes per second; None for that of the file.
    time_unit
        The unit of the file's times, ``"s"``, ``"ms"`` or ``"us"``: the format does not say it.
    training, backward_share
        Whether to add backward nodes, and the part of a node's time that the backward pass takes.
    alternatives
        Whether a graph of degree 1 has all other options, of every degree, as alternatives of its nodes. One
        of degree t > 1 has the name ``"<id> x<t>"``.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    OptionError
        If an option is not in its range.
    """
    check_passes(training, backward_share)
    if not is_count(degree):
        raise OptionError(f"degree = {shown(degree)}: must be an integer of at least 1")
    if not isinstance(time_unit, str) or time_unit not in TIME_UNITS:
        raise OptionError(f"time_unit = {shown(time_unit)}: must be one of {', '.join(TIME_UNITS)}")
    found = _read(content, source, degree, option)
    groups = found.devices // degree
    if not groups:
        raise OptionError(f"degree = {degree}: must be at most the {found.devices} devices of the file")
    layers = [
        _layer(node, found, TIME_UNITS[time_unit], training, backward_share) for node in _order(found, source)
    ]
    try:
        graph = Graph.chain(
            layers,
            bandwidth=found.bandwidth if bandwidth is None else bandwidth,
            training=training,
            microbatches=found.microbatches,
        )
    except WorkloadError as error:
        raise type(error)(error.flaws, source) from error
    given = {"backwardShare": backward_share, "degree": degree, "option": option}
    titles = [found.nodes[int(layer.name)].title for layer in layers] * (2 if training else 1)
    extras = Extras({**graph.extras.top, **given}, graph.extras.nodes)
    graph = replace(graph, names=tuple(titles), extras=extras)
    if alternatives and degree == 1:
        graph = with_alternatives(graph, content["nodes"], source, option, backward_share, time_unit)
    return graph, changed(one_accelerator(graph, found.memory), groups)


def _read(content: Any, source: str, degree: int, option: str) -> PiperInput:
    flaws: list[Flaw] = []
    top = Record(content, "file", flaws)
    top.others(TOP_FIELDS)
    batch = "maxBatchSize" if "maxBatchSize" in top.data else "mbsInBatch"
    nodes = read_nodes(top.take("nodes", filled, []), str(degree), option, flaws)
    found = PiperInput(
        devices=top.take("maxDevices", _count, 1),
        memory=top.take("maxMemoryPerDevice", amount, 0.0),
        bandwidth=top.take("bandwidth", amount, 0.0),
        microbatches=top.take(batch, _count, 1),
        nodes=nodes,
        edges=read_edges(top.take("edges", listing, []), nodes, flaws),
    )
    if flaws:
        raise WorkloadError(list(dict.fromkeys(flaws)), source)
    return found


def _order(found: PiperInput, source: str) -> list[int]:
    """Return the ids in an order in which producers come first."""
    graph: nx.DiGraph[int] = nx.DiGraph(list(found.edges))
    graph.add_nodes_from(found.nodes)
    try:
        return list(nx.lexicographical_topological_sort(graph))
    except nx.NetworkXUnfeasible:
        cycle = " -> ".join(str(u) for u, _ in nx.find_cycle(graph))
        rule = "is a cycle; the graph must have none"
        raise WorkloadError([Flaw("edges", "", cycle, rule)], source) from None


def _layer(node: int, found: PiperInput, unit: float, training: bool, share: float) -> Layer:
    """Return the layer of a node; an edge carries the larger of what its two ends say."""
    chosen = found.nodes[node]
    forward, backward = split_passes(chosen.time * unit, training, share)
    inputs = {
        str(source): nbytes
        + max(chosen.sync_in.get(source, 0.0), found.nodes[source].sync_out.get(node, 0.0))
        for (source, target), nbytes in found.edges.items()
        if target == node
    }
    weights = min(chosen.parameters, chosen.once)
    rest = chosen.once - weights
    return Layer(
        str(node),
        forward,
        backward,
        parameters=weights,
        activations=chosen.each,
        inputs=inputs,
        gradients=0.0,
        optimizer=rest,
        size=0.0 if training else rest,
    )


def _count(value: Any) -> int:
    if not 1 <= whole(value) <= 10**9:
        raise RuleBrokenError("must be a whole number from 1 to 1,000,000,000")
    return whole(value)


# The options of the nodes of Piper's inputs as alternatives of the nodes of a graph.

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
