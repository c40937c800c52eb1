"""The integer program of a task, and the parts that a solver's values describe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.ip import constraints
from partitioner.methods.ip.limits import limits
from partitioner.methods.ip.task import Task
from partitioner.methods.ip.variables import ABSENT, add_variables
from partitioner.methods.method import Part
from partitioner.methods.places import parts_on
from partitioner.methods.solvers.program import Builder, Program
from partitioner.problem.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class PlacementProgram:
    """The integer program of a task, with the columns that say where supernodes are.

    Parameters
    ----------
    task
        The task.
    program
        The program, in which a time of ``task.scale`` is 1.
    x
        Shape (n, devices): columns, -1 where a supernode may not be.
    """

    task: Task
    program: Program
    x: Ints

    @property
    def payload(self) -> Program:
        """The program, which a solver is given."""
        return self.program

    @property
    def unit(self) -> float:
        """The time that is 1 in the program."""
        return self.task.scale

    @property
    def cutoff(self) -> float:
        """The largest value of a solution of the program."""
        return self.task.cutoff

    def solution(self, values: Floats) -> list[Part]:
        """Return the parts that a solution describes, each supernode where its variable is largest."""
        there = np.where(self.x == ABSENT, -1.0, values[self.x])
        return parts_on(self.task.device_kinds, there.argmax(axis=1))


def formulate(task: Task) -> PlacementProgram:
    """Return the integer program of a task (paper, Figure 7, with nets in place of edges)."""
    builder = Builder()
    v = add_variables(builder, task)
    constraints.assignment(builder, v)
    constraints.memory(builder, v)
    constraints.covers(builder, v, task)
    constraints.touched_nets(builder, v)
    constraints.whole_nets(builder, v, task)
    constraints.loads(builder, v)
    constraints.range_of_sum(builder, v, task)
    constraints.contiguity(builder, v)
    limits(builder, v)
    return PlacementProgram(task, builder.program(v.load), v.x)
