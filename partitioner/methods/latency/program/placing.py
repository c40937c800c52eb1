"""Constraints on seats and transfers, one function for each family (paper, Figures 5 and 6)."""

from __future__ import annotations

import numpy as np

from partitioner.methods.ip.variables import ABSENT, terms
from partitioner.methods.latency.program.columns import Columns
from partitioner.methods.solvers.program import Builder
from partitioner.problem.arrays import Ints


def assignment(builder: Builder, c: Columns) -> None:
    """Add rows: every node is at exactly one seat (1)."""
    rows = builder.new_rows(len(c.x), 1.0, 1.0)
    node, seat = np.nonzero(c.x != ABSENT)
    builder.add(rows[node], c.x[node, seat], 1.0)


def colocation(builder: Builder, c: Columns) -> None:
    """Add rows: nodes of a group are on one device, not necessarily in one subgraph (Appendix A.1)."""
    _, first = np.unique(c.problem.group, return_index=True)
    leader = first[c.problem.group]
    nodes = np.flatnonzero(leader != np.arange(c.problem.n))
    for device in np.unique(c.seats.device).tolist():
        here = np.flatnonzero(c.seats.device == device)
        rows = builder.new_rows(len(nodes), 0.0, 0.0)
        for members, sign in ((nodes, 1.0), (leader[nodes], -1.0)):
            column, there = terms(c.x[np.ix_(members, here)])
            builder.add(rows[:, None], column, sign * there)


def memory(builder: Builder, c: Columns) -> None:
    """Add rows: the sizes on a device, as fractions of its memory, add up to at most 1 (3*)."""
    size = c.problem.size
    for device in np.unique(c.seats.device).tolist():
        here = np.flatnonzero(c.seats.device == device)
        limit = c.problem.memory[c.seats.kind[here[0]]]
        if limit < size.sum():
            column, there = terms(c.x[:, here])
            with np.errstate(over="ignore"):  # a limit of almost nothing
                share = np.minimum(size / max(limit, 1e-300), 2.0)
            builder.add(builder.new_rows(1, -np.inf, 1.0), column, there * share[:, None])


def transfers(builder: Builder, c: Columns) -> None:
    """Add rows: a net is moved into a subgraph that reads it from outside (4), and out of its own (5)."""
    nets = c.problem.nets
    owner = nets.pins.owners()
    reads = np.flatnonzero(nets.pins.items != nets.source[owner])
    net = owner[reads]
    reader, source = c.held[nets.pins.items[reads]], c.held[nets.source[net]]
    _at_least_difference(builder, c.into[net], reader, source)
    _at_least_difference(builder, c.out[net], source, reader)


def needs(builder: Builder, c: Columns) -> None:
    """Add rows: a subgraph waits for every node outside it that one of its nodes follows."""
    u, v = c.edges()
    _at_least_difference(builder, c.need[u], c.held[v], c.held[u])


def _at_least_difference(builder: Builder, column: Ints, plus: Ints, minus: Ints) -> None:
    """Add a row ``column >= plus - minus`` for every entry whose `plus` is not absent."""
    chosen = plus != ABSENT
    rows = builder.new_rows(int(chosen.sum()), -np.inf, 0.0)
    present, there = terms(minus[chosen])
    builder.add(rows, plus[chosen], 1.0)
    builder.add(rows, present, -there)
    builder.add(rows, column[chosen], -1.0)
