"""The states of PipeDream's planner, at which a pipeline may be cut.

The graph as sets of layers, which are the bits of integers, and the steps between states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from partitioner.base.errors import Flaw, NoPlanFound, WorkloadError
from partitioner.methods.baselines.pipedream.layers import Layers
from partitioner.workload.graph import Bools, Floats


@register_jitable(inline="always")
def stage_time(compute: float, parameters: float, replicas: int, bandwidth: float, share: float) -> float:
    """Return the time per minibatch of a stage on `replicas` machines.

    Weights are synchronised by a ring all-reduce, which sends and receives them after the compute and not
    at the same time. The replicas process one minibatch each, so both times are divided by their number. The
    synchronisation is also divided by `share`, the number of machines that take part in it in parallel.
    """
    synchronisation = 4.0 * (replicas - 1) * parameters / (bandwidth * replicas) / share
    return (compute + synchronisation) / replicas


class Masks:
    """The relations of the layers.

    Attributes
    ----------
    consumers
        For each layer its consumers, in the order of the edges.
    producers, needs, feeds
        For each layer its producers, all its ancestors, and all its descendants.
    missed
        For each layer the ancestors with a consumer that is neither an ancestor nor the layer itself.
    """

    def __init__(self, layers: Layers) -> None:
        n = len(layers)
        self.consumers: list[list[int]] = [[] for _ in range(n)]
        self.producers = [0] * n
        for source, target in layers.edges.tolist():
            self.consumers[source].append(target)
            self.producers[target] |= 1 << source
        self.needs, self.feeds = [0] * n, [0] * n
        for v in layers.order.tolist():
            for w in self.consumers[v]:
                self.needs[w] |= self.needs[v] | 1 << v
        for v in layers.order[::-1].tolist():
            for w in self.consumers[v]:
                self.feeds[v] |= self.feeds[w] | 1 << w
        self.missed = [self._missed(v) for v in range(n)]

    def _missed(self, v: int) -> int:
        """Return the ancestors of `v` with a consumer that is neither an ancestor of `v` nor `v` itself."""
        known = self.needs[v] | 1 << v
        return sum(1 << u for u in bits(self.needs[v]) if any(not known >> w & 1 for w in self.consumers[u]))

    def ideal(self, antichain: int) -> int:
        """Return the layers of an antichain and all their ancestors."""
        for v in bits(antichain):
            antichain |= self.needs[v]
        return antichain

    def augmented(self, antichain: int) -> int:
        """Return the antichain with the layers that its elements miss."""
        for v in bits(antichain):
            antichain |= self.missed[v]
        return antichain

    def next_antichains(self, antichain: int) -> Iterator[int]:
        """Yield the antichains that one step leads to."""
        augmented = self.augmented(antichain)
        for u in bits(augmented):
            for w in self.consumers[u]:
                if not (antichain >> w & 1 or self.feeds[w] & augmented):
                    raised = augmented & ~(1 << u) | 1 << w
                    yield sum(1 << v for v in bits(raised) if not self.feeds[v] & raised)

    def next_ideals(self, ideal: int) -> Iterator[int]:
        """Yield the ideals with one more layer."""
        for v, producers in enumerate(self.producers):
            if not (ideal >> v & 1 or producers & ~ideal):
                yield ideal | 1 << v


def bits(mask: int) -> Iterator[int]:
    """Yield the layers of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


Look = Callable[[], None]


def no_look() -> None:
    """Do nothing: the default of `look`."""


class LayerIdeals(NamedTuple):
    """`S` ideals, smaller ones first; the last one holds every layer.

    Parameters
    ----------
    inside
        Shape (S, n): whether the layer is in the ideal.
    output
        Shape (S,): bytes that cross the cut, as the planner counts them.
    before
        Shape (S, S): whether a pipeline cut at the second state may be cut at the first one too.
    """

    inside: Bools
    output: Floats
    before: Bools


def antichain_states(layers: Layers, most: int, look: Look = no_look) -> LayerIdeals:
    """Return the antichains that PipeDream reaches from the first source by replacing layers by consumers.

    An antichain stands for its layers and all their ancestors. It is *augmented* by the ancestors of each
    element that have a consumer which is neither an ancestor of this element nor the element itself. The
    bytes of the augmented antichain are the state's output, so that an element whose consumers are all
    inside may count, and so does a result of the network. A step replaces an element of the augmented
    antichain by one of its consumers, unless that is an ancestor already, and drops the ancestors of other
    elements. A cut may be followed by the cuts that steps lead to.

    With one source these are all non-empty ideals; with several sources they are fewer.

    Parameters
    ----------
    layers
        The graph.
    most
        How many states there may be.
    look
        Called from time to time; what it raises ends the enumeration.

    Raises
    ------
    NoPlanFound
        If there are more states.
    WorkloadError
        If no state holds some layer.

    Examples
    --------
    >>> fork = Layers([1.0] * 3, [8.0, 2.0, 4.0], [0.0] * 3, [(0, 1), (0, 2)])
    >>> antichain_states(fork, 10).output.tolist()  # 0; 0 1; 0 2; all
    [8.0, 10.0, 12.0, 14.0]
    """
    graph = Masks(layers)
    first = next(1 << v for v in range(len(layers)) if not graph.needs[v])
    steps = _explore(first, graph.next_antichains, most, look)
    ideals = {antichain: graph.ideal(antichain) for antichain in steps}
    order = sorted(steps, key=lambda antichain: (ideals[antichain].bit_count(), ideals[antichain]))
    place = {antichain: i for i, antichain in enumerate(order)}
    before = np.zeros((len(order), len(order)), dtype=bool)
    for i, antichain in enumerate(order):
        look()
        for follower in {place[step] for step in steps[antichain]}:
            before[:, follower] |= before[:, i]
            before[i, follower] = True
    inside = _rows([ideals[antichain] for antichain in order], len(layers))
    cut = _rows([graph.augmented(antichain) for antichain in order], len(layers))
    _require_all(inside[-1])
    return LayerIdeals(inside, cut @ layers.activation, before)


def ideal_states(layers: Layers, most: int, look: Look = no_look) -> LayerIdeals:
    """Return all non-empty ideals, with exactly the bytes that cross each cut.

    A cut may be followed by every larger ideal that contains it.

    Parameters
    ----------
    layers
        The graph.
    most
        How many states there may be.
    look
        Called from time to time; what it raises ends the enumeration.

    Raises
    ------
    NoPlanFound
        If there are more states.

    Examples
    --------
    >>> fork = Layers([1.0] * 3, [8.0, 2.0, 4.0], [0.0] * 3, [(0, 1), (0, 2)])
    >>> ideal_states(fork, 10).output.tolist()
    [8.0, 8.0, 8.0, 0.0]
    """
    graph = Masks(layers)
    found = _explore(0, graph.next_ideals, most + 1, look)
    ideals = sorted(filter(None, found), key=lambda ideal: (ideal.bit_count(), ideal))
    inside = _rows(ideals, len(layers))
    feeds = np.zeros((len(layers), len(layers)), dtype=np.float32)
    feeds[layers.edges[:, 1], layers.edges[:, 0]] = 1
    missing = (~inside).astype(np.float32)
    crossing = inside & (missing @ feeds > 0)
    before = inside.astype(np.float32) @ missing.T == 0
    np.fill_diagonal(before, False)
    return LayerIdeals(inside, crossing @ layers.activation, before)


def _explore(
    first: int, following: Callable[[int], Iterator[int]], most: int, look: Look
) -> dict[int, list[int]]:
    """Return the states that can be reached, each with those that follow it."""
    found: dict[int, list[int]] = {first: []}
    queue = [first]
    for state in queue:
        look()
        found[state] = list(following(state))
        for step in found[state]:
            if step not in found:
                found[step] = []
                queue.append(step)
        if len(found) > most:
            raise NoPlanFound(
                f"there are more than {most:,} states to cut at; merge layers, or raise max_states"
            )
    return found


def _require_all(inside: Bools) -> None:
    rule = "is not reached from the first source; plan over all ideals instead"
    flaws = [Flaw(f"layer {v}", "", "", rule) for v in np.flatnonzero(~inside).tolist()]
    if flaws:
        raise WorkloadError(flaws)


def _rows(masks: list[int], n: int) -> NDArray[np.bool_]:
    rows = np.zeros((len(masks), n), dtype=bool)
    for i, mask in enumerate(masks):
        rows[i, list(bits(mask))] = True
    return rows
