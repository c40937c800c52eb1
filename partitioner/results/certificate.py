"""Certificates: what is proven about a placement."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.methods.method import ANY_DEVICES
from partitioner.results.figures import nearness
from partitioner.results.plan import Plan


@dataclass(frozen=True)
class Certificate:
    """A proof of how far a placement is at most from the optimum.

    Parameters
    ----------
    value
        The value of the objective for the placement.
    best
        The best known plan of the same shape; its bound holds for the placement, too.
    """

    value: float
    best: Plan

    def __repr__(self) -> str:
        return f"<Certificate: value {self.value:.6g}, bound {self.bound:.6g}, best {self.best!r}>"

    @property
    def bound(self) -> float:
        """The lower bound: no split of the same shape has a smaller value, whatever devices it uses."""
        return min(self.best.statistics.get(ANY_DEVICES, self.best.bound), self.best.bound, self.value)

    @property
    def gap(self) -> float:
        """The largest possible distance to the optimum: (value - bound) / value."""
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0

    def summary(self) -> str:
        """Return what is proven about the placement, in one or two lines."""
        best = self.best
        better = f"\na better one is known: {best.value:.6g}" if best.value < self.value else ""
        return (
            f"no {best.split} split is better than {self.bound:.6g}: this one is "
            f"{nearness(self.value, self.bound, 'best')} "
            f"(method {best.method}, {best.runtime_seconds:.3g} s){better}"
        )
