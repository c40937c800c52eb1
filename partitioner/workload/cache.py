"""The memory that a graph holds with a number of samples in flight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.workload.graph import Graph


def holding(graph: Graph, samples: int) -> Graph:
    """Return the graph whose sizes include the cache of a number of samples in flight, and no other cache.

    Parameters
    ----------
    graph
        The graph; `graph.cache` is what its nodes keep of every sample, in the unit of its sizes.
    samples
        The number of samples in flight, at least 0.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0, 2.0]}, size=5.0, cache=[2.0, 0.0])
    >>> holding(graph, 3).size.tolist()
    [11.0, 5.0]
    """
    return replace(graph, size=graph.size + samples * graph.cache, cache=np.zeros(len(graph)))
