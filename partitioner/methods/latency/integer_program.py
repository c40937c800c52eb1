"""The integer program for latency (paper, Figures 5 and 6), and the layout that a solution describes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.ip.formulate import ABSENT, terms
from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.latency.seats import Mask, Seats, heads_and_tails, seats_of
from partitioner.methods.loads import joint_terms
from partitioner.methods.solvers.program import Builder, Program
from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.variants import SampleProblem


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of the program; times are fractions of `unit`.

    Parameters
    ----------
    problem
        The problem, with times in the program's unit.
    seats
        The subgraphs and devices where nodes may be.
    horizon
        The largest time.
    head, tail
        Shape (n,): the least time until a node is done, and from then to the end.
    subgraphs
        Shape (subgraphs,): the seats that are subgraphs.
    x
        Shape (n, seats): whether the node is at the seat (binary).
    into, out
        Shape (nets, subgraphs): whether the net is transferred to the subgraph, or from it.
    need
        Shape (n, subgraphs): whether the subgraph waits for the node's output.
    latency
        Shape (n,): when the node's output is in host memory.
    start, finish
        Shape (subgraphs,): when the subgraph starts and ends.
    total
        Shape (1,): the last finish.
    """

    problem: SampleProblem
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

    def edges(self) -> tuple[Ints, Ints]:
        """Return the tails and the heads of the graph's edges, shape (edges,) each."""
        return self.problem.successors.owners(), self.problem.successors.items


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
    done = builder.variables(c.problem.n, latest, np.minimum(c.head, latest), time=True)
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


@dataclass(frozen=True, eq=False)
class LatencyProgram:
    """The integer program of a problem, with the columns that say where nodes are.

    Parameters
    ----------
    seats
        The subgraphs and devices.
    program
        The program, in which a time of `unit` is 1.
    unit
        The time that is 1 in the program.
    cutoff
        The largest value of a solution.
    x
        Shape (n, seats): columns, -1 where a node may not be.
    """

    seats: Seats
    program: Program
    unit: float
    cutoff: float
    x: Ints

    def solution(self, values: Floats) -> SubgraphLayout:
        """Return the layout that a solution describes, each node where its variable is largest."""
        there = np.where(self.x == ABSENT, -1.0, values[self.x])
        return self.seats.layout(there.argmax(axis=1))


def formulate(problem: SampleProblem, cutoff: float = np.inf, bound: float = 0.0) -> LatencyProgram:
    """Return the integer program (paper, Figures 5 and 6, with nets in place of edges).

    Parameters
    ----------
    problem
        A problem for latency.
    cutoff
        Largest value to look for; infinity if no layout is known yet.
    bound
        A lower bound on the latency of all layouts.
    """
    horizon = min(cutoff, longest(problem))
    unit = horizon if horizon > 0 else 1.0
    builder = Builder()
    c = _columns(builder, _scaled(problem, unit), seats_of(problem, horizon), horizon / unit, bound / unit)
    assignment(builder, c)
    colocation(builder, c)
    memory(builder, c)
    transfers(builder, c)
    needs(builder, c)
    durations(builder, c)
    starts(builder, c)
    single_nodes(builder, c)
    finishes(builder, c)
    device_order(builder, c)
    ranks(builder, c)
    progress(builder, c)
    last_finish(builder, c)
    return LatencyProgram(c.seats, builder.program(c.total), unit, cutoff, c.x)


def longest(problem: SampleProblem) -> float:
    """Return an upper bound on the latency: all nodes one after another, all nets in and out of subgraphs."""
    slowest = np.where(problem.allowed, problem.work(), 0.0).max(axis=0, initial=0.0).sum()
    pins = np.diff(problem.nets.pins.start)
    return float(slowest + (problem.nets.cost * pins).sum())


def _scaled(problem: SampleProblem, unit: float) -> SampleProblem:
    nets = problem.nets._replace(cost=problem.nets.cost / unit)
    return replace(problem, time=problem.time / unit, nets=nets)


def _columns(builder: Builder, problem: SampleProblem, seats: Seats, horizon: float, bound: float) -> Columns:
    head, tail = (np.minimum(each, 2.0) for each in heads_and_tails(problem))
    subgraphs = np.flatnonzero(seats.pays)
    held = seats.open[:, subgraphs]
    reads = _is_read(problem.nets.pins, held) & (np.diff(problem.nets.pins.start) > 1)[:, None]
    m = len(subgraphs)
    return Columns(
        problem=problem,
        seats=seats,
        horizon=horizon,
        head=head,
        tail=tail,
        subgraphs=subgraphs,
        x=_placed(builder, problem, seats.open),
        into=_where(builder, reads),
        out=_where(builder, held[problem.nets.source]),
        need=_where(builder, _is_read(problem.successors, held)),
        latency=builder.variables(problem.n, horizon, np.minimum(head, horizon), time=True),
        start=builder.variables(m, horizon, time=True),
        finish=builder.variables(m, horizon, time=True),
        total=builder.variables(1, horizon, min(bound * (1 - 1e-9), horizon), time=True),
    )


def _placed(builder: Builder, problem: SampleProblem, may: Mask) -> Ints:
    """Return the columns of x, shape (n, seats).

    With one subgraph per device, the nodes of a group and pass share their variables.
    """
    if problem.subgraphs > 1:
        return _where(builder, may, integer=True)
    _, first, label = np.unique(2 * problem.group + problem.backward, return_index=True, return_inverse=True)
    return np.asarray(_where(builder, may[first], integer=True)[label])


def _is_read(rows: Rows, held: Mask) -> Mask:
    """Return whether one of the nodes of each row may be in each subgraph, shape (rows, subgraphs)."""
    some = np.zeros((len(rows.start) - 1, held.shape[1]), dtype=bool)
    np.logical_or.at(some, rows.owners(), held[rows.items])
    return some


def _where(builder: Builder, there: Mask, integer: bool = False) -> Ints:
    """Add variables between 0 and 1 where `there` is True; return their columns in its shape."""
    columns = np.full(there.shape, ABSENT)
    columns[there] = builder.variables(int(there.sum()), 1.0, integer=integer)
    return columns
