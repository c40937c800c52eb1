"""What two plans of a workload differ in: nodes that moved, loads, memory, value."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import networkx as nx

from partitioner.base.errors import OptionError
from partitioner.evaluation.solution import AnySolution
from partitioner.explanations.differences.difference_table import difference_lines, difference_table
from partitioner.explanations.differences.matching import matched
from partitioner.explanations.differences.moved import DeviceChange, MovedNodes, changed_devices, moved_nodes
from partitioner.explanations.question import question_of
from partitioner.explanations.wording import Wording
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, NodeId
from partitioner.workload.networkx_graph import from_networkx


@dataclass(frozen=True, eq=False)
class PlanDifference:
    """What two plans of a workload differ in.

    Parameters
    ----------
    objective
        The objective of both plans.
    value
        The value of the first and of the second plan, in the unit of the graph's times.
    node_count
        How many nodes the graph has.
    moved
        The nodes that moved, by their devices, the largest groups first.
    devices
        Every device that one of the plans uses, in the order of the first plan's devices.
    alternatives
        The nodes that are run in another way than before.
    violations
        How many rules the first and the second plan break.
    time_unit
        The unit of times, empty if it is not known.
    """

    objective: str
    value: tuple[float, float]
    node_count: int
    moved: tuple[MovedNodes, ...]
    devices: tuple[DeviceChange, ...]
    alternatives: tuple[NodeId, ...]
    violations: tuple[int, int]
    time_unit: str = ""

    def __repr__(self) -> str:
        moved = sum(len(each.nodes) for each in self.moved)
        before, after = self.value
        return f"<PlanDifference: {self.objective} {before:.6g} to {after:.6g}, {moved} nodes moved>"

    def summary(self, width: int | None = None) -> str:
        """Return value, devices and moved nodes as text of at most `width` columns."""
        words = Wording(self.objective, True, self.time_unit)
        head = difference_lines(words, self.value, self.violations, self.node_count, self.moved)
        other = [f"{len(self.alternatives)} nodes are run in another way than before"]
        return difference_table(head + (other if self.alternatives else []), self.devices, self.moved, width)

    def to_json(self) -> str:
        """Return all figures as one JSON object."""
        return json.dumps(asdict(self), indent=1)


def diff(
    graph: Graph | nx.DiGraph[Any], devices: Devices | None, before: AnySolution, after: AnySolution
) -> PlanDifference:
    """Compare two plans of a graph: what moved, and what that changed.

    Equal devices are interchangeable: those of the second plan are matched with those of the first such that
    the most nodes stay where they are, unless devices are in levels or groups.

    Parameters
    ----------
    graph, devices
        The workload; None for the devices that each plan is made for, which may differ.
    before, after
        Plans, solutions or placements for the same objective.

    Raises
    ------
    WorkloadError
        If a plan does not fit the graph and the devices.
    OptionError
        If the plans are made for different objectives.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> one = {0: "accelerator0", 1: "accelerator0", 2: "accelerator1"}
    >>> found = diff(graph, Devices.accelerated(2), one, one | {1: "accelerator1"})
    >>> found.value, found.moved[0].nodes, found.moved[0].target
    ((4.5, 3.5), (1,), 'accelerator1')
    """
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    first, second = (question_of(graph, devices, plan) for plan in (before, after))
    if first.asked is not second.asked:
        both = " and ".join(repr(each.asked.name) for each in (first, second))
        raise OptionError(f"objective: must be the same for both plans, they are made for {both}")
    evaluations = first.evaluation(), second.evaluation()
    names = matched(first.plan.placement, second.plan.placement, first.devices, second.devices)
    ways = first.plan.alternatives, second.plan.alternatives
    return PlanDifference(
        objective=first.asked.name,
        value=(first.value(evaluations[0]), second.value(evaluations[1])),
        node_count=len(graph),
        moved=moved_nodes(graph, first.plan.placement, second.plan.placement, names),
        devices=changed_devices(evaluations[0].loads, evaluations[1].loads, names),
        alternatives=tuple(node for node in graph.ids if ways[0].get(node) != ways[1].get(node)),
        violations=(len(evaluations[0].violations), len(evaluations[1].violations)),
        time_unit=graph.extras.time_unit or "",
    )
