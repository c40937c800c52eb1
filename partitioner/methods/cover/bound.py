"""The largest load that can be refuted: no placement is better than that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.methods.cover.master import Master
from partitioner.methods.cover.pricing import Column, FractionOracle, Oracle, SetOracle
from partitioner.methods.cover.states import build_states
from partitioner.methods.cover.steps import steps_of
from partitioner.methods.relaxation import relax
from partitioner.preprocess.problem import Floats, Problem

MOST_STATES = 400_000
SURE = 1 + 1e-9
PATIENCE = 40
NEARER = 1e-3
CLOSE = 1e-3
FINEST = 1e-4
TINY = 1e-300


@dataclass(frozen=True)
class Shares:
    """How processing and transfers add up to a load, or to something that a load cannot fall below."""

    processing: float
    transfers: float


SHARES = {
    "sequential": Shares(1.0, 1.0),
    "overlapped": Shares(0.5, 0.5),
    "duplex": Shares(0.5, 0.25),
}


class Covering:
    """A lower bound on the objective of every split of the problem's shape, raised step by step.

    Memory is not looked at. With overlapped or duplex transfers, where a load is a maximum, a mean of
    its parts stands for it. GPipe's objective is no smaller than any device's two loads together.

    Parameters
    ----------
    problem
        The problem.
    bound
        A lower bound to start from.

    Attributes
    ----------
    bound
        The best bound so far.
    """

    def __init__(self, problem: Problem, bound: float) -> None:
        self.problem, self.bound = problem, bound
        self.weight = relax(problem).weight
        self.last: Duel | None = None

    def rise(
        self, value: float, gap: float, stop: Callable[[], bool], found: Callable[[float], None]
    ) -> bool:
        """Raise the bound towards a value; False if it was told to stop before it came to an end.

        Parameters
        ----------
        value
            The best value known: what is above it need not be refuted.
        gap
            No bound above ``(1 - gap) * value`` is looked for.
        stop
            Asked between steps: should the search end with what it has?
        found
            Called with every better bound.
        """
        threshold = (1 - max(gap, FINEST)) * value
        while self.bound < threshold < np.inf:
            duel = self._duel(threshold)
            if not duel.ready:
                return True
            ratio = duel.fight(stop)
            if ratio <= SURE and stop():
                return False
            if ratio > SURE:
                self.bound = max(self.bound, duel.threshold)
            else:
                self.bound = max(self.bound, duel.refuted(ratio * duel.threshold * (1 - NEARER)))
                threshold = (self.bound + threshold) / 2
            found(self.bound)
            if threshold - self.bound <= CLOSE * threshold:
                return True
        return True

    def _duel(self, threshold: float) -> Duel:
        """A duel with about this threshold; the last one goes on if its own is as good."""
        last = self.last
        if last is None or not threshold <= last.threshold <= threshold * (1 + CLOSE):
            self.last = last = Duel(self.problem, threshold, self.weight if last is None else last.weight)
        return last


class Duel:
    """Weights against one threshold.

    Parameters
    ----------
    problem
        The problem.
    threshold
        What is to be refuted.
    weight
        Shape (n,): the weights to start from.

    Attributes
    ----------
    weight
        The best weights so far.
    ready
        False if the states are too many.
    """

    def __init__(self, problem: Problem, threshold: float, weight: Floats) -> None:
        self.problem, self.threshold = problem, threshold
        kinds = np.flatnonzero(problem.count > 0)
        self.count = problem.count[kinds]
        oracles = [_oracle(problem, int(kind), threshold) for kind in kinds]
        self.oracles = [oracle for oracle in oracles if oracle is not None]
        self.ready = len(self.oracles) == len(oracles)
        self.weight = weight + 1e-6 * max(weight.mean(), TINY)
        self.ratio = 0.0
        self.master: Master | None = None

    def fight(self, stop: Callable[[], bool]) -> float:
        """Improve the weights until they refute the threshold (a ratio above one), or cannot.

        Called again after a stop, it goes on where it was.
        """
        if self.master is None:
            self.master = self._begin()
        idle = 0
        while self.ratio <= SURE and idle < PATIENCE and not stop():
            trial = self.master.best(self.ratio + NEARER / 10)
            if trial is None:
                break
            ratio, columns = self.measure(trial)
            idle = 0 if ratio > self.ratio + NEARER / 10 else idle + 1
            better = ratio > self.ratio
            if better:
                self.ratio, self.weight = ratio, self._scaled(trial, columns)
            self.master.move(self.weight, better)
            self.master.add(columns)
        return self.ratio

    def _begin(self) -> Master:
        self.ratio, columns = self.measure(self.weight)
        self.weight = self._scaled(self.weight, columns)
        master = Master(self.count, self.weight)
        master.add(columns)
        return master

    def _scaled(self, weight: Floats, columns: Sequence[Column]) -> Floats:
        """The weights in a unit in which all devices together hold n."""
        return weight * (len(weight) / max(self.held(columns), TINY))

    def measure(self, weight: Floats) -> tuple[float, list[Column]]:
        """What everything weighs over what the devices can hold, and the columns that say so."""
        columns = [oracle(weight) for oracle in self.oracles]
        held = self.held(columns)
        return (float(weight.sum()) / held if held > 0 else np.inf), columns

    def held(self, columns: Sequence[Column]) -> float:
        """What all devices can hold together."""
        return float(self.count @ [column.weight for column in columns])

    def refuted(self, threshold: float) -> float:
        """The threshold if the weights refute it as they are, else 0."""
        duel = Duel(self.problem, threshold, self.weight)
        return threshold if duel.ready and duel.measure(duel.weight)[0] > SURE else 0.0


def _oracle(problem: Problem, kind: int, threshold: float) -> Oracle | None:
    """The oracle of a kind; None if its states are too many."""
    time = problem.work()[kind]
    threshold *= 1 + 1e-12
    if not problem.pays[kind]:
        return FractionOracle(time, threshold)
    shares = SHARES[problem.communication]
    processing, transfers = time * shares.processing, problem.nets.cost * shares.transfers
    steps = steps_of(problem, transfers, bool(problem.regions) and bool(problem.contiguous[kind]))
    states = build_states(steps, processing, threshold, MOST_STATES)
    return None if states is None else SetOracle(states, threshold)
