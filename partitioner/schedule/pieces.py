"""The nodes of each device as contiguous pieces, one for each virtual device (paper, Section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.evaluation.order import order_violations
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.shape import Shape
from partitioner.workload.graph import Bools, Graph, Ints


@dataclass(frozen=True, eq=False)
class Pieces:
    """The forward pieces in topological order, then the backward pieces.

    Parameters
    ----------
    device, backward
        Shape (pieces,): position of the device, and whether the piece is one of the backward pass.
    home
        Shape (n,): the piece of every node.
    """

    device: Ints
    backward: Bools
    home: Ints


def pieces_of(placed: Placed, shape: Shape, order: tuple[int, ...] | None) -> Pieces:
    """Return the pieces of a placement: the stages if it is a chain, else those of a greedy search.

    No dependency leads from a piece to an earlier one, so that each piece can run without interruption.
    """
    if shape.is_chain:
        given = order if order is not None else tuple(placed.names.index(name) for name in shape.order)
        place = np.zeros(len(placed.names), dtype=np.int64)
        place[list(given)] = np.arange(len(given))
        stage = place[placed.device]
        if not backward_against_order(placed.graph, stage, placed.names) and not order_violations(
            placed, shape, given
        ):
            return pieces_of_stages(placed, given, stage)
    forward = _walk(placed, ~placed.graph.backward)
    pieces = forward + _walk(placed, placed.graph.backward)
    home = np.zeros(len(placed.graph), dtype=np.int64)
    for i, (_, nodes) in enumerate(pieces):
        home[nodes] = i
    device = np.array([device for device, _ in pieces], dtype=np.int64)
    return Pieces(device, np.arange(len(pieces)) >= len(forward), home)


def pieces_of_stages(placed: Placed, order: tuple[int, ...], stage: Ints) -> Pieces:
    """Return a forward piece for each stage, and backward pieces from the last stage to the first.

    Parameters
    ----------
    placed
        The placement.
    order
        The position of the device of every stage, first stage to last.
    stage
        Shape (n,): the number of every node's stage.
    """
    count, backward = len(order), placed.graph.backward
    device = np.array(order + order[::-1] if backward.any() else order, dtype=np.int64)
    return Pieces(device, np.arange(len(device)) >= count, np.where(backward, 2 * count - 1 - stage, stage))


def backward_against_order(graph: Graph, stage: Ints, names: Sequence[str]) -> tuple[str, ...]:
    """Return a message for each two stages of which the earlier one's backward pass feeds the later one's.

    `stage` has shape (n,); `names` are those of the stages.
    """
    edges = graph.edges[graph.backward[graph.edges].all(axis=1)]
    pairs = np.unique(stage[edges], axis=0).tolist()
    return tuple(
        f"the backward pass of {names[i]} sends tensors to that of {names[j]}" for i, j in pairs if i < j
    )


def _walk(placed: Placed, part: Bools) -> list[tuple[int, list[int]]]:
    """Return the pieces of the nodes of one pass as (device, nodes), in topological order.

    In each step one device takes all of its nodes that do not wait for another device. This is the device
    whose ready nodes are the largest fraction of its nodes that are left.
    """
    edges = placed.graph.edges[part[placed.graph.edges].all(axis=1)]
    after: dict[int, list[int]] = {}
    for source, target in edges.tolist():
        after.setdefault(source, []).append(target)
    missing = np.bincount(edges[:, 1], minlength=len(part)).tolist()
    device, nodes = placed.device.tolist(), np.flatnonzero(part).tolist()
    left = np.bincount(placed.device[part], minlength=len(placed.names)).tolist()
    ready: dict[int, list[int]] = {i: [] for i, count in enumerate(left) if count}

    def reach(found: list[int]) -> None:
        """Mark nodes as ready, and the nodes of the same device that waited only for them."""
        while found:
            node = found.pop()
            ready[device[node]].append(node)
            found += settle(node, own=True)

    def settle(node: int, own: bool) -> list[int]:
        free = []
        for other in after.get(node, ()):
            if (device[other] == device[node]) == own:
                missing[other] -= 1
                if missing[other] == 0:
                    free.append(other)
        return free

    reach([node for node in nodes if missing[node] == 0])
    pieces = []
    while ready:
        chosen = max(ready, key=lambda i: (len(ready[i]) / left[i], -i))
        taken = ready[chosen]
        pieces.append((chosen, taken))
        left[chosen] -= len(taken)
        ready[chosen] = []
        if not left[chosen]:
            del ready[chosen]
        for node in taken:
            reach(settle(node, own=False))
    return pieces
