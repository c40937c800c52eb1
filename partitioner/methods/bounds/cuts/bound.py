"""A lower bound on the largest load of a chain, which counts the tensors that its cuts must move.

Let k equal devices pay for transfers, and let T be the largest load. The work on the left of a cut lies in
one of many windows, and a minimum cut bounds what a cut in a window tears
(:mod:`partitioner.methods.bounds.cuts.network`). All loads together are the work and the transfers. The
cheapest sequence of cuts (:mod:`partitioner.methods.bounds.cuts.paths`) bounds the transfers; the work
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
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partitioner.methods.bounds.cuts.chains import LightChains
from partitioner.methods.bounds.cuts.known import paying
from partitioner.methods.bounds.cuts.network import CutNetwork
from partitioner.methods.bounds.cuts.windows import CutWindows
from partitioner.problem.variants import ChainProblem

SURE = 1 - 1e-9
FEW = 128  # windows
PER_SUPERNODE, STEPS = 2, 2**21  # most windows for each supernode, and pairs of windows for all cuts together
HALVINGS = 8
CLOSE = 1e-3  # of the value: a narrower bracket is not halved again


class CutBound:
    """The bound for one problem, for which it :func:`~partitioner.methods.bounds.cuts.known.holds`.

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
        most = min(PER_SUPERNODE * len(self.network.work), int((STEPS / self.count) ** 0.5))
        for windows in sorted({min(most, FEW), most}):
            bound = self._risen(self._chains(windows), bound, value)
        return min(bound, value)

    def least(self, threshold: float) -> float:
        """Return a lower bound on every chain whose largest load is at most the threshold, by few windows."""
        return self._chains(min(FEW, PER_SUPERNODE * len(self.network.work))).least(threshold) * SURE

    def _risen(self, chains: LightChains, bound: float, value: float) -> float:
        high = threshold = value
        for _ in range(HALVINGS):
            if self.stop() or high - bound <= CLOSE * value:
                break
            tried = chains.copy()
            least = tried.least(threshold) * SURE
            bound = max(bound, min(threshold, least))
            if least < threshold:
                high, chains = threshold, tried
            threshold = (bound + high) / 2
        return bound

    def _chains(self, windows: int) -> LightChains:
        divided = CutWindows(self.network, windows, self.stop)
        return LightChains(self.network, self.count, self.free_time, divided)
