"""A lower bound on every split that counts transfers: the covering relaxation.

Let T be the largest load of a placement, w >= 0 any weights of the supernodes, and f_k(w, T) the
largest weight that a single device of kind k can hold at a load of at most T. The devices together
hold everything, so

    sum over v of w_v  <=  sum over kinds k of  count_k f_k(w, T),

and weights that break this *refute* T: every placement has a larger load (this is the dual of the
Dantzig-Wolfe or set-covering relaxation; the linear relaxation of the integer program is weaker, as
it lets a device hold a fraction of every supernode and then cuts nothing). `cover_steps.py` and
`cover_pricing.py` compute f exactly, transfers included, by a dynamic program along the order of the
supernodes. Better weights come from a linear program over the columns so far (cutting planes in a trust
region): the largest ratio of what the supernodes weigh together to what the devices can hold is

    max sum of w_v  with  sum over k of count_k c_k = n  and  column . w <= c_k  for every column of k.

Its optimum is too large while columns are missing, so the weights are kept near the best ones known.
The bound is the largest T refuted, which is searched for.

Without it the bound is lower on 6 of the 16 published free splits and 5 convex ones (scripts/ablations.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from ortools.math_opt.python import mathopt

from partitioner.base.registry import imported
from partitioner.methods.bounds.cover_pricing import Columns, FractionOracle, Oracle, SetOracle
from partitioner.methods.bounds.cover_steps import Ways, enumerate_ways, steps_of
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.halving import Halving
from partitioner.methods.method import Settings
from partitioner.methods.solvers.backends.backend import Answer, apart, guarded
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import ChainProblem, PartsProblem


@dataclass(frozen=True)
class CoverEffort:
    """How many ways to fill a device are enumerated, and how thresholds rise.

    Measured at half and at twice each value on three inference workloads of `instances/` (bert24, gnmt,
    resnet50), free splits, at most 100 steps. The mean of the bounds is 12 % higher with twice `level`, 7 %
    with twice `shrink`, with which no step narrows the radius, and with half of `patience`; it is 5, 3, 1
    and 1 % lower with half of `level`, `grow`, `shrink` and `widen`. On NASNet mobile with 8 devices, where
    a bound takes most of the time, twice `level` needs 159 steps for 128 to refute it. `states` changes
    nothing; `nearer`, `close`, `finest` and `fewer` changed nothing by more than 0.02 % before `level` came.

    Parameters
    ----------
    states
        The most states of the ways to fill a device of a kind.
    level
        The part of the distance to 1 by which the known columns must let a step raise the ratio.
    shrink, grow, widen
        The factors of the radius of steps: after a step that is no better, after a better one, and where the
        weights could be better outside.
    whole
        The radius over the number of supernodes that counts as none.
    patience
        Steps without a better ratio after which a threshold is given up.
    nearer, close, finest
        The least step of a bound, the width of a bracket that is not halved any more, and the least distance
        from the value, as fractions.
    fewer
        The fraction of the last threshold below which there may be few enough states to enumerate them again.
    """

    states: int = 4_000_000
    level: float = 0.3
    shrink: float = 0.7
    grow: float = 1.25
    widen: float = 10.0
    whole: float = 10.0
    patience: int = 60
    nearer: float = 1e-3
    close: float = 1e-3
    finest: float = 1e-4
    fewer: float = 0.95


EFFORT = CoverEffort()


class Master:
    """The linear program and its trust region.

    Parameters
    ----------
    count
        Shape (kinds,): devices of every kind.
    weight
        Shape (n,): the first weights.
    columns
        The columns known so far.

    Attributes
    ----------
    centre
        Shape (n,): the best weights so far, scaled so that the devices together hold `n`.
    """

    def __init__(self, count: Ints, weight: Floats, columns: Sequence[Columns]) -> None:
        self.n = len(weight)
        self.model = mathopt.Model()
        self.weights = [self.model.add_variable(lb=0.0) for _ in range(self.n)]
        self.holds = [self.model.add_variable(lb=0.0) for _ in count]
        capacity = sum(int(c) * hold for c, hold in zip(count, self.holds, strict=True))
        self.model.add_linear_constraint(capacity == self.n)
        self.model.maximize(mathopt.fast_sum(self.weights))
        self.centre = weight
        self.radius = np.maximum(weight, weight.mean())
        for each in columns:
            self.add(each)

    def add(self, columns: Columns) -> None:
        """Add a column for every kind."""
        for column, hold in zip(columns, self.holds, strict=True):
            members = np.flatnonzero(column.share).tolist()
            row = mathopt.LinearSum(float(column.share[v]) * self.weights[v] for v in members)
            self.model.add_linear_constraint(row <= hold)

    def move(self, weight: Floats, better: bool) -> None:
        """Move the centre to better weights and widen the trust region, or keep the centre and narrow it."""
        if better:
            self.centre = weight
        self.radius = self.radius * (EFFORT.grow if better else EFFORT.shrink)

    def best(self, least: float) -> Floats | None:
        """Return the best weights near the centre if the known columns allow them a ratio above `least`.

        The trust region widens until there are some; None if there are none anywhere.
        """
        while True:
            trial = self._near()
            if trial is not None and trial[1] > least:
                return trial[0]
            if self.radius.min() > EFFORT.whole * self.n:
                return None
            self.radius = self.radius * EFFORT.widen

    def _near(self) -> tuple[Floats, float] | None:
        """Return the best weights in the trust region and the ratio that the known columns allow them."""
        low, high = np.maximum(self.centre - self.radius, 0.0), self.centre + self.radius
        for variable, least, most in zip(self.weights, low.tolist(), high.tolist(), strict=True):
            variable.lower_bound, variable.upper_bound = least, most
        answer = apart(lambda: guarded(self._solved))
        if answer.values is None:
            return None
        weight = np.maximum(answer.values, 0.0)
        return np.where(weight > 1e-7, weight, 0.0), answer.bound / self.n

    def _solved(self) -> Answer:
        result = mathopt.solve(self.model, mathopt.SolverType.HIGHS)
        if not result.has_primal_feasible_solution():
            return Answer("infeasible")
        return Answer("optimal", np.array(result.variable_values(self.weights)), result.objective_value())


ROUNDING = 1e-12


class Shares(NamedTuple):
    """Factors of processing and of transfers whose weighted sum is a load, or a lower bound on it."""

    processing: float
    transfers: float


SHARES = {
    "sequential": Shares(1.0, 1.0),
    "overlapped": Shares(0.5, 0.5),
    "duplex": Shares(0.5, 0.25),
}
FREE = Shares(1.0, 0.0)
STATE_BYTES = 150  # of the states of all thresholds and of one, and of prices for them


class Oracles:
    """The source of oracles for all thresholds up to a largest one.

    Parameters
    ----------
    problem
        The problem.
    threshold
        The largest threshold of interest.
    left
        Function that returns how many seconds are left.
    memory
        Bytes that the states of all kinds may take, and the labels of a search.

    Attributes
    ----------
    count
        Shape (kinds present,): devices of each kind that is present.
    ready
        False if there are too many states, or the time ended before they were enumerated.
    """

    def __init__(
        self,
        problem: PartsProblem,
        threshold: float,
        left: Callable[[], float] = lambda: np.inf,
        memory: float = np.inf,
    ) -> None:
        self.left, self.memory = left, memory
        self.time = problem.work()
        self.threshold = threshold
        self.kinds = np.flatnonzero(problem.count > 0).tolist()
        self.count = problem.count[self.kinds]
        whole = [kind for kind in self.kinds if problem.pays[kind] or problem.contiguous[kind]]
        most = int(min(EFFORT.states, memory / (STATE_BYTES * max(len(whole), 1))))
        self.ways = {kind: self._ways(problem, kind, most) for kind in whole}
        self.ready = None not in self.ways.values()

    def within(self, threshold: float) -> list[Oracle]:
        """Return an oracle for each kind that is present."""
        return [self._oracle(kind, threshold * (1 + ROUNDING)) for kind in self.kinds]

    def _oracle(self, kind: int, threshold: float) -> Oracle:
        ways = self.ways.get(kind)
        if ways is None:
            return FractionOracle(self.time[kind], threshold)
        return SetOracle(ways.within(threshold), threshold, self.left, self.memory)

    def _ways(self, problem: PartsProblem, kind: int, most: int) -> Ways | None:
        """Return the ways to fill a device of a kind; None if they have more than `most` states."""
        shares = SHARES[problem.communication] if problem.pays[kind] else FREE
        transfers = problem.nets.cost * problem.transfer_factor[kind] * shares.transfers
        steps = steps_of(problem, transfers, bool(problem.contiguous[kind]), self.left)
        if steps is None:
            return None
        return enumerate_ways(steps, self.time[kind] * shares.processing, self.threshold, most, self.left)


MASTER = "partitioner.methods.bounds.cover:Master"  # imported when it is needed, as it loads a solver
SURE = 1 + 1e-9
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
    unit
        Loads are sums of multiples of it that are exact; 0 where none is known.
    memory
        Bytes that the states of the ways to fill devices may take.

    Attributes
    ----------
    bound
        The best bound so far.
    """

    def __init__(
        self,
        problem: PartsProblem,
        relaxation: Relaxation,
        left: Callable[[], float] = lambda: np.inf,
        unit: float = 0.0,
        memory: float = np.inf,
    ) -> None:
        self.problem, self.bound, self.left, self.unit = problem, relaxation.bound, left, unit
        self.memory = memory
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
        halving = Halving(self.bound, (1 - max(gap, EFFORT.finest)) * value)
        for middle in halving.thresholds():
            threshold = self._whole(middle)
            if threshold < self.bound:
                return
            refutation = self._refutation(threshold) if threshold < np.inf else None
            if refutation is None:
                return
            ratio = refutation.run(stop)
            self._learn(refutation, ratio)
            found(self.bound)
            halving.bound = self.bound
            if ratio <= SURE:
                halving.high = threshold
            if halving.high - self.bound <= EFFORT.close * halving.high or stop():
                return

    def _refutation(self, threshold: float) -> Refutation | None:
        """Return a refutation with about this threshold; None if the states are too many.

        The last refutation is returned again if its threshold is close enough.
        """
        oracles = self.oracles
        if oracles is None or (not oracles.ready and threshold < EFFORT.fewer * oracles.threshold):
            self.oracles = oracles = Oracles(self.problem, threshold, self.left, self.memory)
        if not oracles.ready:
            return None
        last = self.last
        if last is None or not threshold <= last.threshold <= threshold * (1 + EFFORT.close):
            weight = last.weight if last is not None and last.ratio > SURE else self.weight
            known = [] if last is None or threshold < last.threshold else last.columns
            self.last = last = Refutation(oracles, threshold, weight, known)
        return last

    def _learn(self, refutation: Refutation, ratio: float) -> None:
        """Raise the bound to what the refutation's weights refute."""
        if ratio > SURE:
            self.bound = max(self.bound, self._next(refutation.threshold))
        else:
            lower = ratio * refutation.threshold * (1 - EFFORT.nearer)
            if lower > self.bound * (1 + EFFORT.nearer):
                self.bound = max(self.bound, self._next(refutation.refuted(lower)))

    def held(self, threshold: float) -> tuple[Floats, Floats] | None:
        """Return the best weights, and the most that one device of each kind holds at a threshold.

        None before :meth:`rise` has found weights, and for a higher threshold than it has tried.
        """
        oracles, last = self.oracles, self.last
        if oracles is None or last is None or threshold > oracles.threshold:
            return None
        most = np.zeros(len(self.problem.count))
        most[oracles.kinds] = [
            oracle.exact(last.weight, oracle.quick(last.weight)).weight
            for oracle in oracles.within(threshold)
        ]
        return last.weight, most

    def _whole(self, load: float) -> float:
        """Return the largest load up to the given one that devices can have."""
        return float(np.floor(load / self.unit) * self.unit) if self.unit else load

    def _next(self, refuted: float) -> float:
        """Return the bound that follows from a threshold that is refuted; 0 if none is."""
        return self._whole(refuted) + self.unit if refuted else 0.0


def covering_of(
    problem: ChainProblem, relaxation: Relaxation, settings: Settings, unit: float = 0.0
) -> Covering:
    """Return the covering bound of contiguous sets, with the time and the memory that a run has.

    Parameters
    ----------
    problem, relaxation, unit
        As of :class:`Covering`.
    settings
        Say when the run must end, and how much memory it may take. A run by the clock makes no more labels
        than the time that is left allows.
    """

    def left() -> float:
        if settings.expired:
            return 0.0
        return np.inf if settings.deterministic else settings.clock.left

    return Covering(PartsProblem.around(problem), relaxation, left, unit, settings.memory_budget)


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
        self.master: Master | None = None

    def run(self, stop: Callable[[], bool]) -> float:
        """Improve the weights until they refute the threshold or cannot be improved; return their ratio.

        A ratio above one refutes the threshold. A second call after a stop continues the first one.
        """
        self.master = self.master or self._begin()
        idle = 0
        while self.ratio <= SURE and idle < EFFORT.patience and not stop():
            rise = max(EFFORT.nearer / 10, EFFORT.level * (1 - self.ratio))
            trial = self.master.best(self.ratio + rise)
            if trial is None:
                break
            idle = 0 if self._try(self.master, trial) else idle + 1
        return self.ratio

    def _begin(self) -> Master:
        self.ratio, columns = self.measure(self.weight)
        self.weight = self._scaled(self.weight, columns[-1])
        self.columns += columns
        master: type[Master] = imported(MASTER)
        return master(self.count, self.weight, self.columns)

    def _try(self, master: Master, trial: Floats) -> bool:
        """Measure weights and add their columns to the master; return whether the ratio rose notably."""
        before = self.ratio
        ratio, columns = self.measure(trial, before)
        if ratio > before:
            self.ratio, self.weight = ratio, self._scaled(trial, columns[-1])
        master.move(self.weight, ratio > before)
        for each in columns:
            master.add(each)
        self.columns += columns
        return ratio > before + EFFORT.nearer / 10

    def _scaled(self, weight: Floats, columns: Columns) -> Floats:
        """Return the weights scaled so that all devices together hold n; unchanged if nothing fits."""
        held = self.held(columns)
        return weight * (len(weight) / held) if held > 0 else weight

    def measure(self, weight: Floats, above: float = 0.0) -> tuple[float, list[Columns]]:
        """Return the weight of all supernodes over what the devices can hold, and heavy columns.

        The kinds that hold the most are searched first, until the weights are known to be no better than a
        ratio `above`; a lower bound is returned then.
        """
        quick = [oracle.quick(weight) for oracle in self.oracles]
        held, found = self._known(weight, quick), quick
        for k in np.argsort(-self.count * held).tolist():
            if weight.sum() <= above * (self.count @ held):
                break
            found = [*found[:k], self.oracles[k].exact(weight, quick[k]), *found[k + 1 :]]
            held[k] = found[k].weight
        return self._ratio(weight, found), [quick] if found is quick else [quick, found]

    def _known(self, weight: Floats, quick: Columns) -> Floats:
        """Return the weight of the heaviest known column of each kind, shape (kinds,)."""
        known = (np.array([each[k].share for each in (*self.columns, quick)]) for k in range(len(quick)))
        return np.array([(shares @ weight).max() for shares in known])

    def _ratio(self, weight: Floats, columns: Columns) -> float:
        held = self.held(columns)
        return float(weight.sum()) / held if held > 0 else np.inf

    def held(self, columns: Columns) -> float:
        """Return the weight that all devices together can hold."""
        return float(self.count @ [column.weight for column in columns])

    def refuted(self, threshold: float) -> float:
        """Return the threshold if the current weights refute it, else 0."""
        refutation = Refutation(self.source, threshold, self.weight)
        return threshold if refutation.measure(refutation.weight)[0] > SURE else 0.0
