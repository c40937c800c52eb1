"""Constraints that the paper does not have: they tighten the program, and forbid cycles that take no time."""

from __future__ import annotations

import numpy as np

from partitioner.methods.ip.variables import ABSENT, terms
from partitioner.methods.latency.program.columns import Columns
from partitioner.methods.solvers.program import Builder
from partitioner.problem.arrays import Ints


def progress(builder: Builder, c: Columns) -> None:
    """Add rows: from the end of an edge's tail to that of its head pass the head's time and cut transfers.

    They are not in the paper. A path takes this much even if each of its subgraphs held nothing else, so no
    layout is lost; and unlike (6) and (10) these rows bind in the relaxation. A transfer counts if the
    edge's head is the only reader of the net, so that the net is cut where the edge is.
    """
    u, v = c.edges()
    time = c.problem.time.sum(axis=1)[c.seats.kind].T
    column, there = terms(c.x)
    latest = np.maximum(c.horizon - c.tail, 0.0)
    done = builder.variables(c.problem.n, latest, np.minimum(c.head, latest))
    builder.at_most(done, c.latency)
    rows = builder.new_rows(c.problem.n, -np.inf, -c.tail)
    builder.add(rows, done, 1.0)
    builder.add(rows, c.total, -1.0)
    for nodes, rows in (
        (np.arange(c.problem.n), builder.new_rows(c.problem.n, -np.inf, 0.0)),
        (v, builder.new_rows(len(v), -np.inf, 0.0)),
    ):
        builder.add(rows, done[nodes], -1.0)
        builder.add(rows[:, None], column[nodes], (there * time)[nodes])
    builder.add(rows, done[u], 1.0)
    if c.problem.communication == "sequential":
        edge, net = _only_reader(c, u, v)
        for moved in (c.into, c.out):
            present, there = terms(moved[net])
            builder.add(rows[edge][:, None], present, there * c.problem.nets.cost[net][:, None])


def _only_reader(c: Columns, u: Ints, v: Ints) -> tuple[Ints, Ints]:
    """Return the edges whose head is the only reader of a net, and that net."""
    pins = c.problem.nets.pins
    edge = {pair: i for i, pair in enumerate(zip(u.tolist(), v.tolist(), strict=True))}
    net = np.flatnonzero(np.diff(pins.start) == 2)
    source = c.problem.nets.source[net]
    reader = pins.items[pins.start[net]] + pins.items[pins.start[net] + 1] - source
    found = [edge[pair] for pair in zip(source.tolist(), reader.tolist(), strict=True)]
    return np.array(found, dtype=np.int64), net


def ranks(builder: Builder, c: Columns) -> None:
    """Add rows: subgraphs that take no time do not wait for one another in a cycle (2).

    A path that leaves a subgraph and returns makes it wait for itself, so the times forbid it (6, 9, 10), as
    they forbid every cycle that takes time. A cycle that takes none consists of nodes that take none: these
    have ranks that do not fall along edges and grow by one along an edge into a subgraph.
    """
    brief = c.problem.work().min(axis=0) <= 1e-6 * c.horizon
    u, v = c.edges()
    both = brief[u] & brief[v]
    u, v = u[both], v[both]
    top = float(len(np.unique(np.concatenate((u, v)))))
    if not top:
        return
    rank = np.full(c.problem.n, ABSENT)
    ranked = np.unique(np.concatenate((u, v)))
    rank[ranked] = builder.variables(len(ranked), top)
    of_seat = builder.variables(len(c.subgraphs), top)
    builder.at_most(rank[u], rank[v])
    edge, seat = np.nonzero(c.held[v] != ABSENT)
    rows = builder.new_rows(len(edge), -np.inf, 0.0)
    builder.add(rows, rank[u[edge]], 1.0)
    builder.add(rows, rank[v[edge]], -1.0)
    builder.add(rows, c.held[v[edge], seat], 1.0)
    present, there = terms(c.held[u[edge], seat])
    builder.add(rows, present, -there)
    node, seat = np.nonzero(c.held[ranked] != ABSENT)
    _equal_if(builder, rank[ranked[node]], of_seat[seat], c.held[ranked[node], seat], top)
    same = np.flatnonzero(np.diff(c.seats.device[c.subgraphs]) == 0)
    builder.at_most(of_seat[same], of_seat[same + 1])


def _equal_if(builder: Builder, left: Ints, right: Ints, chosen: Ints, top: float) -> None:
    """Add rows: `left` and `right` are equal if `chosen` is one."""
    for small, large in ((left, right), (right, left)):
        rows = builder.new_rows(len(chosen), -np.inf, top)
        builder.add(rows, small, 1.0)
        builder.add(rows, large, -1.0)
        builder.add(rows, chosen, top)
