"""The variables of the program."""

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
        Shape (n, seats): whether the node sits there (binary).
    into, out
        Shape (nets, subgraphs): whether the net is transferred to the subgraph, or from it.
    need
        Shape (n, subgraphs): whether the subgraph waits for the node's output.
    latency
        Shape (n,): when the node's output is in host memory.
    start, finish
        Shape (subgraphs,).
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
        """Shape (edges,) each: the nodes that the graph's edges leave and reach."""
        return self.problem.successors.owners(), self.problem.successors.items
