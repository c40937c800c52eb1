"""The layers of a model on GPUs in order and on a CPU, or their experts alone on it, for the soonest token.

Labels of a prefix of the layers have the GPU that comes last, the device on which the prefix ends, the bytes
on that GPU and, if there may be too many, on the CPU, and the milliseconds so far. The next layer is put on
this GPU or a later one, or its experts on the CPU, or all of it, which adds its times and those of the
transfers; of two labels that end alike, one with more bytes and no less time is left out. As layers are of
few kinds, few labels are left, and the least time of the last layer is that of all ways. Of two layers, 1 ms
each on the GPU, with room for one, and 3 on the CPU, one is on each, which takes 4 ms and a transfer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.workload.graph import Floats

GPU, EXPERTS, HOST = range(3)  # all of a layer on the GPU, its experts on the CPU, or all


class LayerChoice(NamedTuple):
    """The number of the GPU that a layer is on, or that comes last before it, and what is on the CPU."""

    gpu: int
    choice: int


@dataclass(frozen=True, eq=False)
class OffloadedChain:
    """What layers take on GPUs, in their order, and on a CPU.

    Parameters
    ----------
    times, experts
        Milliseconds of each layer, and of its experts, a row for each GPU and the last one for the CPU, which
        is infinite without one, shape (GPUs + 1, layers).
    sizes, own
        Bytes of each layer, and of its experts, which are 0 where these have no choice, shape (layers,).
    room, host_room
        Bytes of each GPU, and of the CPU.
    sent
        Milliseconds in which a layer's result leaves or reaches a GPU, shape (layers,).
    """

    times: Floats
    experts: Floats
    sizes: Floats
    own: Floats
    room: Floats
    sent: Floats
    host_room: float = np.inf

    def best(self) -> tuple[float, list[LayerChoice]] | None:
        """Return the milliseconds of a token and where the layers are; None if they do not fit.

        Examples
        --------
        >>> times, none = np.array([[1.0, 1.0], [3.0, 3.0]]), np.zeros(2)
        >>> chain = OffloadedChain(times, 0 * times, np.ones(2), none, np.ones(1), none)
        >>> chain.best()
        (4.0, [LayerChoice(gpu=0, choice=2), LayerChoice(gpu=0, choice=0)])
        """
        labels = _Labels.first()
        steps = []
        for layer in range(len(self.sizes)):
            labels = self._next(labels, layer).kept()
            steps.append(labels)
            if not len(labels.cost):
                return None
        at = int(labels.cost.argmin())
        least, found = float(labels.cost[at]), []
        for step in reversed(steps):
            found.append(LayerChoice(int(step.gpu[at]), int(step.choice[at])))
            at = int(step.parent[at])
        return least, found[::-1]

    def _next(self, labels: _Labels, layer: int) -> _Labels:
        """Return the labels of one layer more."""
        found = [self._on_host(labels, layer)]
        choices = (GPU, EXPERTS) if self.own[layer] else (GPU,)
        for gpu, choice in product(range(len(self.room)), choices):
            chosen = np.flatnonzero(labels.gpu <= gpu)
            before = np.where(labels.gpu[chosen] == gpu, labels.used[chosen], 0.0)
            used = before + self.sizes[layer] - self.own[layer] * (choice == EXPERTS)
            hosted = self._hosted(labels, chosen, self.own[layer] * (choice == EXPERTS))
            fits = (used <= self.room[gpu]) & (hosted <= self.host_room)
            chosen, used, hosted = chosen[fits], used[fits], hosted[fits]
            same = (labels.gpu[chosen] == gpu) & ~labels.host[chosen]
            entered = np.where(same, 0.0, self._passed(layer) * np.where(labels.host[chosen], 1.0, 2.0))
            added = self.times[gpu, layer] + entered
            if choice == EXPERTS:
                moved = self.experts[-1, layer] - self.experts[gpu, layer]
                added = added + moved + self.sent[layer]
            found.append(labels.grown(chosen, gpu, choice, (used, hosted), added))
        return _Labels(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def _hosted(self, labels: _Labels, chosen: NDArray[np.int64], nbytes: float) -> Floats:
        """Return the bytes on the CPU of some labels with more there; 0 where all of it would fit."""
        return np.asarray(labels.hosted[chosen] + nbytes * (self.sizes.sum() > self.host_room))

    def _on_host(self, labels: _Labels, layer: int) -> _Labels:
        chosen = np.flatnonzero(np.isfinite(labels.cost + self.times[-1, layer]))
        hosted = self._hosted(labels, chosen, self.sizes[layer])
        chosen, hosted = chosen[hosted <= self.host_room], hosted[hosted <= self.host_room]
        left = np.where(labels.host[chosen], 0.0, self._passed(layer))
        return labels.grown(
            chosen, labels.gpu[chosen], HOST, (labels.used[chosen], hosted), self.times[-1, layer] + left
        )

    def _passed(self, layer: int) -> float:
        """Return the milliseconds in which a layer's input leaves or reaches a GPU; none for the first."""
        return float(self.sent[layer - 1]) if layer else 0.0


class _Labels(NamedTuple):
    """Ways to place a prefix of the layers, an entry each."""

    gpu: NDArray[np.int64]
    host: NDArray[np.bool_]
    used: Floats
    hosted: Floats
    cost: Floats
    parent: NDArray[np.int64]
    choice: NDArray[np.int64]

    @classmethod
    def first(cls) -> _Labels:
        """Return the label of no layers, at which no transfer is counted."""
        none, zero = np.zeros(1, dtype=np.int64), np.zeros(1)
        return cls(none, np.zeros(1, dtype=bool), zero, zero, zero, none, none)

    def grown(
        self,
        chosen: NDArray[np.int64],
        gpu: NDArray[np.int64] | int,
        choice: int,
        held: tuple[Floats, Floats],
        added: Floats,
    ) -> _Labels:
        """Return some labels with one layer more."""
        shape = len(chosen)
        return _Labels(
            np.broadcast_to(np.asarray(gpu, dtype=np.int64), shape),
            np.full(shape, choice != GPU),
            *held,
            self.cost[chosen] + added,
            chosen,
            np.full(shape, choice, dtype=np.int64),
        )

    def kept(self) -> _Labels:
        """Return the labels without those that another one is no worse than in bytes and time."""
        end = 2 * self.gpu + self.host
        order = np.lexsort((self.cost, self.used, self.hosted, end))
        places = zip(end[order].tolist(), self.hosted[order].tolist(), strict=True)
        best, kept, last = np.inf, [], (-1, 0.0)
        for at, place, cost in zip(order.tolist(), places, self.cost[order].tolist(), strict=True):
            if place != last:
                best, last = np.inf, place
            if cost < best:
                best = cost
                kept.append(at)
        return _Labels._make(each[kept] for each in self)
