"""The operators of each node of a graph that `graph_of` made, and their devices under a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.chosen import refuse_alternatives
from partitioner.evaluation.placed import node_flaws
from partitioner.evaluation.solution import PlanRecord, Solution
from partitioner.workload.graph import Graph

OPERATORS = "operators"
RULE = "they are passes of one operator, or use memory that one of them writes into"


def node_operators(graph: Graph) -> list[list[str]]:
    """Return the names of the operators of each node, as the exported program has them.

    Raises
    ------
    WorkloadError
        If the graph does not name operators.
    """
    found = [node.get(OPERATORS) for node in graph.extras.nodes]
    if len(found) != len(graph) or not all(found):
        rule = f"must be made by graph_of: its nodes have no field {OPERATORS}"
        raise WorkloadError([Flaw("graph", "", "", rule)])
    return [list(names) for names in found if names]


def forward_operators(graph: Graph) -> dict[Any, list[str]]:
    """Return the operators of each forward node."""
    nodes = zip(graph.ids, node_operators(graph), graph.backward.tolist(), strict=True)
    return {node: names for node, names, backward in nodes if not backward}


def operator_devices(graph: Graph, solution: Solution) -> dict[str, str]:
    """Return the device of each operator, which runs both passes of it.

    Raises
    ------
    WorkloadError
        If the plan is of another graph, has replicas or alternatives, or puts nodes of one colour class
        on different devices; or if the graph does not name operators.
    """
    if isinstance(solution, PlanRecord) and solution.hardware is not None:
        solution.check_graph(graph, solution.hardware, strict=False)
    refuse_alternatives(solution.alternatives, "a run in torch")
    operators = node_operators(graph)
    flaws = node_flaws(graph, solution.placement) or [*_torn_classes(graph, solution.placement)]
    if solution.replicas:
        flaws.append(
            Flaw("replicas", "", shown(dict(solution.replicas)), "must be none: each operator runs once")
        )
    if flaws:
        raise WorkloadError(flaws)
    homes = zip(graph.ids, operators, strict=True)
    return {name: solution.placement[node] for node, names in homes for name in names}


def _torn_classes(graph: Graph, placement: Mapping[Any, str]) -> Iterator[Flaw]:
    """Yield a flaw for each node that is on another device than the first node of its colour class."""
    first: dict[int, Any] = {}
    for node, color in zip(graph.ids, graph.color.tolist(), strict=True):
        other = first.setdefault(color, node) if color >= 0 else node
        if placement[node] != placement[other]:
            rule = f"must be on {placement[other]} with node {shown(other)}: {RULE}"
            yield Flaw(f"placement of node {shown(node)}", "", placement[node], rule)
