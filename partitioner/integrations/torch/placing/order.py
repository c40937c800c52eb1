"""An order of the operators: that of the plan, as far as what they read allows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import networkx as nx
import torch

from partitioner.integrations.torch.placing.writes import Writes


def reorder(graph: Any, rank: Mapping[Any, int]) -> None:
    """Put the calls of a graph into the order of their ranks, each after what it depends on.

    Operators on memory that one of them writes into keep their order, and so do those that draw at random, so
    that they draw the same numbers.
    """
    calls = list(rank)
    position = {node: i for i, node in enumerate(calls)}
    depends: nx.DiGraph[Any] = nx.DiGraph()
    depends.add_nodes_from(calls)
    depends.add_edges_from(
        (read, node) for node in calls for read in node.all_input_nodes if read in position
    )
    for kept in _kept(graph, calls):
        depends.add_edges_from(pairwise(kept))
    found = nx.lexicographical_topological_sort(depends, key=lambda node: (rank[node], position[node]))
    _moved_behind(calls[0].prev, list(found))


def _kept(graph: Any, calls: Iterable[Any]) -> list[list[Any]]:
    """Return the groups of calls that keep their order."""
    writes, groups = Writes(graph), dict[Any, list[Any]]()
    for node in calls:
        for key in writes.written(node):
            groups.setdefault(key, []).append(node)
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            groups.setdefault("random", []).append(node)
    return list(groups.values())


def _moved_behind(anchor: Any, nodes: Iterable[Any]) -> None:
    for node in nodes:
        anchor.append(node)
        anchor = node
