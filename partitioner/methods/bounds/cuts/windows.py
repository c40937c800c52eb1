"""The work that a cut leaves on its left in windows, and the least cost of a cut in each of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from partitioner.methods.bounds.cuts.network import CutNetwork
from partitioner.problem.arrays import Bools, Floats, Ints


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
