"""The variables of the integer program for latency."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.methods.latency.program.seats import Seats
from partitioner.problem.arrays import Floats, Ints
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
