"""The entries of a plan file by node: its device, its subgraph, its position in the order of execution."""

from __future__ import annotations

from collections.abc import Iterable

from partitioner.base.errors import Flaw, shown
from partitioner.formats.record import Record, mapping, text, texts, whole
from partitioner.formats.schedule import identifiers
from partitioner.results.plan import node_id
from partitioner.workload.graph import Graph, NodeId


def known(graph: Graph, nodes: Iterable[NodeId], where: str, flaws: list[Flaw]) -> dict[str, NodeId]:
    """Return the graph's ids by their texts; add a flaw for each of `nodes` that the graph does not have."""
    by_text = {str(node): node for node in graph.ids}
    flaws += [
        Flaw(f"{where}node {shown(node)}", "", "", "is not the id of a node of the workload")
        for node in nodes
        if str(node) not in by_text
    ]
    return by_text


def read_devices(top: Record) -> dict[NodeId, str]:
    """Return the device of every node that a plan places."""
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take("placement", mapping, {})
    entries = Record(given, "placement", top.flaws)
    return {node_id(node, text_ids): entries.take(node, text, "") for node in given}


def read_numbers(top: Record, name: str) -> dict[NodeId, int] | None:
    """Return the number that a field has for every node; None if the plan does not have the field."""
    if name not in top.data:
        return None
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take(name, mapping, {})
    entries = Record(given, name, top.flaws)
    return {node_id(node, text_ids): entries.take(node, whole, 0) for node in given}


def read_chosen(top: Record) -> dict[NodeId, str]:
    """Return the name of the alternative of each node that has one."""
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take("alternatives", mapping, {}, required=False)
    entries = Record(given, "alternatives", top.flaws)
    return {node_id(node, text_ids): entries.take(node, text, "") for node in given}


def read_execution_order(top: Record) -> tuple[NodeId, ...] | None:
    """Return the ids in the order of execution, numbers and texts as they are written; None without one."""
    found = top.take("execution_order", identifiers, None, required=False)
    return None if found is None else tuple(found)
