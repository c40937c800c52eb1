"""The spine of a pipeline: supernodes in series, whose stages wait for one another in every pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.graph import Graph

MOST_SUPERNODES = 4000  # for which it is computed which of them come before which
EVERY = 1e-9  # of the mean work, for each supernode: one more is better, even if it takes no time


class PassSpine(NamedTuple):
    """The heaviest supernodes of which each waits for the one before, forward and backward.

    Parameters
    ----------
    on
        Shape (n,): whether a supernode is one of them.
    trains, returns
        Whether there is a backward pass, and whether it runs through the stages from the last to the first.
        It does not in graphs whose backward part is written in the direction of the forward part.
    together
        Whether no stage's backward pass waits for more stages than its forward pass does, if it does not
        return.
    before, after
        Shape (n,): for a supernode that is none of them, the least time that a sample takes at those before
        it and at those behind it: both passes if the backward pass returns, else forward and backward pass.
    first, last
        Shape (n,): how many supernodes of the spine come before a supernode at least, and at most.
    """

    on: Bools
    trains: bool
    returns: bool
    together: bool
    before: Floats
    after: Floats
    first: Ints
    last: Ints


def spine_of(graph: Graph, problem: PipelineProblem) -> PassSpine | None:
    """Return the spine of a problem; None if the backward pass of its stages has neither direction.

    None also if the supernodes are too many.

    Parameters
    ----------
    graph
        The graph that the problem is a contraction of.
    problem
        Its supernodes are numbered in a topological order.
    """
    member, n, trains = problem.member, problem.n, bool(graph.backward.any())
    if n > MOST_SUPERNODES:
        return None
    ends, within = member[graph.edges], graph.backward[graph.edges]
    less = _closure(n, ends[~within.any(axis=1)])
    counted, returns, together = np.bincount(member[~graph.backward], minlength=n) > 0, True, False
    if trains:
        backward = ends[within.all(axis=1)]
        backward = backward[backward[:, 0] != backward[:, 1]]
        returns = _within(problem, backward[:, ::-1])
        if not returns and not _within(problem, backward):
            return None
        later = ends[within[:, 1] & (ends[:, 0] != ends[:, 1])]
        together = not returns and bool(less[later[:, 0], later[:, 1]].all())
        less &= _closure(n, backward[:, ::-1] if returns else backward)
        counted &= np.bincount(member[graph.backward], minlength=n) > 0
    on = _heaviest(_work(problem), counted, less)
    shortest = np.where(problem.allowed[:, None], problem.time, np.inf)[problem.count > 0].min(axis=0)
    shortest = np.where(on & np.isfinite(shortest), shortest, 0.0)
    both = shortest.sum(axis=0)
    before = np.where(on, 0.0, (both if returns else shortest[0]) @ less)
    after = np.where(on, 0.0, less @ (both if returns else shortest[1]))
    held = on.astype(np.int64)
    return PassSpine(on, trains, returns, together, before, after, held @ less, held.sum() - less @ held)


def _within(problem: PipelineProblem, pairs: Ints) -> bool:
    """Whether in every chain the first supernode of each pair is in the stage of the second, or before."""
    after = problem.successors
    precedes = _closure(problem.n, np.stack((after.owners(), after.items), axis=1))
    return bool(precedes[pairs[:, 0], pairs[:, 1]].all())


def _closure(n: int, edges: Ints) -> Bools:
    """Return which supernodes come before which, shape (n, n), by edges that lead to larger numbers."""
    found = np.zeros((n, n), dtype=bool)
    for u, v in sorted({(u, v) for u, v in edges.tolist() if u < v}, reverse=True):
        found[u, v] = True
        found[u] |= found[v]
    return found


def _work(problem: PipelineProblem) -> Floats:
    """Return the least work of each supernode, shape (n,)."""
    work = problem.work()[problem.count > 0].min(axis=0)
    work = np.where(np.isfinite(work), work, 0.0)
    return np.asarray(work + EVERY * work.mean())


def _heaviest(work: Floats, counted: Bools, less: Bools) -> Bools:
    """Return the heaviest supernodes of which each comes before the next one, shape (n,)."""
    total, previous = np.zeros(len(work)), np.full(len(work), -1)
    for v in np.flatnonzero(counted).tolist():
        first = np.where(less[:, v] & counted, total, 0.0)
        u = int(first.argmax())
        total[v] = work[v] + first[u]
        previous[v] = u if first[u] > 0 else -1
    on, v = np.zeros(len(work), dtype=bool), int(total.argmax())
    while v >= 0 and counted[v]:
        on[v] = True
        v = int(previous[v])
    return on
