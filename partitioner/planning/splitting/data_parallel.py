"""Graphs of data parallelism: a copy of a model for each device, and the aggregation of gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.base.argument_types import is_count, require_type
from partitioner.base.errors import OptionError, shown
from partitioner.planning.splitting.dimension import unused
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.device_validation import LARGEST, MAX_COUNT
from partitioner.workload.graph import Floats, Graph, Ints, NodeId
from partitioner.workload.topological import topological

BY_SAMPLE = [MEMORY_PARTS.index(name) for name in ("activations", "workspace")]


def data_parallel(graph: Graph, replicas: int, *, gradient_cost: float = 0.0) -> Graph:
    """Replicate a model that is trained on one batch (strong scaling; FastT, Section 5.2).

    Each replica runs its share of the batch: times, costs of edges, activations, workspace and cache are
    divided by the number of replicas; parameters, their gradients, the state of the optimizer and `size` are
    in each. Node ``a`` becomes ``a/replica0``, ``a/replica1`` and so on, each colour class one a replica.
    For every colour class, and every node without one, that has weights (:attr:`Graph.weights`) there is a
    node ``a/aggregation``, named after the last node of the class, that takes no time and no memory. It
    reads the gradients of all replicas from that node, the last of the backward pass if the class has any;
    an edge costs `gradient_cost` for each unit of the weights of the class. The update behind it is no part
    of the graph.

    Parameters
    ----------
    graph
        The model with the times of the whole batch.
    replicas
        How many copies to make, 1 to 65,536.
    gradient_cost
        Time to move one unit of the weights, as the costs of edges: 1 / bandwidth.

    Returns
    -------
    Graph
        Replica by replica, then the aggregations.

    Raises
    ------
    OptionError
        If a number is out of its range.

    Examples
    --------
    >>> model = Graph.from_arrays({"gpu": [4.0, 2.0]}, [("a", "b")], 1.0, ids=["a", "b"], size=[8.0, 0.0])
    >>> parallel = data_parallel(model, 2, gradient_cost=0.25)
    >>> parallel.ids
    ('a/replica0', 'b/replica0', 'a/replica1', 'b/replica1', 'a/aggregation')
    >>> parallel.time.tolist(), parallel.cost.tolist()
    ([[2.0, 1.0, 2.0, 1.0, 0.0]], [0.5, 0.5, 2.0, 2.0])
    """
    require_type("graph", graph, Graph)
    if not is_count(replicas, 1, MAX_COUNT):
        raise OptionError(
            f"replicas = {shown(replicas)}: must be an integer of at least 1 and at most {MAX_COUNT:,}"
        )
    if (
        isinstance(gradient_cost, bool)
        or not isinstance(gradient_cost, int | float)
        or not 0 <= gradient_cost <= LARGEST
    ):
        raise OptionError(f"gradient_cost = {shown(gradient_cost)}: must be a number from 0 to {LARGEST:g}")
    n = len(graph)
    source, weight = _gradients(graph)
    copies, extra = np.tile(np.arange(n), replicas), len(source)
    offset = n * np.arange(replicas)
    edges = (graph.edges.reshape(1, -1, 2) + offset[:, None, None]).reshape(-1, 2)
    gradients = np.column_stack(
        ((source[:, None] + offset).ravel(), np.repeat(replicas * n + np.arange(extra), replicas))
    )
    parts = graph.parts.copy()
    parts[BY_SAMPLE] /= replicas
    classes = len(graph.color_labels)
    color = np.where(graph.color >= 0, graph.color + classes * np.arange(replicas)[:, None], -1)
    nothing = np.zeros((len(graph.kinds), extra))
    ids = _names(graph, replicas, source)
    return replace(
        graph,
        ids=ids,
        time=np.hstack((graph.time[:, copies] / replicas, nothing)),
        allowed=np.hstack((graph.allowed[:, copies], nothing == 0)),
        size=np.concatenate((graph.size[copies], np.zeros(extra))),
        backward=np.concatenate((graph.backward[copies], graph.backward[source])),
        color=np.concatenate((color.ravel(), np.full(extra, -1))),
        layer=np.full(len(ids), -1),
        edges=np.concatenate((edges, gradients)),
        cost=np.concatenate(
            (np.tile(graph.cost / replicas, replicas), np.repeat(weight, replicas) * gradient_cost)
        ),
        names=tuple(map(str, ids)),
        color_labels=tuple(f"{label}/replica{r}" for r in range(replicas) for label in graph.color_labels),
        layer_labels=(),
        extras=type(graph.extras)(top=graph.extras.top),
        parts=np.hstack((parts[:, copies], np.zeros((len(parts), extra)))),
        cache=np.concatenate((graph.cache[copies] / replicas, np.zeros(extra))),
    )


def _names(graph: Graph, replicas: int, source: Ints) -> tuple[NodeId, ...]:
    taken: set[str] = set()
    wanted = [f"{node}/replica{r}" for r in range(replicas) for node in graph.ids]
    wanted += [f"{graph.ids[i]}/aggregation" for i in source.tolist()]
    return tuple(unused(name, taken) for name in wanted)


def _gradients(graph: Graph) -> tuple[Ints, Floats]:
    """Return the nodes whose gradients are aggregated, and the size of their weights, shape (k,) each."""
    place = np.argsort(topological(graph.edges, len(graph)))
    alone = len(graph.color_labels) + np.arange(len(graph))
    owner = np.unique(np.where(graph.color >= 0, graph.color, alone), return_inverse=True)[1]
    weight = np.bincount(owner, graph.weights).astype(np.float64)
    last = np.empty(len(weight), dtype=np.int64)
    order = np.lexsort((place, graph.backward))
    last[owner[order]] = order
    kept = np.sort(last[weight > 0])
    return kept, weight[owner[kept]]
