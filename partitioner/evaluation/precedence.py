"""The order in which subgraphs wait for one another, and the rules that they break (paper, Appendix A.1)."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np

from partitioner.evaluation.shape import returns
from partitioner.evaluation.subgraphs import Units
from partitioner.workload.graph_validation import node_name


def waiting_graph(units: Units) -> nx.DiGraph[int]:
    """Return a graph with an edge to each unit from the units whose output or device it waits for."""
    waiting: nx.DiGraph[int] = nx.DiGraph()
    waiting.add_nodes_from(range(len(units.index)))
    edges = units.of[units.placed.graph.edges]
    between = edges[edges[:, 0] != edges[:, 1]]
    _, first = np.unique(between[:, 0] * len(units.index) + between[:, 1], return_index=True)
    waiting.add_edges_from(between[np.sort(first)].tolist())
    subgraphs = [unit for unit, index in enumerate(units.index) if index is not None]
    waiting.add_edges_from(
        (before, after)
        for before, after in pairwise(subgraphs)
        if units.device[before] == units.device[after]
    )
    return waiting


def subgraph_violations(units: Units, waiting: nx.DiGraph[int], limit: int) -> tuple[str, ...]:
    """Return a message for each broken rule on subgraphs: their number, contiguity, and cyclic waiting."""
    return (*_too_many(units, limit), *_torn(units), *_circle(units, waiting))


def _too_many(units: Units, limit: int) -> list[str]:
    counts: dict[tuple[int, bool], int] = {}
    beyond: dict[tuple[int, bool], int] = {}
    for unit, index in enumerate(units.index):
        if index is not None:
            where = int(units.device[unit]), bool(units.backward[unit])
            counts[where] = counts.get(where, 0) + 1
            if counts[where] == limit + 1:
                beyond[where] = unit
    names = units.placed.names
    return [
        f"{names[where[0]]} holds {counts[where]} {_pass(units, unit)} subgraphs, it may hold at most "
        f"{limit}: {_first_node(units, unit)} is in one more"
        for where, unit in beyond.items()
    ]


def _torn(units: Units) -> list[str]:
    graph = units.placed.graph
    first_cpu = sum(index is not None for index in units.index)
    found = returns(graph, np.minimum(units.of, first_cpu), np.ones(len(graph), dtype=bool))
    return [
        f"{_pass(units, unit)} subgraph {units.index[unit]} of {_device(units, unit)} is not contiguous: "
        f"a path leaves it and returns at {node_name(graph, node)}"
        for unit, node in sorted(found.items())
        if unit != first_cpu
    ]


def _circle(units: Units, waiting: nx.DiGraph[int]) -> list[str]:
    if nx.is_directed_acyclic_graph(waiting):
        return []
    first: dict[str, int] = {}
    for unit, _ in nx.find_cycle(waiting):
        first.setdefault(_device(units, unit), unit)
    parts = [f"{device} ({_first_node(units, unit)})" for device, unit in first.items()]
    return [f"subgraphs wait for one another: {', '.join(parts)}"]


def _device(units: Units, unit: int) -> str:
    return units.placed.names[int(units.device[unit])]


def _pass(units: Units, unit: int) -> str:
    return "backward" if units.backward[unit] else "forward"


def _first_node(units: Units, unit: int) -> str:
    return node_name(units.placed.graph, int(np.argmax(units.of == unit)))
