"""Which edges of a node carry the same tensor."""

from __future__ import annotations

import numpy as np

from partitioner.problem.arrays import Bools
from partitioner.workload.graph import Graph


def has_one_output(graph: Graph) -> Bools:
    """Return for each node, shape (N,), whether its outgoing edges carry one tensor.

    They do if all of them cost the same; else each edge carries a tensor of its own (paper, Appendix E.1).

    Examples
    --------
    >>> fork = Graph.from_arrays({"gpu": [1.0] * 4}, [(0, 1), (0, 2), (1, 3), (1, 2)], [1.0, 1.0, 1.0, 2.0])
    >>> has_one_output(fork).tolist()
    [True, False, False, False]
    """
    source = graph.edges[:, 0]
    least, most = np.full(len(graph), np.inf), np.full(len(graph), -np.inf)
    np.minimum.at(least, source, graph.cost)
    np.maximum.at(most, source, graph.cost)
    return np.asarray(least == most)
