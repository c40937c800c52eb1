"""The largest load that can be refuted: no placement is better than that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from partitioner.methods.bounds.cover.oracles import Oracles
from partitioner.methods.bounds.cover.pricing import Columns
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.imported import imported
from partitioner.problem.arrays import Floats
from partitioner.problem.variants import PartsProblem

if TYPE_CHECKING:
    from partitioner.methods.bounds.cover.master import Master

MASTER = "partitioner.methods.bounds.cover.master:Master"  # imported when it is needed, as it loads a solver
PATIENCE = 40
RETRIES = 2
SURE = 1 + 1e-9
NEARER = 1e-3
CLOSE = 1e-3
FINEST = 1e-4
FEWER = 0.95  # a threshold at which states may be so much fewer that it is worth while to count again
TINY = 1e-300


class Covering:
    """A lower bound on the objective of every split of the problem's shape, raised step by step.

    Memory is not looked at. With overlapped or duplex transfers, where a load is a maximum, a mean of
    its parts stands for it. GPipe's objective is no smaller than any device's two loads together.

    Parameters
    ----------
    problem
        The problem.
    relaxation
        The bound and the weights to start from.
    left
        Returns how many seconds are left.

    Attributes
    ----------
    bound
        The best bound so far.
    """

    def __init__(
        self, problem: PartsProblem, relaxation: Relaxation, left: Callable[[], float] = lambda: np.inf
    ) -> None:
        self.problem, self.bound, self.left = problem, relaxation.bound, left
        self.weight = relaxation.weight
        self.oracles: Oracles | None = None
        self.last: Duel | None = None

    def rise(
        self, value: float, gap: float, stop: Callable[[], bool], found: Callable[[float], None]
    ) -> None:
        """Raise the bound towards a value until no more can be refuted.

        Parameters
        ----------
        value
            The best value known: what is above it need not be refuted.
        gap
            No bound above ``(1 - gap) * value`` is looked for.
        stop
            Asked between steps: should the search end with what it has?
        found
            Called with the bound after every threshold.
        """
        high = threshold = (1 - max(gap, FINEST)) * value
        while self.bound < threshold < np.inf:
            duel = self._duel(threshold)
            if duel is None:
                return
            ratio = duel.fight(stop)
            self._learn(duel, ratio)
            found(self.bound)
            if ratio <= SURE:
                high = threshold
            if high - self.bound <= CLOSE * high or stop():
                return
            threshold = (self.bound + high) / 2

    def _duel(self, threshold: float) -> Duel | None:
        """A duel with about this threshold, None if the states are too many.

        The last one goes on if its own threshold is as good.
        """
        oracles = self.oracles
        if oracles is None or (not oracles.ready and threshold < FEWER * oracles.threshold):
            self.oracles = oracles = Oracles(self.problem, threshold, self.left)
        if not oracles.ready:
            return None
        last = self.last
        if last is None or not threshold <= last.threshold <= threshold * (1 + CLOSE):
            weight = self.weight if last is None else last.weight
            known = [] if last is None or threshold < last.threshold else last.columns
            self.last = last = Duel(oracles, threshold, weight, known)
        return last

    def _learn(self, duel: Duel, ratio: float) -> None:
        """Raise the bound to what the duel's weights refute."""
        if ratio > SURE:
            self.bound = max(self.bound, duel.threshold)
        else:
            lower = ratio * duel.threshold * (1 - NEARER)
            if lower > self.bound * (1 + NEARER):
                self.bound = max(self.bound, duel.refuted(lower))


class Duel:
    """Weights against one threshold.

    Parameters
    ----------
    oracles
        What makes the oracles of each threshold.
    threshold
        What is to be refuted.
    weight
        Shape (n,): the weights to start from.
    columns
        Known from a threshold that is no larger, one for each kind at a time.

    Attributes
    ----------
    weight
        The best weights so far.
    """

    def __init__(
        self, oracles: Oracles, threshold: float, weight: Floats, columns: Sequence[Columns] = ()
    ) -> None:
        self.count, self.source, self.threshold = oracles.count, oracles, threshold
        self.oracles = oracles.within(threshold)
        self.weight = weight + 1e-6 * max(weight.mean(), TINY)
        self.columns = list(columns)
        self.ratio = 0.0
        self.retries = RETRIES
        self.master: Master | None = None

    def fight(self, stop: Callable[[], bool]) -> float:
        """Improve the weights until they refute the threshold (a ratio above one), or cannot.

        Called again after a stop, it goes on where it was.
        """
        self.master = self.master or self._begin()
        idle = 0
        while self.ratio <= SURE and not stop():
            trial = self.master.best(self.ratio + NEARER / 10) if idle < PATIENCE else None
            if trial is None and not self._only_exact():
                break
            if trial is not None:
                idle = 0 if self._try(self.master, trial) else idle + 1
        return self.ratio

    def _begin(self) -> Master:
        self.ratio, columns = self.measure(self.weight)
        self.weight = self._scaled(self.weight, columns)
        self.columns.append(columns)
        master: type[Master] = imported(MASTER)
        return master(self.count, self.weight, self.columns)

    def _try(self, master: Master, trial: Floats) -> bool:
        """Measure weights and learn from that; are they better by more than a trifle?"""
        before = self.ratio
        ratio, columns = self.measure(trial)
        if ratio > before:
            self.ratio, self.weight = ratio, self._scaled(trial, columns)
        master.move(self.weight, ratio > before)
        master.add(columns)
        self.columns.append(columns)
        return ratio > before + NEARER / 10

    def _only_exact(self) -> bool:
        """Begin anew without mixtures, which promise too little; False if there are none, or it was tried."""
        exact = [columns for columns in self.columns if all(column.exact for column in columns)]
        if self.retries == 0 or len(exact) == len(self.columns):
            return False
        self.retries -= 1
        self.columns, self.oracles = exact, self.source.within(self.threshold)
        self.master = self._begin()
        return True

    def _scaled(self, weight: Floats, columns: Columns) -> Floats:
        """Return the weights in a unit in which all devices together hold n, as they are if nothing fits."""
        held = self.held(columns)
        return weight * (len(weight) / held) if held > 0 else weight

    def measure(self, weight: Floats) -> tuple[float, Columns]:
        """What everything weighs over what the devices can hold, and the columns that say so."""
        columns = [oracle(weight) for oracle in self.oracles]
        held = self.held(columns)
        return (float(weight.sum()) / held if held > 0 else np.inf), columns

    def held(self, columns: Columns) -> float:
        """What all devices can hold together."""
        return float(self.count @ [column.weight for column in columns])

    def refuted(self, threshold: float) -> float:
        """The threshold if the weights refute it as they are, else 0."""
        duel = Duel(self.source, threshold, self.weight)
        return threshold if duel.measure(duel.weight)[0] > SURE else 0.0
