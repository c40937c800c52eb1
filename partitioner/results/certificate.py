"""Certificates: what is proven about a placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from partitioner.base.markup import html_table
from partitioner.evaluation.text.figures import nearness, relative_gap, shortfall
from partitioner.evaluation.time_parts import parts_in_words
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
    parts
        What the value is made of, as in :class:`partitioner.Evaluation`.
    """

    value: float
    best: Plan
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)

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
        """Return what is proven about the placement, and what its value is made of, in one to three lines."""
        best = self.best
        known = best.value > self.value if best.maximised else best.value < self.value
        better = f"\na better one is known: {best.value:.6g}" if known else ""
        parts = f"\n{self.value:.6g} is made of {parts_in_words(self.parts)}" if self.parts else ""
        near = (
            shortfall(self.value, self.bound) if best.maximised else nearness(self.value, self.bound, "best")
        )
        return (
            f"no {best.split} split is better than {self.bound:.6g}: this one is {near} "
            f"(method {best.method}, {best.runtime_seconds:.3g} s){better}{parts}"
        )
