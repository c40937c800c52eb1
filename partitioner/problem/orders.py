"""Topological orders of the supernodes, for their numbering and for chains."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from partitioner.problem.arrays import Floats, Ints, Rows


def depth_first(successors: Rows, predecessors: Rows, priority: Floats | None = None) -> Ints:
    """Return a topological order that finishes a branch before it begins the next.

    Of the supernodes whose predecessors are all placed, the one that became ready last comes next.

    Parameters
    ----------
    successors, predecessors
        The precedence.
    priority
        Shape (n,): of supernodes that become ready together, the one with the highest priority comes first;
        by default the one with the lowest number.

    Returns
    -------
    Ints
        Shape (n,): the supernodes in order.
    """
    n = len(successors.start) - 1
    key = -np.arange(n, dtype=np.float64) if priority is None else priority
    missing = np.diff(predecessors.start).tolist()
    rank = key.tolist()
    after = successors.lists()
    stack = sorted((v for v in range(n) if not missing[v]), key=rank.__getitem__)
    order = []
    while stack:
        node = stack.pop()
        order.append(node)
        ready = []
        for other in after[node]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
        stack += sorted(ready, key=rank.__getitem__)
    return np.array(order, dtype=np.int64)


def by_label(successors: Rows, predecessors: Rows, label: Ints) -> Ints:
    """Return a topological order in which supernodes of one label follow each other as long as one is ready.

    Parameters
    ----------
    successors, predecessors
        The precedence.
    label
        Shape (n,): the label of each supernode; the smallest one that is ready comes next.

    Examples
    --------
    >>> from partitioner.problem.arrays import rows_of
    >>> after, before = rows_of(np.array([0]), np.array([2]), 3), rows_of(np.array([2]), np.array([0]), 3)
    >>> by_label(after, before, np.array([0, 1, 0])).tolist()
    [0, 2, 1]
    """
    missing, after, of = np.diff(predecessors.start).tolist(), successors.lists(), label.tolist()
    ready: dict[int, list[int]] = {}
    for v in range(len(of) - 1, -1, -1):
        if not missing[v]:
            ready.setdefault(of[v], []).append(v)
    order: list[int] = []
    while ready:
        now = min(ready)
        while ready[now]:
            node = ready[now].pop()
            order.append(node)
            for other in after[node]:
                missing[other] -= 1
                if not missing[other]:
                    ready.setdefault(of[other], []).append(other)
        del ready[now]
    return np.array(order, dtype=np.int64)


def reverse_postorder(successors: Rows, priority: Floats) -> Ints:
    """Return the reverse postorder of a depth-first search over the supernodes.

    Unlike in :func:`depth_first`, a source comes just before its first use, not at the start.

    Parameters
    ----------
    successors
        The precedence.
    priority
        Shape (n,): higher ones are visited last, and so come first.
    """
    n = len(successors.start) - 1
    rank = priority.tolist()
    after = [sorted(row, key=rank.__getitem__) for row in successors.lists()]
    left = postorder(after, sorted(range(n), key=rank.__getitem__))
    return np.array(left[::-1], dtype=np.int64)


def postorder(after: list[list[int]], roots: Iterable[int]) -> list[int]:
    """Return the vertices that are reachable from the roots in postorder of a depth-first search.

    Parameters
    ----------
    after
        For each vertex its successors, in the order in which they are visited.
    roots
        The vertices to start from, in order.

    Examples
    --------
    >>> postorder([[2], [2], []], [0, 1])
    [2, 0, 1]
    """
    seen = [False] * len(after)
    left: list[int] = []
    for root in roots:
        stack = [] if seen[root] else [(root, iter(after[root]))]
        seen[root] = True
        while stack:
            node, children = stack[-1]
            child = next((c for c in children if not seen[c]), None)
            if child is None:
                left.append(node)
                stack.pop()
            else:
                seen[child] = True
                stack.append((child, iter(after[child])))
    return left


def random_order(successors: Rows, predecessors: Rows, random: np.random.Generator) -> Ints:
    """Return a random topological order, shape (n,): depth first or a reverse postorder."""
    priority = random.random(len(successors.start) - 1)
    if random.random() < 0.5:
        return reverse_postorder(successors, priority)
    return depth_first(successors, predecessors, priority)
