"""The state of a run for a convex or free split, and the task of one integer program of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Part
from partitioner.methods.places import device_kinds
from partitioner.methods.rules import obeys
from partitioner.methods.solvers.search import Search
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.variants import PartsProblem

Mask = NDArray[np.bool_]


HUGE = 1e5


@dataclass(frozen=True, eq=False)
class Task:
    """The task to find parts with a value of at most `cutoff`, or to prove that there are none.

    Parameters
    ----------
    problem
        The contracted graph.
    cutoff
        Largest value to look for; infinity if no parts are known yet.
    bound
        A lower bound on the value of all parts.
    covers
        Pairs of a kind and supernodes that together exceed the memory of a device of it, but only by less
        than a solver's tolerance.
    home
        Shape (n,): the device of every supernode in a plan to improve; None for the whole program.
    loose
        Shape (n, devices): where a supernode may be in addition to its home.
    """

    problem: PartsProblem
    cutoff: float
    bound: float
    covers: tuple[tuple[int, Ints], ...] = ()
    home: Ints | None = None
    loose: Mask | None = None

    @property
    def in_line(self) -> bool:
        """Whether the devices stand in a line, because edges may only join neighbouring parts."""
        return self.problem.limits.neighbours

    @property
    def device_kinds(self) -> Ints:
        """Shape (devices,): the kind of each device; in a line, one of each kind at every position."""
        if not self.in_line:
            return device_kinds(self.problem)
        present = np.flatnonzero(self.problem.count > 0)
        return np.tile(present, min(self.problem.n, int(self.problem.count.sum())))

    @property
    def scale(self) -> float:
        """The time that is 1 in the program, because solvers have absolute tolerances."""
        times = self.problem.time.max(initial=0.0), self.transfer_times().max(initial=0.0)
        known = (self.cutoff, self.bound, *times)
        return next((float(each) for each in known if 0 < each < np.inf), 1.0)

    def scaled(self) -> PartsProblem:
        """Return the problem with times in the program's unit, clipped to `HUGE`."""
        time = np.minimum(self.problem.time, self.scale * HUGE) / self.scale
        return replace(self.problem, time=time)

    def transfer_times(self) -> Floats:
        """Return the time that the transfer of each net takes a device of each kind, shape (nets, K)."""
        return np.asarray(self.problem.nets.cost[:, None] * self.problem.transfer_factor)

    def scaled_transfer_times(self) -> Floats:
        """Return :meth:`transfer_times` in the program's unit, clipped to `HUGE`."""
        return np.minimum(self.transfer_times(), self.scale * HUGE) / self.scale

    def whole(self) -> Mask:
        """Return which nets a kind may not cut because one transfer exceeds the cutoff, shape (nets, K)."""
        return np.asarray(self.transfer_times() > self.cutoff)

    def open(self) -> Mask:
        """Return whether each supernode may be on each device, shape (n, devices).

        It may not be where it may not run, or where its time alone exceeds the cutoff. Of solutions that
        differ only by an exchange of equal devices one is kept: of the supernodes that a kind may run, the
        j-th in :func:`rank` is on one of its first j devices.
        """
        kind = self.device_kinds
        may = (self.problem.allowed & (self.problem.work() <= self.cutoff)).T[:, kind]
        if self.home is not None and self.loose is not None:
            here = np.arange(len(kind)) == self.home[:, None]
            may &= self.loose | here
        elif not self.in_line:
            may &= self._canonical(may)
        return self._closed(may, self.whole()[:, kind])

    def _canonical(self, may: Mask) -> Mask:
        order = rank(self.problem)
        index = device_indices(self.problem)
        before = np.empty(may.shape, dtype=np.int64)
        before[order] = np.cumsum(may[order], axis=0) - 1
        return np.asarray(index <= before)

    def _closed(self, may: Mask, whole: Mask) -> Mask:
        """Return `may` without the pins of nets that a device may neither cut nor hold completely."""
        pins = self.problem.nets.pins
        for e in np.flatnonzero(whole.any(axis=1)).tolist():
            may[pins.row(e)] &= may[pins.row(e)].all(axis=0) | ~whole[e]
        return may


def device_indices(problem: PartsProblem) -> Ints:
    """Return the index of each device among those of its kind, shape (devices,)."""
    return np.concatenate([np.arange(count) for count in problem.count.tolist()])


def rank(problem: PartsProblem) -> Ints:
    """Return the supernodes in order of decreasing work, shape (n,)."""
    work = np.where(problem.allowed, problem.work(), 0.0)
    heaviest = work[problem.count > 0].max(axis=0)
    return np.argsort(-heaviest, kind="stable")


@dataclass(eq=False)
class SplitSearch(Search[Sequence[Part]]):
    """A search whose solutions are the parts of a convex or free split.

    Parameters
    ----------
    problem
        For a convex or free split.
    covers
        See :class:`partitioner.methods.ip.splits.Task`.
    """

    problem: PartsProblem
    covers: tuple[tuple[int, Ints], ...] = ()

    def plan_value(self, solution: Sequence[Part]) -> float:
        """Return the objective; infinity if the parts are better than the best ones but break a rule."""
        value = value_of(self.problem, solution)
        return value if value >= self.value or obeys(self.problem, solution) else np.inf

    def refuse(self, solution: Sequence[Part]) -> None:
        """Record which parts of a solver's solution exceed their device's memory, for new constraints."""
        size, memory = self.problem.size, self.problem.memory
        heavy = [part for part in solution if size[part.nodes].sum() > memory[part.kind]]
        self.covers += tuple((part.kind, part.nodes) for part in heavy)
        self.refused += bool(heavy)

    def task(self) -> Task:
        """Return the task of finding parts with a value of at most `target`."""
        return Task(self.problem, self.target, self.bound, self.covers)

    def task_near(self, cutoff: float, home: Ints, loose: Bools) -> Task:
        """Return the task of parts near a plan: a supernode is at its `home`, or where it is `loose`."""
        return replace(self.task(), cutoff=cutoff, home=home, loose=loose)

    def found(self, stop_reason: str) -> Outcome:
        """Return the outcome with the best parts, their value and the bound."""
        return Outcome(self.problem, self.best, self.value, min(self.bound, self.value), stop_reason)
