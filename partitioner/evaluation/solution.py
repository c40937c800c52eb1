"""What is evaluated: where every node runs, and the question that a plan answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, NodeId
from partitioner.workload.workload import workload_hash

SHOWN_DIGITS = 12


@dataclass(frozen=True)
class Solution:
    """Where every node of a graph runs, and in which order.

    Parameters
    ----------
    placement
        The name of a device for every node id.
    replicas
        For a device of the placement, the further devices that hold a copy of its stage.
    order
        The devices of the placement in the order of the pipeline; None if it is not given.
    subgraphs
        For latency: the index, from 0, of the subgraph that each node of an accelerator belongs to; None if
        they are not given.
    execution_order
        For makespans: all node ids in the order in which every device runs its own; None if it is not given.

    Examples
    --------
    >>> Solution({0: "gpu0", 1: "gpu1"}, order=("gpu0", "gpu1")).replicas
    {}
    """

    placement: Mapping[NodeId, str]
    replicas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order: tuple[str, ...] | None = None
    subgraphs: Mapping[NodeId, int] | None = None
    execution_order: tuple[NodeId, ...] | None = None


@dataclass(frozen=True)
class PlanRecord(Solution):
    """A solution and the question that it answers, as far as that is known.

    Parameters
    ----------
    objective, split, bound
        Of the plan; empty or None for a placement that is no plan.
    hardware
        The devices that the plan is made for.
    options
        What the call that made the plan was given.
    workload_sha256
        Hash of the graph and the hardware; empty if it is not known.
    source
        The file's name, or ``"plan"``.
    """

    objective: str = ""
    split: str | None = None
    bound: float | None = None
    hardware: Devices | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    workload_sha256: str = ""
    source: str = "plan"

    @property
    def schedule(self) -> str | None:
        """The pipeline schedule that the plan is made for."""
        return self.options.get("schedule")

    @property
    def microbatches(self) -> int | None:
        """How many samples a batch of the plan has."""
        return self.options.get("microbatches")

    def devices(self, given: Devices | None) -> Devices:
        """Return the devices that are given, or else those that the plan is made for.

        Raises
        ------
        WorkloadError
            If there are neither.
        """
        if given is None and self.hardware is None:
            rule = "must be given: the plan does not say for which it is made"
            raise WorkloadError([Flaw("devices", "", "", rule)], self.source)
        return self.hardware if given is None else given  # type: ignore[return-value]

    def foreign(self, graph: Graph, devices: Devices) -> bool:
        """Whether the plan is made for another graph; `devices` stand in where it does not say its own."""
        own = devices if self.hardware is None else self.hardware
        return bool(self.workload_sha256) and workload_hash(graph, own) != self.workload_sha256

    def check_graph(self, graph: Graph, devices: Devices, *, strict: bool) -> None:
        """Refuse a plan of another graph; if not `strict` only one that places other nodes.

        Raises
        ------
        WorkloadError
            With one line that names both hashes.
        """
        other = self.placement.keys() != set(graph.ids)
        if self.foreign(graph, devices) and (other or (strict and self.hardware is not None)):
            own = workload_hash(graph, devices if self.hardware is None else self.hardware)
            hashes = f"{self.workload_sha256[:SHOWN_DIGITS]}... is not {own[:SHOWN_DIGITS]}..."
            flaw = Flaw("", "", "", f"made for another workload (workload_sha256 {hashes})")
            raise WorkloadError([flaw], self.source)


@runtime_checkable
class Planned(Protocol):
    """Anything with a record of its solution, such as a plan."""

    @property
    def record(self) -> PlanRecord:
        """The solution and the question that it answers."""


AnySolution = Solution | Planned | Mapping[Any, str]


def solution_of(given: AnySolution) -> Solution:
    """Return what a caller gave as a solution; of a plan its record.

    Examples
    --------
    >>> solution_of({0: "gpu0"}).placement
    {0: 'gpu0'}
    """
    if isinstance(given, Solution):
        return given
    return given.record if isinstance(given, Planned) else Solution(given)
