"""The paper's PipeDream baseline (Section 6): a planner for paths, for which branchings are single nodes.

Branchings: the parts of a graph that a planner for linear graphs must keep on one device.
"""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.exact import solve_exact
from partitioner.methods.dp.forms import merged, split_blocks
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.problem.arrays import Ints, Rows
from partitioner.problem.variants import ChainProblem


def branchings(successors: Rows, idle: NDArray[np.bool_]) -> Ints:
    """Return the block of every supernode, where every branching is contracted to one block.

    A branching is a biconnected component of more than one edge of the undirected graph. Its block holds
    all nodes from which its edges lead; if it ends in one node, the next block begins with that node. The
    tensors of :func:`side_layers` make no branching. Blocks that would then form a cycle become one.

    Parameters
    ----------
    successors
        The precedence of `n` supernodes.
    idle
        Shape (n,): whether the supernode takes no time on any device.

    Returns
    -------
    Ints
        Shape (n,): the block of every supernode; blocks are numbered in a topological order.

    Examples
    --------
    The diamond of 1, 2, 3 and 4 between two nodes; 4, where it ends, is not part of its block.

    >>> from partitioner.problem.arrays import rows_of
    >>> edges = np.array([(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)])
    >>> branchings(rows_of(edges[:, 0], edges[:, 1], 6), np.zeros(6, dtype=bool)).tolist()
    [0, 1, 1, 1, 2, 3]
    """
    graph = _digraph(successors)
    aside = side_layers(graph, idle)
    drawn = nx.Graph((u, v) for u, v in graph.edges if u not in aside)
    together = [_tails(graph, edges) for edges in nx.biconnected_component_edges(drawn)]
    for first, *others in together:
        graph.add_edges_from((first, other) for other in others)
        graph.add_edges_from((other, first) for other in others)
    return _numbered_components(graph)


def side_layers(graph: nx.DiGraph[int], idle: NDArray[np.bool_]) -> set[int]:
    """Return the layers that take no time and only pass a tensor to several layers of the main path.

    Either they read nothing, as inputs and masks do, or each of their readers also reads from another layer
    that takes time or has a single reader: an example is the context that an attention passes to all layers
    of a decoder.
    """
    shared = {v for v in graph if idle[v] and graph.out_degree(v) > 1}
    return {
        v for v in shared if not graph.pred[v] or all(graph.pred[w].keys() - shared for w in graph.succ[v])
    }


def _digraph(successors: Rows) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(successors.start) - 1))
    graph.add_edges_from(zip(successors.owners().tolist(), successors.items.tolist(), strict=True))
    return graph


def _tails(graph: nx.DiGraph[int], edges: list[tuple[int, int]]) -> list[int]:
    """Return the nodes from which the undirected edges lead."""
    return sorted({u if graph.has_edge(u, v) else v for u, v in edges})


def _numbered_components(graph: nx.DiGraph[int]) -> Ints:
    """Return the strongly connected component of every node, numbered in a topological order, shape (n,)."""
    components = nx.condensation(graph)
    first = {c: min(members) for c, members in components.nodes(data="members")}
    number = np.empty(len(graph), dtype=np.int64)
    for place, c in enumerate(nx.lexicographical_topological_sort(components, key=first.__getitem__)):
        number[list(components.nodes[c]["members"])] = place
    return number


def solve_path(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain that keeps every branching on one device: method ``pipedream_path``.

    The graph that :func:`partitioner.methods.baselines.path.branchings` contracts is solved by the
    exact dynamic program; the bound holds for every split. PipeDream's own cost model, its replication and
    its hierarchy of devices are not part of this baseline.
    """
    bound = relax(problem).bound
    if np.isinf(bound):
        return no_split(problem)
    block = branchings(problem.successors, problem.time.sum(axis=(0, 1)) == 0)
    found = solve_exact(merged(problem, block), replace(settings, incumbent=None))
    return Outcome(
        problem,
        None if found.parts is None else split_blocks(found.parts, block),
        found.value,
        min(bound, found.value),
        settings.ended(bound, found.value),
        notes=found.notes,
        statistics={"blocks": int(block.max()) + 1, **found.statistics},
    )
