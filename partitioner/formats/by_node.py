"""What a plan file says of every node: its device, its subgraph, its place in the order of execution."""

from __future__ import annotations

import os
from collections.abc import Iterable

from partitioner.errors import Flaw, WorkloadError, shown
from partitioner.files import path_name, read_json
from partitioner.formats.record import Record, mapping, text, texts, whole
from partitioner.formats.schedule import identifiers
from partitioner.graph import Graph, NodeId
from partitioner.plan import node_id


def load_subgraphs(path: str | os.PathLike[str], graph: Graph) -> dict[NodeId, int] | None:
    """Read the subgraphs of a plan for latency, by the ids of a graph's nodes; None if the file has none.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = read_subgraphs(Record(read_json(path), "file", flaws))
    by_text = known(graph, found or (), "subgraphs, ", flaws)
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return None if found is None else {by_text[str(node)]: index for node, index in found.items()}


def load_execution_order(path: str | os.PathLike[str], graph: Graph) -> tuple[NodeId, ...] | None:
    """Read the order in which a plan's devices run their nodes, by a graph's ids; None if the file has none.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = read_execution_order(Record(read_json(path), "file", flaws))
    by_text = known(graph, found or (), "execution_order, ", flaws)
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return None if found is None else tuple(by_text[str(node)] for node in found)


def known(graph: Graph, nodes: Iterable[NodeId], where: str, flaws: list[Flaw]) -> dict[str, NodeId]:
    """The graph's ids by their texts; nodes that it does not have are noted as flaws."""
    by_text = {str(node): node for node in graph.ids}
    flaws += [
        Flaw(f"{where}node {shown(node)}", "", "", "is not the id of a node of the workload")
        for node in nodes
        if str(node) not in by_text
    ]
    return by_text


def read_devices(top: Record) -> dict[NodeId, str]:
    """The device of every node that a plan places."""
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take("placement", mapping, {})
    entries = Record(given, "placement", top.flaws)
    return {node_id(node, text_ids): entries.take(node, text, "") for node in given}


def read_subgraphs(top: Record) -> dict[NodeId, int] | None:
    """The index of every node's subgraph; None if the plan has none."""
    if "subgraphs" not in top.data:
        return None
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take("subgraphs", mapping, {})
    entries = Record(given, "subgraphs", top.flaws)
    return {node_id(node, text_ids): entries.take(node, whole, 0) for node in given}


def read_execution_order(top: Record) -> tuple[NodeId, ...] | None:
    """The ids as they are written: JSON tells numbers from texts."""
    found = top.take("execution_order", identifiers, None, required=False)
    return None if found is None else tuple(found)
