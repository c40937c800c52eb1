"""The graph as sets of layers, which are the bits of integers, and the steps between states."""

from __future__ import annotations

from collections.abc import Iterator

from partitioner.methods.baselines.pipedream.layers import Layers


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
