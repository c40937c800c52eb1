"""A lower bound on the largest load of a chain, which counts the tensors that its cuts must move.

Let k equal devices pay for transfers, and let T be the largest load. The work on the left of a cut lies in
one of many windows, and a minimum cut bounds what a cut in a window tears
(:mod:`partitioner.methods.bounds.cut_network`). All loads together are the work and the transfers. The
cheapest sequence of cuts (:mod:`partitioner.methods.bounds.cuts`) bounds the transfers; the work
between two cuts and what their stage pays for both are at most T.

Two stages at least pay for a torn net. A net may be torn by several cuts, but counts once. Every stage does
some least work, which the others cannot take, so a net is torn by at most m cuts if m times that exceeds the
most work between two cuts that tear it; each cut is given the m-th part of the cost. Where m is 1 both stages
beside the cut pay, which holds for every stage alone.

A single device that pays for no transfers, a CPU, may take one more stage. It holds limited work, and one
side of its two cuts pays nothing. A net that one of these tears and m - 1 others may be paid for only once:
if m is more than 1 it counts nothing at the free device, and at every other cut a half of the (m - 1)-th part
for each side.

What is known of chains with loads of at most T narrows the windows that their cuts may be in, so that stages
do more work and fewer nets are torn twice. It holds for every smaller T as well.

What is known of all chains whose loads keep to a threshold: where their cuts are, and what these cost.

The cheapest sequences of cuts through windows of work, from nothing on the left to everything.

A cut is numbered by the paying stages on its left, and has a phase: the free device is not in use yet, has
the next stage, had the last one, or is further to the left. Without a free device the first is the only one.

Without it the bound is lower on 7 of 12 networks with wide branchings, by 0.7 to 4.2 %
(scripts/ablations.py).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from partitioner.methods.bounds.cut_network import ROUNDING, CutNetwork
from partitioner.methods.bounds.relaxation import fullest
from partitioner.methods.halving import Halving
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.measure import Measure
from partitioner.problem.variants import ChainProblem


class CutWindows:
    """Windows of equal width, in order; the first and the last hold the cuts that leave nothing on a side.

    Parameters
    ----------
    network, windows
        The network that is cut, and how many windows of more than one point there are.
    stop
        Function called between two minimum cuts: whether to end with the costs known.

    Attributes
    ----------
    low, high
        Shape (W,) each: the least and the most work on the left.
    possible
        Shape (W,): whether there is a cut in the window.
    may_tear
        Shape (W, nets): whether a cut in the window may tear the net.
    once, shared
        Shape (W,): lower bounds on what a cut costs, with the weights that were last given to nets.
    """

    def __init__(self, network: CutNetwork, windows: int, stop: Callable[[], bool]) -> None:
        self.network, self.stop = network, stop
        edges = np.linspace(0.0, network.total, windows + 1)
        self.low = np.concatenate((edges[:1], edges[:-1], edges[-1:]))
        self.high = np.concatenate((edges[:1], edges[1:], edges[-1:]))
        pairs = zip(self.low.tolist(), self.high.tolist(), strict=True)
        self.places = [network.places(low, high) for low, high in pairs]
        self.possible = np.array([place is not None for place in self.places])
        nothing = np.zeros(len(network.cost), dtype=bool)
        tears = [nothing if place is None else network.may_tear(place) for place in self.places]
        self.may_tear: Bools = np.array(tears)
        self.once, self.shared = np.zeros(len(self.low)), np.zeros(len(self.low))
        self._weights: dict[int, bytes] = {}

    def copy(self) -> CutWindows:
        """Return a copy whose costs can be raised without a change of these."""
        other = copy(self)
        other.once, other.shared = self.once.copy(), self.shared.copy()
        other._weights = self._weights.copy()
        return other

    def raise_costs(self, wanted: Ints, once: Floats, shared: Floats) -> bool:
        """Raise the costs of the windows wanted; return whether any of them has new weights.

        Parameters
        ----------
        wanted
            Numbers of windows in which there is a cut.
        once, shared
            Shape (nets,): the weights of nets, not below those of an earlier call; `shared` is not
            below `once`.
        """
        changed = False
        for window in wanted.tolist():
            torn = self.may_tear[window]
            key = np.concatenate((once[torn], shared[torn])).tobytes()
            if self._weights.get(window) == key or self.stop():
                continue
            changed, self._weights[window] = True, key
            self.once[window] = max(self.once[window], self._cost(window, once))
            same = np.array_equal(once[torn], shared[torn])
            cost = self.once[window] if same else self._cost(window, shared)
            self.shared[window] = max(self.shared[window], self.once[window], cost)
        return changed

    def _cost(self, window: int, weight: Floats) -> float:
        place, low, high = self.places[window], float(self.low[window]), float(self.high[window])
        return 0.0 if place is None else self.network.least_cost(place, low, high, weight)


@dataclass(frozen=True)
class CutEffort:
    """How many windows are cut, and how often.

    Parameters
    ----------
    most
        The most supernodes of a problem that is bounded.
    rounds
        Rounds of smaller windows for one threshold.
    few
        The windows with which the bound rises first.
    each, together
        The most windows for each supernode, and the most pairs of windows for all cuts.
    halvings, close
        A bracket is halved at most that often, and not once it is this part of the value.
    """

    most: int = 4_000
    rounds: int = 12
    few: int = 128
    each: int = 2
    together: int = 2**21
    halvings: int = 8
    close: float = 1e-3


EFFORT = CutEffort()


def holds(problem: ChainProblem) -> bool:
    """Whether the bound holds, and transfers cost anything.

    One kind of device pays for transfers, which are added to processing; there is one other device at most.
    """
    plain = problem.communication == "sequential" and problem.measure is Measure.LARGEST_LOAD
    free = (problem.count > 0) & ~problem.pays
    few = paying(problem).sum() == 1 and int(problem.count[free].sum()) <= 1
    costs = problem.pipeline is None and problem.nets.cost.sum() > 0
    return bool(plain and few and costs and problem.n <= EFFORT.most)


def paying(problem: ChainProblem) -> Bools:
    """Return whether each kind is present and pays for transfers, shape (K,)."""
    return (problem.count > 0) & problem.pays


UNUSED, NEXT, LAST, USED = range(4)
PAYING = (
    (UNUSED, UNUSED),
    (UNUSED, NEXT),
    (LAST, USED),
    (USED, USED),
)  # phases at both ends of a paying stage


class Steps(NamedTuple):
    """Whether a stage may begin at a cut in one window and end at a cut in another, shape (W, W) each."""

    paying: Bools
    free: Bools


class Paths(NamedTuple):
    """What the cuts of a sequence cost at least, shape (count + 1, 4, W) each, infinity if there is none.

    Parameters
    ----------
    ahead, behind
        Cost of a cut and of all cuts before it, and after it.
    cost
        Shape (4, W): cost of a cut in each phase, for all devices that pay.
    """

    ahead: Floats
    behind: Floats
    cost: Floats

    @property
    def through(self) -> Floats:
        """The least cost of a sequence through each cut."""
        return self.ahead + self.behind - self.cost


def cheapest_paths(steps: Steps, allowed: Bools, both: Floats, one: Floats) -> Paths:
    """Return the least cost of sequences of cuts.

    Parameters
    ----------
    steps
        The stages that are possible.
    allowed
        Shape (count + 1, 4, W): the cuts that are possible.
    both, one
        Shape (W,): the cost of a cut for each side if both pay, and where only one side pays.
    """
    cost = np.array([2 * both, one, one, 2 * both])
    last = len(allowed) - 1
    ahead, behind = np.full(allowed.shape, np.inf), np.full(allowed.shape, np.inf)
    ahead[0, [UNUSED, NEXT], 0] = 0.0
    behind[last, [UNUSED, LAST, USED], -1] = 0.0
    for number in range(last + 1):
        if number:
            for start, end in PAYING:
                reached = _forwards(ahead[number - 1, start], steps.paying) + cost[end]
                ahead[number, end] = np.minimum(ahead[number, end], reached)
        ahead[number][~allowed[number]] = np.inf
        reached = _forwards(ahead[number, NEXT], steps.free) + cost[LAST]
        ahead[number, LAST] = np.where(allowed[number, LAST], reached, np.inf)
    for number in range(last, -1, -1):
        if number < last:
            for start, end in PAYING:
                reached = _forwards(behind[number + 1, end], steps.paying.T) + cost[start]
                behind[number, start] = np.minimum(behind[number, start], reached)
        behind[number][~allowed[number]] = np.inf
        reached = _forwards(behind[number, LAST], steps.free.T) + cost[NEXT]
        behind[number, NEXT] = np.where(allowed[number, NEXT], reached, np.inf)
    return Paths(ahead, behind, cost)


def _forwards(cost: Floats, step: Bools) -> Floats:
    """Return the least cost with which each window is reached by one step."""
    reached: Floats = np.where(step, cost[:, None], np.inf).min(axis=0)
    return reached


class LightChains:
    """The chains in which no load exceeds a threshold, which may be lowered.

    Parameters
    ----------
    network, count
        The network that chains cut, and how many devices pay.
    free_time
        Shape (n,): the time of every supernode on the device that does not pay; None if there is none.
    windows
        The windows of work on the left of a cut, whose costs are raised.
    """

    def __init__(
        self, network: CutNetwork, count: int, free_time: Floats | None, windows: CutWindows
    ) -> None:
        self.network, self.count, self.free_time, self.windows = network, count, free_time, windows
        self.allowed = np.zeros((count + 1, 4, len(self.windows.low)), dtype=bool)
        self.allowed[:, : UNUSED + 1 if free_time is None else 4] = self.windows.possible
        self.torn = np.full(len(network.cost), count + 1.0)

    def copy(self) -> LightChains:
        """Return a copy that can be asked about a lower threshold without a change of this one."""
        other = copy(self)
        other.windows, other.allowed = self.windows.copy(), self.allowed.copy()
        return other

    def least(self, threshold: float) -> float:
        """Return a lower bound on their largest load; thresholds must not rise from call to call."""
        total = self.network.total
        held = 0.0
        if self.free_time is not None:
            held = float(fullest(self.free_time, self.network.work, threshold) @ self.network.work)
        for _ in range(EFFORT.rounds):
            paid, work = self._narrowed(threshold, held)
            if np.isinf(paid) or self.windows.stop() or not self._raise_costs(work):
                break
        return (total - held + paid) / self.count

    def _narrowed(self, threshold: float, held: float) -> tuple[float, float]:
        """Leave out cuts that no such chain has; return the cost of cuts and the work of a paying stage."""
        once, shared, slack = self.windows.once, self.windows.shared, ROUNDING * self.network.total
        spare = self.count * threshold - self.network.total + held + slack
        steps = self._steps(threshold + slack, held + slack)
        single = cheapest_paths(steps, self.allowed, once, once)
        self.allowed &= (single.through <= spare) & self._fit(single, threshold, held, slack)
        paths = cheapest_paths(steps, self.allowed, shared, once)
        self.allowed &= paths.through <= spare
        return float(paths.through.min()), self._least_work(steps, single, paths, threshold, spare)

    def _steps(self, threshold: float, held: float) -> Steps:
        """Return the stages that fit a device; both stages beside a cut pay for what is torn once."""
        windows = self.windows
        width = windows.low[None, :] - windows.high[:, None]
        later = np.tri(len(width), dtype=bool).T
        paid = windows.once[None, :] + windows.once[:, None]
        return Steps(later & (width <= threshold - paid), later & (width <= held))

    def _fit(self, single: Paths, threshold: float, held: float, slack: float) -> Bools:
        """Return whether the stages on each side of a cut can hold the work there and what they pay."""
        once, windows, total = self.windows.once, self.windows, self.network.total
        left, right = np.tile(once, (4, 1)), np.tile(once, (4, 1))
        left[NEXT], right[LAST] = 0.0, 0.0  # the other side does not pay
        number = np.arange(self.count + 1.0)[:, None, None]
        free = np.arange(4)[:, None] >= LAST
        before = number * threshold + np.where(free, held, 0.0) - (single.ahead - left)
        after = (self.count - number) * threshold + np.where(free, 0.0, held) - (single.behind - right)
        fit: Bools = (windows.low <= before + slack) & (windows.high >= total - after - slack)
        return fit

    def _least_work(self, steps: Steps, single: Paths, paths: Paths, threshold: float, spare: float) -> float:
        """Return the least work of a paying stage: its own width, and what others cannot take."""
        windows, least = self.windows, np.inf
        width = windows.low[None, :] - windows.high[:, None]
        own = windows.once[None, :] + windows.once[:, None]
        taken = threshold - spare  # by the others, if they pay for nothing
        for number in range(self.count):
            for start, end in PAYING:
                cost = paths.ahead[number, start][:, None] + paths.behind[number + 1, end][None, :]
                possible = steps.paying & (cost <= spare)
                others = single.ahead[number, start][:, None] + single.behind[number + 1, end][None, :] - own
                work = np.maximum(width, others + taken)[possible]
                least = min(least, float(work.min(initial=np.inf)))
        return least

    def _raise_costs(self, work: float) -> bool:
        """Count nets that are torn less often, if every paying stage does so much work; return if any is."""
        windows = self.windows
        where = self.allowed.any(axis=1).astype(np.int64)
        places = (where @ windows.may_tear.astype(np.int64) > 0).sum(axis=0)
        torn = np.maximum(places, 1).astype(np.float64)
        if work > 0:
            torn = np.minimum(torn, 1 + np.floor(self.network.between / work * (1 + ROUNDING)))
        self.torn = torn = np.minimum(torn, self.torn)
        once = (torn <= 1).astype(np.float64)
        shared = (
            1 / torn if self.free_time is None else np.where(torn > 1, 0.5 / np.maximum(torn - 1, 1), 1.0)
        )
        wanted = np.flatnonzero(where.max(axis=0))
        return windows.raise_costs(wanted, once, shared)


SURE = 1 - 1e-9


class CutBound:
    """The bound for one problem, for which it :func:`~partitioner.methods.bounds.cuts.holds`.

    Parameters
    ----------
    problem
        The problem of a chain.
    stop
        Function called between two minimum cuts: whether to end with what is known.
    """

    def __init__(self, problem: ChainProblem, stop: Callable[[], bool] = lambda: False) -> None:
        self.stop = stop
        kind = int(np.flatnonzero(paying(problem))[0])
        time = problem.work()
        self.count = int(problem.count[kind])
        work = np.where(np.isfinite(time[kind]), time[kind], 0.0)
        self.network = CutNetwork(problem, work, problem.nets.cost * problem.transfer_factor[kind])
        free = np.flatnonzero((problem.count > 0) & ~problem.pays)
        self.free_time = time[free[0]] if len(free) else None

    def rise(self, bound: float, value: float) -> float:
        """Return the bound raised towards a value that some chain has, by few windows and then by many."""
        most = min(EFFORT.each * len(self.network.work), int((EFFORT.together / self.count) ** 0.5))
        for windows in sorted({min(most, EFFORT.few), most}):
            bound = self._risen(self._chains(windows), bound, value)
        return min(bound, value)

    def least(self, threshold: float) -> float:
        """Return a lower bound on every chain whose largest load is at most the threshold, by few windows."""
        return self._chains(min(EFFORT.few, EFFORT.each * len(self.network.work))).least(threshold) * SURE

    def _risen(self, chains: LightChains, bound: float, value: float) -> float:
        halving = Halving(bound, value)
        for threshold in islice(halving.thresholds(EFFORT.close * value), EFFORT.halvings):
            if self.stop():
                break
            tried = chains.copy()
            if halving.learn(threshold, tried.least(threshold) * SURE):
                chains = tried
        return halving.bound

    def _chains(self, windows: int) -> LightChains:
        divided = CutWindows(self.network, windows, self.stop)
        return LightChains(self.network, self.count, self.free_time, divided)
