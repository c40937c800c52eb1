"""The operators of each node of a graph that :func:`partitioner.integrations.torch.graph_of` made."""

from __future__ import annotations

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.workload.graph import Graph

OPERATORS = "operators"


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
