"""The integer program for latency, and the layout that a solver's values describe."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.ip.variables import ABSENT
from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.latency.program import cuts, placing, times
from partitioner.methods.latency.program.columns import Columns
from partitioner.methods.latency.program.seats import Mask, Seats, heads_and_tails, seats_of
from partitioner.methods.solvers.program import Builder, Program
from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.variants import SampleProblem


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

    @property
    def payload(self) -> Program:
        """The program, which a solver is given."""
        return self.program

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
    placing.assignment(builder, c)
    placing.colocation(builder, c)
    placing.memory(builder, c)
    placing.transfers(builder, c)
    placing.needs(builder, c)
    times.durations(builder, c)
    times.starts(builder, c)
    times.single_nodes(builder, c)
    times.finishes(builder, c)
    times.device_order(builder, c)
    cuts.ranks(builder, c)
    cuts.progress(builder, c)
    times.last_finish(builder, c)
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
        latency=builder.variables(problem.n, horizon, np.minimum(head, horizon)),
        start=builder.variables(m, horizon),
        finish=builder.variables(m, horizon),
        total=builder.variables(1, horizon, min(bound * (1 - 1e-9), horizon)),
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
