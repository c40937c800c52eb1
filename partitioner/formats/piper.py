"""Reading of Piper's inputs (msr-fiddle/piper).

A node has, for every tensor-parallel degree, options with the time of a sample (both passes), the bytes of
its parameters, the memory that each sample in flight takes (``memoryUsageA``) and that counts once
(``memoryUsageB``), and bytes that are sent with its edges in addition (``syncTimeFw``, ``syncTimeBw``). All
are figures of one device. An edge has the bytes of its activation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.formats.devices_in_place import changed, one_accelerator
from partitioner.formats.pass_shares import BACKWARD_SHARE, check_passes, split_passes
from partitioner.formats.piper_alternatives import with_alternatives
from partitioner.formats.piper_nodes import NodeOption, Sizes, read_edges, read_nodes
from partitioner.formats.record import Record, RuleBrokenError, amount, filled, listing, whole
from partitioner.workload.devices import Devices
from partitioner.workload.extras import TIME_UNITS, Extras
from partitioner.workload.graph import Graph
from partitioner.workload.layer import Layer

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
