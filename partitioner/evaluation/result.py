"""The result of an evaluation: data that shows itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.text import Text

from partitioner.base.errors import SHOWN_FLAWS
from partitioner.evaluation.loads import DeviceLoad, loads_html
from partitioner.evaluation.schedule import Schedule
from partitioner.evaluation.shape import Shape
from partitioner.evaluation.text.tables import render, tables_of, unit_of


@dataclass(frozen=True)
class Evaluation:
    """What a placement costs, and which rules it breaks.

    Parameters
    ----------
    objective, value
        The name of the objective, and its value for the placement.
    loads
        One entry for each device, in the order of `Devices.names`, then devices that do not exist.
    violations
        A message for each broken rule; empty if the placement is feasible.
    shape
        Chain, convex or free, and the order of the devices if it is a chain.
    schedule
        For latency and makespans what runs when; None if subgraphs wait for one another in a cycle, and for
        other objectives.
    notes
        What the workload does not determine, and which options have no effect.
    by_operator
        Whether the schedule is one of operators that devices run one by one.
    parts
        What the value is made of on the device with the largest load: the times of `operators`,
        `collectives`, `updates`, `transfers` and the `exchange` of weights, what of them runs at the same
        time (`overlap`, not above 0), and the `bubble`, in which the device waits. They add up to the value;
        none where that is no time.
    """

    objective: str
    value: float
    loads: tuple[DeviceLoad, ...]
    violations: tuple[str, ...]
    shape: Shape
    schedule: Schedule | None = None
    notes: tuple[str, ...] = ()
    by_operator: bool = False
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        verdict = "feasible" if self.feasible else f"{len(self.violations)} rules broken"
        used = sum(entry.nodes > 0 for entry in self.loads)
        return (
            f"<Evaluation: {self.objective} {self.value:.6g}, {verdict}, {self.shape.name}, "
            f"{sum(entry.nodes for entry in self.loads)} nodes on {used} devices>"
        )

    def _repr_html_(self) -> str:
        return loads_html(repr(self)[1:-1], self.loads)

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain data for JSON; a value of infinity becomes None.

        The schedule is included only for the latency of a single sample.
        """
        record = asdict(self) | {"feasible": self.feasible}
        record["loads"] = [entry.as_dict() for entry in self.loads]
        del record["by_operator"]
        if not self.parts:
            del record["parts"]
        if not np.isfinite(self.value):
            record["value"] = None
        elif self.schedule is None or self.by_operator:
            del record["schedule"]
        return record

    def summary(self, width: int | None = None) -> str:
        """Return the evaluation as text of at most `width` columns, by default the terminal's.

        The text has the value, whether the placement is feasible, its shape, a line for each device, what
        runs when (latency and makespans of operators), the rules that are broken, and the notes.

        Examples
        --------
        >>> from partitioner import DeviceKind, Devices, Graph, evaluate
        >>> graph = Graph.from_arrays({"gpu": [3.0, 1.0]}, [(0, 1)], cost=0.5)
        >>> found = evaluate(graph, Devices((DeviceKind("gpu", 2),)), {0: "gpu0", 1: "gpu1"})
        >>> found.summary(80).splitlines()[0]
        'throughput: 3.5 per sample; the placement is feasible'
        """
        form = self.shape
        tables = tables_of(self.loads, form.order, self.schedule, width, self.by_operator)
        broken = [f"broken: {violation}" for violation in self.violations[:SHOWN_FLAWS]]
        hidden = len(self.violations) - SHOWN_FLAWS
        broken += [f"broken: ... and {hidden} more"] if hidden > 0 else []
        notes = [f"note: {note}" for note in self.notes]
        return render([Text(self._headline()), *tables, *map(Text, broken + notes)], width)

    def _headline(self) -> str:
        """Return the value and the verdict in a line, and the shape in a second one."""
        verdict = "is feasible" if self.feasible else "breaks the rules"
        form = self.shape
        parts = f"forward part {_yes(form.forward_convex)}, backward part {_yes(form.backward_convex)}"
        return (
            f"{self.objective}: {self.value:.6g}{unit_of(self.objective)}; the placement {verdict}\n"
            f"shape: {form.name} ({parts})"
        )

    @property
    def feasible(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    @property
    def bottleneck(self) -> DeviceLoad:
        """The device with the largest load."""
        return max(self.loads, key=lambda entry: entry.load)


def _yes(convex: bool) -> str:
    return "convex" if convex else "not convex"
