"""The search for the largest load that can be refuted, which is a lower bound on every placement."""

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
PATIENCE = 40  # steps without a better ratio after which a threshold is given up
RETRIES = 2
SURE = 1 + 1e-9
NEARER = 1e-3
CLOSE = 1e-3
FINEST = 1e-4
FEWER = 0.95  # of the last threshold: below it there may be few enough states to enumerate them again
TINY = 1e-300


class Covering:
    """A lower bound on the objective of every split of the problem's shape, raised step by step.

    Memory is ignored. With overlapped or duplex transfers, where a load is a maximum, a mean of the two or
    three terms takes its place, which is no larger. Where passes have loads of their own, the objective is
    no smaller than the two loads of any device together.

    Parameters
    ----------
    problem
        The problem.
    relaxation
        The bound and the weights to start from.
    left
        Function that returns how many seconds are left.

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
        self.last: Refutation | None = None

    def rise(
        self, value: float, gap: float, stop: Callable[[], bool], found: Callable[[float], None]
    ) -> None:
        """Raise the bound towards a value until no higher threshold can be refuted.

        Parameters
        ----------
        value
            The best value known; no threshold above it is tried.
        gap
            No threshold above ``(1 - gap) * value`` is tried.
        stop
            Function called between steps: whether the search should end with its best bound so far.
        found
            Function called with the bound after every threshold.
        """
        high = threshold = (1 - max(gap, FINEST)) * value
        while self.bound < threshold < np.inf:
            refutation = self._refutation(threshold)
            if refutation is None:
                return
            ratio = refutation.run(stop)
            self._learn(refutation, ratio)
            found(self.bound)
            if ratio <= SURE:
                high = threshold
            if high - self.bound <= CLOSE * high or stop():
                return
            threshold = (self.bound + high) / 2

    def _refutation(self, threshold: float) -> Refutation | None:
        """Return a refutation with about this threshold; None if the states are too many.

        The last refutation is returned again if its threshold is close enough.
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
            self.last = last = Refutation(oracles, threshold, weight, known)
        return last

    def _learn(self, refutation: Refutation, ratio: float) -> None:
        """Raise the bound to what the refutation's weights refute."""
        if ratio > SURE:
            self.bound = max(self.bound, refutation.threshold)
        else:
            lower = ratio * refutation.threshold * (1 - NEARER)
            if lower > self.bound * (1 + NEARER):
                self.bound = max(self.bound, refutation.refuted(lower))


class Refutation:
    """The attempt to refute one threshold by weights of the supernodes.

    Parameters
    ----------
    oracles
        Makes the oracles for each threshold.
    threshold
        The largest load that is to be refuted.
    weight
        Shape (n,): the weights to start from.
    columns
        Columns from thresholds that are no larger, for each kind of device one at a time.

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

    def run(self, stop: Callable[[], bool]) -> float:
        """Improve the weights until they refute the threshold or cannot be improved; return their ratio.

        A ratio above one refutes the threshold. A second call after a stop continues the first one.
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
        """Measure weights and add their columns to the master; return whether the ratio rose notably."""
        before = self.ratio
        ratio, columns = self.measure(trial)
        if ratio > before:
            self.ratio, self.weight = ratio, self._scaled(trial, columns)
        master.move(self.weight, ratio > before)
        master.add(columns)
        self.columns.append(columns)
        return ratio > before + NEARER / 10

    def _only_exact(self) -> bool:
        """Start again without mixtures, which make ratios too small; False if that cannot help any more."""
        exact = [columns for columns in self.columns if all(column.exact for column in columns)]
        if self.retries == 0 or len(exact) == len(self.columns):
            return False
        self.retries -= 1
        self.columns, self.oracles = exact, self.source.within(self.threshold)
        self.master = self._begin()
        return True

    def _scaled(self, weight: Floats, columns: Columns) -> Floats:
        """Return the weights scaled so that all devices together hold n; unchanged if nothing fits."""
        held = self.held(columns)
        return weight * (len(weight) / held) if held > 0 else weight

    def measure(self, weight: Floats) -> tuple[float, Columns]:
        """Return the weight of all supernodes over what the devices can hold, and the heaviest columns."""
        columns = [oracle(weight) for oracle in self.oracles]
        held = self.held(columns)
        return (float(weight.sum()) / held if held > 0 else np.inf), columns

    def held(self, columns: Columns) -> float:
        """Return the weight that all devices together can hold."""
        return float(self.count @ [column.weight for column in columns])

    def refuted(self, threshold: float) -> float:
        """Return the threshold if the current weights refute it, else 0."""
        refutation = Refutation(self.source, threshold, self.weight)
        return threshold if refutation.measure(refutation.weight)[0] > SURE else 0.0
