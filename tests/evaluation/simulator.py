"""One sample from event to event, written from Appendix A; it shares no code with the evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from partitioner import Devices, Graph

Key = tuple[str, bool, int]
INDEX = 2


@dataclass(eq=False)
class Task:
    """A subgraph of an accelerator (with its key) or a node of a CPU, and when it ran."""

    device: str
    kind: str
    key: Key | None
    nodes: frozenset[int]
    parts: tuple[float, float, float] = (0.0, 0.0, 0.0)
    length: float = 0.0
    start: float = math.nan
    finish: float = math.inf
    rest: float = 0.0


@dataclass
class Simulation:
    """All tasks of a workload and what has been computed."""

    graph: Graph
    devices: Devices
    place: list[str]
    limited: bool
    tasks: list[Task] = field(default_factory=list)

    @property
    def value(self) -> float:
        """The last finish; infinity if some task never ran."""
        return max(task.finish for task in self.tasks)

    def waits(self, task: Task) -> list[Task]:
        """The tasks whose output or device the task needs."""
        makers = {u for u, v in self.graph.edges.tolist() if v in task.nodes} - task.nodes
        return [other for other in self.tasks if makers & other.nodes or _earlier(other, task)]


def simulate(
    graph: Graph,
    devices: Devices,
    placement: Mapping[Any, str],
    subgraphs: Mapping[Any, int] | None = None,
    limited: bool = False,
) -> Simulation:
    """Run one sample."""
    simulation = Simulation(graph, devices, [placement[node] for node in graph.ids], limited)
    index = numbered(graph, simulation.place)
    if subgraphs is not None:
        index = [subgraphs.get(node, 0) for node in graph.ids]
    simulation.tasks = _tasks(simulation, index)
    for task in simulation.tasks:
        task.parts = _parts(simulation, task)
        task.length = _length(devices.communication, *task.parts)
    _run(simulation, limited=False)
    if limited and simulation.value < math.inf:
        _prioritise(simulation)
        _run(simulation, limited=True)
    return simulation


def numbered(graph: Graph, place: list[str]) -> list[int]:
    """The largest number of returns to a node's device over all paths of its pass that end there."""
    before: list[list[int]] = [[] for _ in place]
    for u, v in graph.edges.tolist():
        if graph.backward[u] == graph.backward[v]:
            before[v].append(u)

    def paths(node: int) -> list[list[int]]:
        return [[node]] + [[*path, node] for other in before[node] for path in paths(other)]

    def returns(path: list[int]) -> int:
        on = [place[node] == place[path[-1]] for node in path]
        seen = on.index(True)
        return sum(not on[i - 1] and on[i] for i in range(seen + 1, len(on)))

    return [max(returns(path) for path in paths(node)) for node in range(len(place))]


def _tasks(simulation: Simulation, index: list[int]) -> list[Task]:
    kinds = {kind.device(i): kind for kind in simulation.devices.kinds for i in range(kind.count)}
    groups: dict[Key, set[int]] = {}
    tasks = []
    for node, device in enumerate(simulation.place):
        if kinds[device].pays_communication:
            key = device, bool(simulation.graph.backward[node]), index[node]
            groups.setdefault(key, set()).add(node)
        else:
            tasks.append(Task(device, kinds[device].name, None, frozenset({node})))
    tasks += [Task(key[0], kinds[key[0]].name, key, frozenset(nodes)) for key, nodes in groups.items()]
    return tasks


def _parts(simulation: Simulation, task: Task) -> tuple[float, float, float]:
    graph = simulation.graph
    time = graph.time[graph.kinds.index(task.kind)]
    into = out = 0.0
    for maker in range(len(graph)) if task.key else ():
        sent = [
            (v, c) for (u, v), c in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True) if u == maker
        ]
        alike = len({cost for _, cost in sent}) == 1
        tensors = [({v for v, _ in sent}, sent[0][1])] if alike else [({v}, cost) for v, cost in sent]
        into += sum(cost for users, cost in tensors if maker not in task.nodes and users & task.nodes)
        out += sum(cost for users, cost in tensors if maker in task.nodes and users - task.nodes)
    return into, float(sum(time[node] for node in task.nodes)), out


def _length(communication: str, into: float, compute: float, out: float) -> float:
    if communication == "sequential":
        return into + compute + out
    return max(compute, into + out) if communication == "overlapped" else max(into, compute, out)


def _earlier(other: Task, task: Task) -> bool:
    """Does the other one have the device first?"""
    if other.key is None or task.key is None or other.device != task.device:
        return False
    return other.key < task.key


def _run(simulation: Simulation, limited: bool) -> None:
    """From moment to moment; in each, cores are given out once nothing else happens."""
    for task in simulation.tasks:
        task.start, task.finish = math.nan, math.inf
    now = 0.0
    while True:
        waiting = [task for task in simulation.tasks if math.isnan(task.start)]
        ready = [task for task in waiting if all(other.finish <= now for other in simulation.waits(task))]
        chosen = [task for task in ready if task.key is not None] or _with_core(
            simulation, ready, now, limited
        )
        for task in chosen:
            task.start, task.finish = now, now + task.length
        if not chosen:
            later = [task.finish for task in simulation.tasks if now < task.finish < math.inf]
            if not later:
                return
            now = min(later)


def _with_core(simulation: Simulation, ready: list[Task], now: float, limited: bool) -> list[Task]:
    """All that find a core at this moment, those with the longest path to go first."""
    chosen = []
    for kind in simulation.devices.kinds:
        mine = [task for task in simulation.tasks if task.key is None and task.kind == kind.name]
        busy = sum(task.start <= now < task.finish for task in mine)
        queue = sorted(
            (task for task in ready if task in mine), key=lambda task: (-task.rest, min(task.nodes))
        )
        chosen += queue[: kind.count - busy] if limited else queue
    return chosen


def _prioritise(simulation: Simulation) -> None:
    users: dict[Task, list[Task]] = {task: [] for task in simulation.tasks}
    for task in simulation.tasks:
        for other in simulation.waits(task):
            users[other].append(task)

    @cache
    def rest(task: Task) -> float:
        return task.length + max(map(rest, users[task]), default=0.0)

    for task in simulation.tasks:
        task.rest = rest(task)
