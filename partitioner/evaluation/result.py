"""The result of an evaluation, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from partitioner.base.markup import html_table
from partitioner.evaluation.schedule import Schedule
from partitioner.evaluation.shape import Shape


@dataclass(frozen=True)
class DeviceLoad:
    """The load and memory of one device; pairs are (forward, backward), times in the graph's unit.

    Parameters
    ----------
    name, kind
        The device, e.g. ``accelerator0``, and its kind.
    load
        Time per sample that the device is busy under the model of communication, both passes together.
    compute, transfer_in, transfer_out
        Processing, and transfers from and to host memory.
    memory, memory_limit
        The memory that the device holds, under the schedule if there is one, and its limit (None without
        one).
    nodes
        How many nodes are placed on the device.
    sync
        The time of the exchange of weights among the replicas of the stage.
    replica_of
        The first device of the stage, if this device holds a copy of it; else None. The times of a stage
        are divided among its replicas; each of them holds the whole memory.
    cache
        For objective ``"capacity"`` the memory that every sample in flight takes; `memory` includes that of
        as many samples as the value.
    capacity
        For objective ``"capacity"`` how many samples fit this device; None if nothing limits them.
    """

    name: str
    kind: str
    load: float
    compute: tuple[float, float]
    transfer_in: tuple[float, float]
    transfer_out: tuple[float, float]
    memory: float
    memory_limit: float | None
    nodes: int
    sync: float = 0.0
    replica_of: str | None = None
    cache: float = 0.0
    capacity: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON; trivial ones on replicas and samples are left out."""
        record = asdict(self)
        trivial = {"replica_of": None, "sync": 0, "cache": 0, "capacity": None}
        for name in (name for name, value in trivial.items() if record[name] == value):
            del record[name]
        return record


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
    """

    objective: str
    value: float
    loads: tuple[DeviceLoad, ...]
    violations: tuple[str, ...]
    shape: Shape
    schedule: Schedule | None = None
    notes: tuple[str, ...] = ()
    by_operator: bool = False

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
        if not np.isfinite(self.value):
            record["value"] = None
        elif self.schedule is None or self.by_operator:
            del record["schedule"]
        return record

    @property
    def feasible(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    @property
    def bottleneck(self) -> DeviceLoad:
        """The device with the largest load."""
        return max(self.loads, key=lambda entry: entry.load)


def loads_html(title: str, loads: Sequence[DeviceLoad]) -> str:
    """Return the devices in use as a table for notebooks."""
    used = [load for load in loads if load.nodes > 0]
    rows = [(load.name, load.nodes, f"{load.load:.6g}", f"{load.memory:.6g}") for load in used]
    return html_table(title, ("device", "nodes", "load", "memory"), rows)
