"""What two plans of a workload differ in: nodes that moved, loads, memory, value."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import networkx as nx
from rich.console import RenderableType
from rich.text import Text

from partitioner.analysis.explanations.question import question_of
from partitioner.analysis.explanations.wording import Wording, listed, relative_change
from partitioner.base.errors import OptionError
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.solution import AnySolution
from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.names import joined_within, ranges
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, render
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


# The difference of two plans as text.

MOST_GROUPS = 12
NARROW_NAMES, WIDE_NAMES = 36, 92
FIGURES = ("load", "then", "change", "memory", "then", "change", "nodes", "then")


def difference_lines(
    words: Wording,
    value: tuple[float, float],
    violations: tuple[int, int],
    node_count: int,
    moved: Sequence[MovedNodes],
) -> list[str]:
    """Return the values of two plans and how many nodes moved, as sentences."""
    before, after = value
    second = f"the second one {words.value(after)}, {words.changed(relative_change(before, after))}"
    found = [f"The first plan {words.phrases.takes} {words.value(before)}, {second}."]
    for number, broken in zip(("first", "second"), violations, strict=True):
        found += [f"The {number} plan breaks {broken} rule{'s' if broken > 1 else ''}."] if broken else []
    count = sum(len(each.nodes) for each in moved)
    return [*found, f"{count} of {node_count} nodes are on another device." if count else "No node moved."]


def difference_table(
    lines: Sequence[str], devices: Sequence[DeviceChange], moved: Sequence[MovedNodes], width: int | None
) -> str:
    """Return the lines, a table of devices, and a table of the nodes that moved, at most `width` columns."""
    wide = columns(width) >= WIDE
    table = figure_table(wide, ("device",), FIGURES)
    for each in devices:
        table.add_row(*map(Text, (_title(each), *_figures(each))))
    parts: list[RenderableType] = [*map(Text, lines), "", table, *_renamed(devices)]
    if moved:
        where = figure_table(wide, ("from", "to"), ("nodes",))
        where.add_column("names", overflow="fold")
        for group in moved[:MOST_GROUPS]:
            names = joined_within(ranges(group.names), WIDE_NAMES if wide else NARROW_NAMES)
            where.add_row(*map(Text, (group.source, group.target, str(len(group.nodes)), names)))
        parts += ["", where]
        parts += [f"... and {len(moved) - MOST_GROUPS} more groups"] if len(moved) > MOST_GROUPS else []
    return render(parts, width)


def _title(each: DeviceChange) -> str:
    """Return the name of a device, with the number of devices that share its stage if any does."""
    old, new = each.copies
    if max(old, new) <= 1:
        return each.device
    return f"{each.device} x{old}" if old == new else f"{each.device} x{old} then x{new}"


def _figures(each: DeviceChange) -> tuple[str, ...]:
    return (
        *map(figure, each.load),
        _signed(each.load[1] - each.load[0], figure),
        *map(amount, each.memory),
        _signed(each.memory[1] - each.memory[0], amount),
        *map(str, each.nodes),
    )


def _signed(difference: float, text: Callable[[float], str]) -> str:
    """Return a difference with its sign."""
    if not difference:
        return "0"
    return f"{'+' if difference > 0 else '-'}{text(abs(difference))}"


def _renamed(devices: Sequence[DeviceChange]) -> list[Text]:
    """Return a line with the devices that have another name in the second plan."""
    pairs = [f"{each.device} is {each.renamed}" for each in devices if each.renamed not in ("", each.device)]
    return [Text(f"in the second plan {listed(pairs)}: equal devices are matched")] if pairs else []


# Which devices of two plans correspond: equal devices may have other names in another plan.


def matched(
    before: Mapping[NodeId, str], after: Mapping[NodeId, str], devices: Devices, others: Devices
) -> dict[str, str]:
    """Return for each device of the second placement the device of the first one that it corresponds to.

    Devices of a kind are equal unless they are in levels or groups; they are matched such that the most nodes
    stay. Devices in levels or groups correspond by name. A device of the second placement whose nodes are on
    no equal device of the first one has its own name, or another one that is free.

    Examples
    --------
    >>> pool = Devices.accelerated(2, cpus=1)
    >>> matched({0: "accelerator0", 1: "cpu0"}, {0: "accelerator1", 1: "accelerator1"}, pool, pool)
    {'accelerator1': 'accelerator0'}
    """
    if any((each.levels or each.groups) for each in (devices, others)):
        return {name: name for name in after.values()}
    kept = Counter((name, before[node]) for node, name in after.items())
    graph: nx.Graph[tuple[str, str]] = nx.Graph()
    for (new, old), count in kept.items():
        if _kind(others, new) == _kind(devices, old):
            graph.add_edge(("after", new), ("before", old), weight=len(before) * count + (new == old))
    pairs = [sorted(pair) for pair in nx.max_weight_matching(graph)]
    found = {new: old for (_, new), (_, old) in sorted(pairs)}
    for new in dict.fromkeys(after.values()):
        if new not in found:
            equal = [name for name in (new, *others.names) if _kind(others, name) == _kind(others, new)]
            found[new] = next(name for name in equal if name not in found.values())
    return found


def _kind(devices: Devices, name: str) -> str | None:
    """Return the name of the kind of a device, None for a name of no kind."""
    found = devices.kind_of(name)
    return None if found is None else devices.kinds[found[0]].name


# The nodes that are on other devices in a second plan, and what both plans put on each device.


@dataclass(frozen=True)
class MovedNodes:
    """Nodes that are on one device in the first plan and on another one in the second.

    Parameters
    ----------
    source, target
        The devices, by the names of the first plan; by that of the second if the first does not use it.
    nodes, names
        The nodes.
    """

    source: str
    target: str
    nodes: tuple[NodeId, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class DeviceChange:
    """What a device holds and costs in two plans; 0 where a plan does not use it.

    Parameters
    ----------
    device
        Its name in the first plan, or else in the second.
    renamed
        Its name in the second plan; empty if the second plan does not use it.
    load, memory, nodes, copies
        The time per sample, the memory, the number of nodes, and of devices that share its stage, in the
        first and in the second plan.
    """

    device: str
    renamed: str
    load: tuple[float, float]
    memory: tuple[float, float]
    nodes: tuple[int, int]
    copies: tuple[int, int]


def moved_nodes(
    graph: Graph, before: Mapping[NodeId, str], after: Mapping[NodeId, str], names: Mapping[str, str]
) -> tuple[MovedNodes, ...]:
    """Return the nodes that moved, by their devices, the largest groups first.

    `names` has the name in the first plan of every device that the second placement uses.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, node in enumerate(graph.ids):
        pair = before[node], names[after[node]]
        if pair[0] != pair[1]:
            groups[pair].append(i)
    found = [
        MovedNodes(*pair, tuple(graph.ids[i] for i in nodes), tuple(graph.names[i] for i in nodes))
        for pair, nodes in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: -len(each.nodes)))


def changed_devices(
    before: Sequence[DeviceLoad], after: Sequence[DeviceLoad], names: Mapping[str, str]
) -> tuple[DeviceChange, ...]:
    """Return what each device that one of two plans uses holds and costs in both."""
    old = {load.name: load for load in before if load.nodes and load.replica_of is None}
    new = {names[load.name]: load for load in after if load.nodes and load.replica_of is None}
    order = [load.name for load in before if load.name in {*old, *new}]
    order += [name for name in new if name not in order]
    return tuple(_change(name, old.get(name), new.get(name), before, after) for name in order)


def _change(
    name: str,
    old: DeviceLoad | None,
    new: DeviceLoad | None,
    before: Sequence[DeviceLoad],
    after: Sequence[DeviceLoad],
) -> DeviceChange:
    return DeviceChange(
        device=name,
        renamed=new.name if new else "",
        load=(old.load if old else 0.0, new.load if new else 0.0),
        memory=(old.memory if old else 0.0, new.memory if new else 0.0),
        nodes=(old.nodes if old else 0, new.nodes if new else 0),
        copies=(_copies(old, before), _copies(new, after)),
    )


def _copies(load: DeviceLoad | None, loads: Sequence[DeviceLoad]) -> int:
    """Return how many devices share the stage of a device; 0 without the device."""
    return 0 if load is None else 1 + sum(other.replica_of == load.name for other in loads)
