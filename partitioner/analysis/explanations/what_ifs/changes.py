"""Changes of a question: more devices, more memory, faster links, more replicas, another schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from partitioner.analysis.explanations.bottleneck import decisive
from partitioner.analysis.explanations.question import PlanQuestion
from partitioner.evaluation.result import Evaluation
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.in_flight import SCHEDULES

MORE_MEMORY = 1.1
FASTER = 2.0
NOTHING = "nothing would change"


@dataclass(frozen=True, eq=False)
class Change:
    """A change of a question.

    Parameters
    ----------
    name
        What it is asked for by.
    words
        The change as the end of a clause that begins with "with".
    graph, devices
        The workload after the change; None if that is not changed.
    options
        The options of :func:`partitioner.solve` that are changed.
    against
        That nothing would change, and why, as a clause; empty if the change can be tried.
    """

    name: str
    words: str
    graph: Graph | None = None
    devices: Devices | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    against: str = ""


AGAIN = Change("", "")


def _one_more_device(question: PlanQuestion, kind: DeviceKind) -> Iterator[Change]:
    name, devices = "one_more_device", question.devices
    if devices.levels:
        top = devices.levels[-1]
        kinds = tuple(replace(each, count=each.count + top.size(each.name)) for each in devices.kinds)
        words = f"one more group of level {top.name!r}"
        yield Change(name, words, devices=replace(devices, kinds=kinds))
        return
    kinds = tuple(replace(each, count=each.count + (each.name == kind.name)) for each in devices.kinds)
    groups = devices.groups
    if groups:
        held = dict(groups[-1].devices) | {kind.name: groups[-1].size(kind.name) + 1}
        groups = (*groups[:-1], replace(groups[-1], devices=held))
    words = f"one more device of kind {kind.name} ({kind.count + 1} in place of {kind.count})"
    yield Change(name, words, devices=replace(devices, kinds=kinds, groups=groups))


def _more_memory(question: PlanQuestion, kind: DeviceKind) -> Iterator[Change]:
    yield _memory(question, "more_memory", f"{MORE_MEMORY - 1:.0%} more memory on every device", MORE_MEMORY)


def _unlimited_memory(question: PlanQuestion, kind: DeviceKind) -> Iterator[Change]:
    name, words = "unlimited_memory", "memory without a limit on every device"
    if question.maximised:
        yield Change(name, words, against="the number of samples would have no limit")
    else:
        yield _memory(question, name, words, None)


def _memory(question: PlanQuestion, name: str, words: str, factor: float | None) -> Change:
    devices = question.devices
    if all(kind.memory is None for kind in devices.kinds if kind.count):
        return Change(name, words, against=f"{NOTHING}: no device has a memory limit")
    kinds = tuple(
        kind
        if kind.memory is None
        else replace(kind, memory=None if factor is None else kind.memory * factor)
        for kind in devices.kinds
    )
    return Change(name, words, devices=replace(devices, kinds=kinds))


def _faster_links(question: PlanQuestion, kind: DeviceKind) -> Iterator[Change]:
    name, words = "faster_links", "links of twice the speed"
    devices, graph = question.devices, question.searched
    exchanged = any(each.bandwidth is not None for each in devices.kinds)
    if not graph.cost.any() and not exchanged and not graph.alternatives:
        yield Change(name, words, against=f"{NOTHING}: no transfer takes any time")
    elif "transfer_factor" in question.asked.terms:
        kinds = tuple(
            replace(
                each,
                transfer_factor=each.transfer_factor / FASTER,
                bandwidth=None if each.bandwidth is None else each.bandwidth * FASTER,
            )
            for each in devices.kinds
        )
        yield Change(name, words, devices=replace(devices, kinds=kinds))
    else:
        yield Change(name, words, graph=replace(graph, cost=graph.cost / FASTER))


def _one_more_replica(question: PlanQuestion, kind: DeviceKind) -> Iterator[Change]:
    most = question.options.get("replicas", 1) + 1
    name, words = "one_more_replica", f"up to {most} devices for each stage"
    if question.graph.backward.any() and kind.bandwidth is None:
        words += " (the exchange of weights is not counted, no bandwidth is given)"
    constraints = question.options.get("constraints")
    against = ""
    if "replicas" not in question.asked.terms:
        against = f"{NOTHING}: objective {question.asked.name} has no replicas"
    elif constraints is not None and constraints.no_replicas:
        against = f"{NOTHING}: the constraints say no_replicas"
    elif all(each.count < most for each in question.devices.kinds):
        against = f"{NOTHING}: no kind has {most} devices"
    yield Change(name, words, options={"replicas": most}, against=against)


def _other_schedule(question: PlanQuestion, kind: DeviceKind) -> Iterator[Change]:
    name, used = "other_schedule", question.options.get("schedule")
    if used is None:
        yield Change(name, "another schedule", against=f"{NOTHING}: the plan is made for no schedule")
        return
    training = bool(question.graph.backward.any())
    for other in SCHEDULES:
        if other != used and training == (other != SCHEDULES[0]):
            given = {"schedule": other, "virtual_stages": None}
            yield Change(name, f"schedule {other} in place of {used}", options=given)


CHANGES: Mapping[str, Callable[[PlanQuestion, DeviceKind], Iterator[Change]]] = {
    "one_more_device": _one_more_device,
    "more_memory": _more_memory,
    "unlimited_memory": _unlimited_memory,
    "faster_links": _faster_links,
    "one_more_replica": _one_more_replica,
    "other_schedule": _other_schedule,
}


def changes_of(question: PlanQuestion, evaluation: Evaluation, names: tuple[str, ...]) -> list[Change]:
    """Return the changes of these names; a device that is added is of the bottleneck's kind."""
    kinds = {kind.name: kind for kind in question.devices.kinds}
    bottleneck = kinds[decisive(evaluation).kind]
    return [
        change for name, make in CHANGES.items() if name in names for change in make(question, bottleneck)
    ]
