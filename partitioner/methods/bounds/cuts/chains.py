"""What is known of all chains whose loads keep to a threshold: where their cuts are, and what these cost."""

from __future__ import annotations

from copy import copy

import numpy as np

from partitioner.methods.bounds.cover.pricing import FractionOracle
from partitioner.methods.bounds.cuts.network import ROUNDING, CutNetwork
from partitioner.methods.bounds.cuts.paths import LAST, NEXT, PAYING, UNUSED, Paths, Steps, cheapest_paths
from partitioner.methods.bounds.cuts.windows import CutWindows
from partitioner.problem.arrays import Bools, Floats

ROUNDS = 12  # of smaller windows for one threshold


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
            held = FractionOracle(self.free_time, threshold)(self.network.work).weight
        for _ in range(ROUNDS):
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
