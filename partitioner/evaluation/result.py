"""What the evaluator says of a placement, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from partitioner.evaluation.schedule import Schedule
from partitioner.evaluation.shape import Shape


@dataclass(frozen=True)
class DeviceLoad:
    """The share of one device; pairs are (forward, backward), times in the graph's unit.

    Parameters
    ----------
    name, kind
        The device, e.g. ``accelerator0``, and its kind.
    load
        Time per sample that it is busy, under the model of communication, forward and backward together.
    compute, transfer_in, transfer_out
        Processing, and transfers from and to host memory.
    memory, memory_limit
        What is held here, under the schedule if there is one, and the limit (None without one).
    nodes
        How many nodes are placed here.
    sync
        What of the load is the exchange of weights among the replicas of a stage.
    replica_of
        The device that stands for the stage, if this one holds a copy; each replica of a stage bears
        its share of the times, and the whole memory.
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

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data for JSON; what concerns replicas only if there are any."""
        record = asdict(self)
        if self.replica_of is None:
            del record["replica_of"]
        if self.sync == 0:
            del record["sync"]
        return record


@dataclass(frozen=True)
class Evaluation:
    """The verdict on a placement.

    Parameters
    ----------
    objective, value
        What was computed, and its value.
    loads
        One entry a device, in the order of `Devices.names`, then devices that do not exist.
    violations
        The broken rules in words; empty for a placement that is feasible.
    shape
        Chain, convex or free, and the order of the devices if it is a chain.
    schedule
        For latency and makespans what runs when; None if there is no order in which all can run.
    notes
        What a reader of the value should know: what the workload leaves open.
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

    def as_dict(self) -> dict[str, Any]:
        """The evaluation as plain data for JSON: the schedule only of a single sample, None for infinity."""
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
        """True if no rule is broken."""
        return not self.violations

    @property
    def bottleneck(self) -> DeviceLoad:
        """The device with the largest load."""
        return max(self.loads, key=lambda entry: entry.load)
