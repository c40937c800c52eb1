"""What is proven of a placement."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.methods.method import ANY_DEVICES
from partitioner.results.figures import nearness
from partitioner.results.plan import Plan


@dataclass(frozen=True)
class Certificate:
    """What is proven of a placement.

    Parameters
    ----------
    value
        The placement's objective.
    best
        The best plan known of the same shape; its bound holds for the placement too.
    """

    value: float
    best: Plan

    def __repr__(self) -> str:
        return f"<Certificate: value {self.value:.6g}, bound {self.bound:.6g}, best {self.best!r}>"

    @property
    def bound(self) -> float:
        """No split of that shape has a smaller value, whatever devices of a level it uses."""
        return min(self.best.statistics.get(ANY_DEVICES, self.best.bound), self.best.bound, self.value)

    @property
    def gap(self) -> float:
        """How far the value may be from the optimum: (value - bound) / value."""
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0

    def summary(self) -> str:
        """What is proven of the placement, in a line or two."""
        best = self.best
        better = f"\na better one is known: {best.value:.6g}" if best.value < self.value else ""
        return (
            f"no {best.split} split is better than {self.bound:.6g}: this one is "
            f"{nearness(self.value, self.bound, 'best')} "
            f"(method {best.method}, {best.runtime_seconds:.3g} s){better}"
        )
