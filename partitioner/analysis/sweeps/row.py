"""A row of a sweep: what was asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from partitioner.base.errors import shown
from partitioner.evaluation.text.figures import relative_gap

OPTIMAL, FEASIBLE = "optimal", "feasible"
INFEASIBLE, NO_PLAN, FAILED = "infeasible", "no plan", "failed"
LAYOUT = "layout"  # in the place of an objective
KEY_LENGTH = 32


@dataclass(frozen=True)
class SweepRow:
    """A task of a sweep that has ended.

    Parameters
    ----------
    key
        The hash of the workload, the devices and the options, which tells tasks apart.
    workload, pool
        The names of the workload and of the pool of devices.
    devices
        How many devices the pool has.
    objective
        The objective; ``"layout"`` where the layouts of a model on a cluster are ranked.
    status
        ``"optimal"`` or ``"feasible"`` (there is a plan), ``"infeasible"`` (proven), ``"no plan"`` (none
        was found within the limits) or ``"failed"`` (an error, too little memory, or a lost worker).
    options
        The other options of :func:`partitioner.solve` that were given and are not the default.
    value, bound
        The value of the plan and the bound on it, in the unit of the objective; None without a plan.
    split, method, stop_reason
        Of the plan: its shape, the method that found it, and why that ended; empty without a plan.
    used
        How many devices hold a node; 0 without a plan.
    time_unit
        The unit of the workload's times, if it is known.
    figures
        Further figures of a layout: its name, tokens per second, MFU, memory of the fullest GPU.
    reason
        Why there is no plan; empty if there is one.
    seconds
        The time of the solve without compiling.
    attempts
        How often the task was given to a worker.
    plan
        The name of the plan's file in the folder of plans; empty if it is not kept.
    """

    key: str
    workload: str
    pool: str
    devices: int
    objective: str
    status: str
    options: Mapping[str, Any] = field(default_factory=dict)
    value: float | None = None
    bound: float | None = None
    split: str = ""
    method: str = ""
    stop_reason: str = ""
    used: int = 0
    time_unit: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0
    attempts: int = 1
    plan: str = ""

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        found = f"value {self.value:.6g}, " if self.value is not None else ""
        asked = f"{shown(self.workload)} on {shown(self.pool)}, {self.objective}"
        return f"<SweepRow: {asked}, {found}{self.status}>"

    @property
    def gap(self) -> float | None:
        """The largest possible distance to the optimum, as a fraction; None without a plan."""
        return None if self.value is None or self.bound is None else relative_gap(self.value, self.bound)

    def flat(self) -> dict[str, Any]:
        """Return the row as one level of numbers and texts, with a field for each option, for a table.

        Examples
        --------
        >>> row = SweepRow("1f", "bert", "2 accelerators", 2, "batch", NO_PLAN, {"microbatches": 8})
        >>> row.flat()["microbatches"], row.flat()["value"]
        (8, None)
        """
        mappings = ("options", "figures")
        known = {
            entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in mappings
        }
        options = {OWN_NAMES.get(name, name): value for name, value in self.options.items()}
        found = known | {"gap": self.gap} | dict(self.figures)
        return found | {name: _plain(value) for name, value in options.items()}


TAKEN = ("method", "split", "gap", "memory", "tokens_per_second")  # columns that have the names of options
OWN_NAMES = {name: f"{name}_option" for name in TAKEN}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
