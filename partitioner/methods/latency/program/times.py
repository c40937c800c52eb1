"""Constraints on the times of subgraphs and nodes, one function for each family (paper, Figures 5 and 6)."""

from __future__ import annotations

import numpy as np

from partitioner.methods.communication import joint_terms
from partitioner.methods.ip.variables import ABSENT, terms
from partitioner.methods.latency.program.columns import Columns
from partitioner.methods.solvers.program import Builder


def durations(builder: Builder, c: Columns) -> None:
    """Add rows: a subgraph takes the time of its transfers in, its processing and its transfers out (7).

    With overlapped or duplex communication it takes the longest of those that run at the same time
    (Appendix H.1).
    """
    cost = c.problem.nets.cost[:, None]
    work = c.problem.time.sum(axis=1)[c.seats.kind[c.subgraphs]].T
    subgraph = np.arange(len(c.subgraphs))
    terms_of = [(c.held, work)], [(c.into, cost)], [(c.out, cost)]
    for family in joint_terms(c.problem.communication, *terms_of):
        rows = builder.new_rows(len(subgraph), -np.inf, 0.0)
        builder.add(rows, c.start, 1.0)
        builder.add(rows, c.finish, -1.0)
        for columns, time in family:
            present, there = terms(columns)
            builder.add(rows, present, there * time)


def starts(builder: Builder, c: Columns) -> None:
    """Add rows: a subgraph starts when its inputs are there (6), linearised with the horizon."""
    node, subgraph = np.nonzero(c.need != ABSENT)
    rows = builder.new_rows(len(node), -np.inf, c.horizon)
    builder.add(rows, c.latency[node], 1.0)
    builder.add(rows, c.start[subgraph], -1.0)
    builder.add(rows, c.need[node, subgraph], c.horizon)


def single_nodes(builder: Builder, c: Columns) -> None:
    """Add rows: a node ends after its predecessors, later by its time if it runs alone (8, 9)."""
    u, v = c.edges()
    lone = np.flatnonzero(~c.seats.pays)
    time = c.problem.time.sum(axis=1)[c.seats.kind[lone]].T
    column, there = terms(c.x[:, lone])
    rows = builder.new_rows(c.problem.n, -np.inf, 0.0)
    builder.add(rows, c.latency, -1.0)
    builder.add(rows[:, None], column, there * time)
    rows = builder.new_rows(len(u), -np.inf, 0.0)
    builder.add(rows, c.latency[u], 1.0)
    builder.add(rows, c.latency[v], -1.0)
    builder.add(rows[:, None], column[v], (there * time)[v])


def finishes(builder: Builder, c: Columns) -> None:
    """Add rows: a node of a subgraph is done when the subgraph is (10), linearised with its earliest time."""
    node, subgraph = np.nonzero(c.held != ABSENT)
    slack = np.maximum(c.horizon - c.head[node], 0.0)
    rows = builder.new_rows(len(node), -np.inf, slack)
    builder.add(rows, c.finish[subgraph], 1.0)
    builder.add(rows, c.latency[node], -1.0)
    builder.add(rows, c.held[node, subgraph], slack)


def device_order(builder: Builder, c: Columns) -> None:
    """Add rows: subgraphs of a device run one after another (14), backward ones after forward ones."""
    same = np.flatnonzero(np.diff(c.seats.device[c.subgraphs]) == 0)
    builder.at_most(c.finish[same], c.start[same + 1])


def last_finish(builder: Builder, c: Columns) -> None:
    """Add rows: the objective is the largest latency of a node."""
    builder.at_most(c.latency, c.total)
