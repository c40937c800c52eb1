"""The memory that a graph holds with a number of samples in flight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.workload.graph import Graph

IN_TURN = "gpipe"  # the schedule under which a stage on r devices keeps one of r samples of a batch


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


def holding_in_turn(graph: Graph, samples: int, scheduled: bool) -> Graph:
    """Return the graph whose activations are the cache of a sample, for stages whose devices take turns.

    Under schedule :data:`IN_TURN` with as many microbatches as there are samples, a stage on r devices keeps
    the cache of samples / r of them, rounded up. All other memory counts as it does without a schedule, or
    with `scheduled` as it does under ``"inference"``.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0]}, activations=2.0, workspace=1.0, cache=3.0)
    >>> held = holding_in_turn(graph, 8, scheduled=False)
    >>> held.size.tolist(), held.parts[3].tolist(), held.parts[4].tolist()
    ([3.0], [3.0], [0.0])
    """
    parameters, gradients, optimizer, activations, workspace = graph.parts
    size, none = graph.size, np.zeros(len(graph))
    if not graph.parts.any():  # then replicas exchange what `size` says
        parameters, size = size, none
    once = activations if scheduled else activations + workspace
    largest = workspace if scheduled else none
    cache = graph.cache if samples else none
    parts = np.stack((parameters, gradients, optimizer, cache, largest))
    return replace(graph, size=size + once, parts=parts, cache=none)
