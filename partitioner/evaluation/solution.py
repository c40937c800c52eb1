"""A solution: the device of every node; and the record of a plan: a solution with what was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, NodeId
from partitioner.workload.input_operators import COPIED, FIELD, with_copies
from partitioner.workload.training_states import as_trained
from partitioner.workload.workload import workload_hash

SHOWN_DIGITS = 12
REPLICAS_RULE = "must be a mapping from device name to the names of further devices"


@dataclass(frozen=True)
class Solution:
    """The device of every node of a graph, and the order in which nodes run.

    Parameters
    ----------
    placement
        The name of a device for every node id.
    replicas
        For a device of the placement, the further devices that hold a copy of its stage.
    order
        The devices of the placement in the order of the pipeline; None if it is not given.
    subgraphs
        For latency: the index, from 0, of the subgraph of each node of an accelerator; None if not given.
    execution_order
        For makespans: all node ids; every device runs its nodes in this order. None if it is not given.
    stage_of
        For pipelines with several stages on a device: the number, from 0, of the stage of every node; `order`
        then has the device of every stage. None if every device has one stage.
    alternatives
        The name of the alternative of each node that is not run as the node's own figures say. A stage whose
        alternatives have degree t runs on t devices for each of its copies: `replicas` names all of them.

    Raises
    ------
    WorkloadError
        If `replicas` is not a mapping to sequences.

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
    stage_of: Mapping[NodeId, int] | None = None
    alternatives: Mapping[NodeId, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = self.replicas
        if not isinstance(found, Mapping) or not all(map(_is_sequence, found.values())):
            raise WorkloadError([Flaw("replicas", "", shown(found), REPLICAS_RULE)])
        if not isinstance(self.alternatives, Mapping):
            rule = "must be a mapping from node id to the name of an alternative"
            raise WorkloadError([Flaw("alternatives", "", shown(self.alternatives), rule)])


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


@dataclass(frozen=True)
class PlanRecord(Solution):
    """A solution together with the objective, devices and options of its plan, as far as they are known.

    Parameters
    ----------
    objective, split, bound
        Those of the plan; empty or None for a placement without a plan.
    hardware
        The devices that the plan is made for; None if they are not known.
    options
        The options of the call that made the plan.
    workload_sha256
        Hash of the graph and the hardware; empty if it is not known.
    workload
        The name of the workload; empty if it is not known.
    statistics
        Figures of the run that made the plan, by name.
    source
        The file's name, or ``"plan"``.
    """

    objective: str = ""
    split: str | None = None
    bound: float | None = None
    hardware: Devices | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    workload_sha256: str = ""
    workload: str = ""
    statistics: Mapping[str, float] = field(default_factory=dict)
    source: str = "plan"

    @property
    def schedule(self) -> str | None:
        """The pipeline schedule that the plan is made for; None if there is none."""
        return self.options.get("schedule")

    @property
    def microbatches(self) -> int | None:
        """How many samples a batch of the plan has; None if that is not known."""
        return self.options.get("microbatches")

    def devices(self, given: Devices | None) -> Devices:
        """Return the given devices, or else those that the plan is made for.

        Raises
        ------
        WorkloadError
            If there are neither of them.
        """
        if given is None and self.hardware is None:
            rule = "must be given: the plan does not contain the devices that it is made for"
            raise WorkloadError([Flaw("devices", "", "", rule)], self.source)
        return self.hardware if given is None else given  # type: ignore[return-value]

    def trained(self, graph: Graph, *, copies: bool = True) -> Graph:
        """Return a graph as the plan's options say that it is trained, or as it is if it cannot be so.

        If they say so, each stage of the plan has `copies` of the operators that depend on inputs alone.
        """
        try:
            graph = as_trained(graph, self.options)
        except OptionError:
            return graph  # of another workload
        copied = copies and self.options.get(FIELD) == COPIED
        if not copied or any(node not in self.placement for node in graph.ids):
            return graph
        places = self.placement if self.stage_of is None else self.stage_of
        number = {place: i for i, place in enumerate(dict.fromkeys(places.values()))}
        return with_copies(graph, np.array([number[places[node]] for node in graph.ids]))

    def foreign(self, graph: Graph, devices: Devices) -> bool:
        """Whether the plan is made for another graph; `devices` are used if it does not contain its own."""
        own = devices if self.hardware is None else self.hardware
        return bool(self.workload_sha256) and workload_hash(self.trained(graph), own) != self.workload_sha256

    def check_graph(self, graph: Graph, devices: Devices, *, strict: bool) -> None:
        """Raise if the plan is made for another graph; if not `strict`, only if it also places other nodes.

        Raises
        ------
        WorkloadError
            Naming both hashes.
        """
        other = self.placement.keys() != set(graph.ids)
        if self.foreign(graph, devices) and (other or (strict and self.hardware is not None)):
            own = workload_hash(graph, devices if self.hardware is None else self.hardware)
            hashes = f"{self.workload_sha256[:SHOWN_DIGITS]}... is not {own[:SHOWN_DIGITS]}..."
            known = f" named {shown(self.workload)}" if self.workload else ""
            flaw = Flaw("", "", "", f"made for another workload{known} (workload_sha256 {hashes})")
            raise WorkloadError([flaw], self.source)


@runtime_checkable
class Planned(Protocol):
    """An object with a record of its solution, such as a plan."""

    @property
    def record(self) -> PlanRecord:
        """The solution, with the objective, devices and options of its plan."""


AnySolution = Solution | Planned | Mapping[Any, str]


def solution_of(given: AnySolution) -> Solution:
    """Return the caller's plan, solution or mapping as a solution; for a plan its record.

    Examples
    --------
    >>> solution_of({0: "gpu0"}).placement
    {0: 'gpu0'}
    """
    if isinstance(given, Solution):
        return given
    return given.record if isinstance(given, Planned) else Solution(given)
