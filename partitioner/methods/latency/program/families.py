"""The constraints of the program, one function a family (paper, Figures 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.ip.program import Builder
from partitioner.methods.ip.variables import ABSENT, terms
from partitioner.methods.latency.program.seats import Seats
from partitioner.preprocess.problem import Floats, Ints, Problem


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of the program; times are fractions of `unit`.

    Parameters
    ----------
    problem
        What is asked, in the program's unit of time.
    seats
        Where nodes may sit.
    horizon
        No time exceeds it.
    head, tail
        What must pass until a node is done, and what must follow it.
    subgraphs
        The seats that are subgraphs.
    x
        Shape (n, seats): does the node sit there? (binary)
    into, out
        Shape (nets, subgraphs): is the net transferred to the subgraph, or from it?
    need
        Shape (n, subgraphs): does the subgraph wait for the node's output?
    latency
        Shape (n,): when the node's output is in host memory.
    start, finish
        Shape (subgraphs,).
    total
        Shape (1,): the last finish.
    """

    problem: Problem
    seats: Seats
    horizon: float
    head: Floats
    tail: Floats
    subgraphs: Ints
    x: Ints
    into: Ints
    out: Ints
    need: Ints
    latency: Ints
    start: Ints
    finish: Ints
    total: Ints

    @property
    def held(self) -> Ints:
        """Shape (n, subgraphs): the x of subgraphs."""
        return self.x[:, self.subgraphs]


def assignment(builder: Builder, c: Columns) -> None:
    """Every node sits on exactly one seat (1)."""
    rows = builder.new_rows(len(c.x), 1.0, 1.0)
    node, seat = np.nonzero(c.x != ABSENT)
    builder.add(rows[node], c.x[node, seat], 1.0)


def colocation(builder: Builder, c: Columns) -> None:
    """Nodes of a group are on the same device, not necessarily in the same subgraph (Appendix A.1)."""
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
    """The sizes on a device keep to its memory (3*), as fractions of it."""
    size = c.problem.size
    for device in np.unique(c.seats.device).tolist():
        here = np.flatnonzero(c.seats.device == device)
        limit = c.problem.memory[c.seats.kind[here[0]]]
        if limit < size.sum():
            column, there = terms(c.x[:, here])
            share = np.minimum(size / max(limit, 1e-300), 2.0)
            builder.add(builder.new_rows(1, -np.inf, 1.0), column, there * share[:, None])


def transfers(builder: Builder, c: Columns) -> None:
    """A net is moved into a subgraph that reads it from outside (4), and out of its own for others (5)."""
    nets = c.problem.nets
    owner = nets.pins.owners()
    reads = np.flatnonzero(nets.pins.items != nets.source[owner])
    net = owner[reads]
    reader, source = c.held[nets.pins.items[reads]], c.held[nets.source[net]]
    _at_least_difference(builder, c.into[net], reader, source)
    _at_least_difference(builder, c.out[net], source, reader)


def needs(builder: Builder, c: Columns) -> None:
    """A subgraph waits for every node outside that one of its nodes follows."""
    u, v = _edges(c)
    _at_least_difference(builder, c.need[u], c.held[v], c.held[u])


def _at_least_difference(builder: Builder, column: Ints, plus: Ints, minus: Ints) -> None:
    """For every entry ``column >= plus - minus``; nothing to say where `plus` is absent."""
    chosen = plus != ABSENT
    rows = builder.new_rows(int(chosen.sum()), -np.inf, 0.0)
    present, there = terms(minus[chosen])
    builder.add(rows, plus[chosen], 1.0)
    builder.add(rows, present, -there)
    builder.add(rows, column[chosen], -1.0)


def durations(builder: Builder, c: Columns) -> None:
    """A subgraph lasts for its transfers in, its processing and its transfers out (7).

    Overlapped and duplex communication: for the longest of what runs at a time (Appendix H.1).
    """
    cost = c.problem.nets.cost[:, None]
    work = c.problem.time.sum(axis=1)[c.seats.kind[c.subgraphs]].T
    busy, into, out = (c.held, work), (c.into, cost), (c.out, cost)
    families = {
        "sequential": [[busy, into, out]],
        "overlapped": [[busy], [into, out]],
        "duplex": [[busy], [into], [out]],
    }
    subgraph = np.arange(len(c.subgraphs))
    for family in families[c.problem.communication]:
        rows = builder.new_rows(len(subgraph), -np.inf, 0.0)
        builder.add(rows, c.start, 1.0)
        builder.add(rows, c.finish, -1.0)
        for columns, time in family:
            present, there = terms(columns)
            builder.add(rows, present, there * time)


def starts(builder: Builder, c: Columns) -> None:
    """A subgraph starts when what it needs is there (6), linearised with the horizon."""
    node, subgraph = np.nonzero(c.need != ABSENT)
    rows = builder.new_rows(len(node), -np.inf, c.horizon)
    builder.add(rows, c.latency[node], 1.0)
    builder.add(rows, c.start[subgraph], -1.0)
    builder.add(rows, c.need[node, subgraph], c.horizon)


def single_nodes(builder: Builder, c: Columns) -> None:
    """A node follows its predecessors, by its time where it runs by itself (8, 9)."""
    u, v = _edges(c)
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
    """A node of a subgraph is done when the subgraph is (10), linearised with its earliest time."""
    node, subgraph = np.nonzero(c.held != ABSENT)
    slack = np.maximum(c.horizon - c.head[node], 0.0)
    rows = builder.new_rows(len(node), -np.inf, slack)
    builder.add(rows, c.finish[subgraph], 1.0)
    builder.add(rows, c.latency[node], -1.0)
    builder.add(rows, c.held[node, subgraph], slack)


def device_order(builder: Builder, c: Columns) -> None:
    """Subgraphs of a device run one after another (14), the backward pass after the forward pass."""
    same = np.flatnonzero(np.diff(c.seats.device[c.subgraphs]) == 0)
    builder.at_most(c.finish[same], c.start[same + 1])


def last_finish(builder: Builder, c: Columns) -> None:
    """The objective is the largest latency."""
    builder.at_most(c.latency, c.total)


def progress(builder: Builder, c: Columns) -> None:
    """Along an edge pass the time of its end, wherever that is, and the transfers where it is cut.

    Not in the paper: a path needs this much even if each of its subgraphs held nothing else, so no
    layout is lost, and unlike (6) and (10) the relaxation keeps it. A transfer counts where the edge's
    end is the net's only reader, so that the net is cut where the edge is.
    """
    u, v = _edges(c)
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
    """The edges whose end is the only reader of a net, and that net."""
    pins = c.problem.nets.pins
    edge = {pair: i for i, pair in enumerate(zip(u.tolist(), v.tolist(), strict=True))}
    net = np.flatnonzero(np.diff(pins.start) == 2)
    source = c.problem.nets.source[net]
    reader = pins.items[pins.start[net]] + pins.items[pins.start[net] + 1] - source
    found = [edge[pair] for pair in zip(source.tolist(), reader.tolist(), strict=True)]
    return np.array(found, dtype=np.int64), net


def ranks(builder: Builder, c: Columns) -> None:
    """Subgraphs without length do not wait for one another in a circle (2).

    A path that leaves a subgraph and returns makes it wait for itself, so times forbid it (6, 9, 10), as
    they forbid every circle that takes time. One that takes none runs through nodes of no time: they have
    ranks that do not fall along edges and grow by one into a subgraph.
    """
    brief = c.problem.work().min(axis=0) <= 1e-6 * c.horizon
    u, v = _edges(c)
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
    """The two are equal where `chosen` is one."""
    for small, large in ((left, right), (right, left)):
        rows = builder.new_rows(len(chosen), -np.inf, top)
        builder.add(rows, small, 1.0)
        builder.add(rows, large, -1.0)
        builder.add(rows, chosen, top)


def _edges(c: Columns) -> tuple[Ints, Ints]:
    return c.problem.successors.owners(), c.problem.successors.items
