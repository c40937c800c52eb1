"""Certificates: what is proven about a placement."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.base.markup import html_table
from partitioner.evaluation.text.figures import nearness, relative_gap, shortfall
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

    def _repr_html_(self) -> str:
        row = (f"{self.value:.6g}", f"{self.bound:.6g}", f"{self.gap:.2%}")
        return html_table(self.summary(), ("value", "bound", "gap"), [row])

    @property
    def bound(self) -> float:
        """The bound: no split of the same shape has a better value, whatever devices it uses."""
        if self.best.maximised:
            return max(self.best.bound, self.value)
        return min(self.best.bound_on_any_devices, self.value)

    @property
    def gap(self) -> float:
        """The largest possible distance to the optimum, as a fraction of the larger of value and bound."""
        return relative_gap(self.value, self.bound)

    def summary(self) -> str:
        """Return what is proven about the placement, in one or two lines."""
        best = self.best
        known = best.value > self.value if best.maximised else best.value < self.value
        better = f"\na better one is known: {best.value:.6g}" if known else ""
        near = (
            shortfall(self.value, self.bound) if best.maximised else nearness(self.value, self.bound, "best")
        )
        return (
            f"no {best.split} split is better than {self.bound:.6g}: this one is {near} "
            f"(method {best.method}, {best.runtime_seconds:.3g} s){better}"
        )
