"""An exhaustive oracle of extended pipelines: every chain on every layout of devices.

It enumerates the lists of stages that the hierarchy of devices allows (kinds, groups, replicas), and for
each number of stages all splits in which no arc leads back. It shares no code with the package's methods
or its evaluator.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner import Devices, Graph
from partitioner.workload.constraints import NONE, Constraints, Range
from tests.oracle import arcs
from tests.oracle_stages import (
    Floats,
    Rows,
    Splits,
    Stage,
    group_of,
    loads_of_stages,
    memory_of_stages,
    objective_of,
    row_of,
)

Flags = NDArray[np.bool_]


def best_pipeline(
    graph: Graph,
    devices: Devices,
    constraints: Constraints = NONE,
    replicas: int = 1,
    schedule: str | None = None,
    microbatches: int | None = None,
    objective: str = "throughput",
) -> float | None:
    """The least value over all chains of stages of at most `replicas` devices each; None if there is none."""
    best = np.inf
    atom = atoms(graph, constraints)
    splits: dict[int, Splits] = {}
    for stages in layouts(devices, replicas, int(atom.max()) + 1):
        count = len(stages)
        if count not in splits:
            splits[count] = Splits(graph, chains(graph, atom, count, constraints), count)
        value = values(splits[count], devices, stages, constraints, schedule, microbatches, objective)
        best = min(best, float(value.min(initial=np.inf)))
    return None if best == np.inf else best


def values(
    splits: Splits,
    devices: Devices,
    stages: list[Stage],
    constraints: Constraints,
    schedule: str | None,
    microbatches: int | None,
    objective: str,
) -> Floats:
    """Shape (splits,): the value of each chain on these stages, infinity where a rule is broken."""
    wrong = constraints.stages not in (None, len(stages))
    wrong |= constraints.equal_replicas and len({len(stage.devices) for stage in stages}) > 1
    if wrong or not len(splits.here) or (constraints.use_all_devices and _idle(devices, stages)):
        return np.full(len(splits.here), np.inf)
    sound = _allowed(splits, devices, stages, constraints)
    zero = splits.graph.extras.top.get("zero", 0)
    memory = memory_of_stages(splits, stages, schedule, microbatches, zero)
    for i, stage in enumerate(stages):
        limit = devices.kinds[stage.kind].memory
        sound &= limit is None or memory[:, i] <= limit * (1 + 1e-9)
    load = loads_of_stages(splits, devices, stages, schedule, microbatches)[0]
    return np.where(sound, objective_of(load, objective, microbatches), np.inf)


def layouts(devices: Devices, replicas: int, most: int) -> Iterator[list[Stage]]:
    """Every list of at most `most` stages that visits the smallest groups in order, equal devices once.

    Explicit groups may be visited in any order and again; the devices of a stage are in one of them.
    """
    if devices.groups:
        yield from _layouts_of_groups(devices, replicas, most)
        return
    sizes = {
        k: devices.levels[0].size(kind.name) if devices.levels else kind.count
        for k, kind in enumerate(devices.kinds)
        if kind.count
    }
    groups = devices.kinds[min(sizes)].count // sizes[min(sizes)]

    def grown(stages: list[Stage], group: int, used: dict[int, int]) -> Iterator[list[Stage]]:
        if stages:
            yield stages
        if len(stages) == most:
            return
        for g in range(group, groups):
            taken = used if g == group else {}
            for k, size in sizes.items():
                room, first = tuple(range(g * size, (g + 1) * size)), taken.get(k, 0)
                for r in range(1, min(size - first, replicas) + 1):
                    stage = Stage(k, room[first : first + r], room)
                    yield from grown([*stages, stage], g, {**taken, k: first + r})
                for end in range(g + 2, groups + 1) if not taken else ():
                    room = tuple(range(g * size, end * size))
                    if len(room) <= replicas:
                        yield from grown([*stages, Stage(k, room, room)], end, {})

    yield from grown([], 0, {})


def _layouts_of_groups(devices: Devices, replicas: int, most: int) -> Iterator[list[Stage]]:
    rooms: list[tuple[int, tuple[int, ...]]] = []
    for k, kind in enumerate(devices.kinds):
        owner = [group_of(devices, k, i) for i in range(kind.count)]
        rooms += [(k, tuple(i for i, g in enumerate(owner) if g == here)) for here in sorted(set(owner))]

    def grown(stages: list[Stage], taken: tuple[int, ...]) -> Iterator[list[Stage]]:
        if stages:
            yield stages
        for at, (k, room) in enumerate(rooms if len(stages) < most else ()):
            for r in range(1, min(len(room) - taken[at], replicas) + 1):
                stage = Stage(k, room[taken[at] : taken[at] + r], room)
                yield from grown([*stages, stage], (*taken[:at], taken[at] + r, *taken[at + 1 :]))

    yield from grown([], (0,) * len(rooms))


def _idle(devices: Devices, stages: list[Stage]) -> bool:
    return sum(len(stage.devices) for stage in stages) < sum(kind.count for kind in devices.kinds)


def atoms(graph: Graph, constraints: Constraints) -> Rows:
    """The unit that each node is placed with: its colour class and all that is to be together."""
    atom = np.arange(len(graph))
    lists = [np.flatnonzero(graph.color == c) for c in set(graph.color.tolist()) if c >= 0]
    lists += [np.concatenate([_meant(graph, x) for x in each]) for each in constraints.together if each]
    for nodes in lists:
        atom[np.isin(atom, atom[nodes])] = atom[nodes[0]]
    return np.unique(atom, return_inverse=True)[1]


def _meant(graph: Graph, pattern: Any) -> Rows:
    if pattern in graph.ids:
        return np.array([graph.ids.index(pattern)])
    return np.flatnonzero([fnmatchcase(name, str(pattern)) for name in graph.names])


def chains(graph: Graph, atom: Rows, count: int, constraints: Constraints) -> Rows:
    """All splits into `count` stages in this order, shape (splits, n), of which each is a chain."""
    pairs = {(int(atom[u]), int(atom[v])) for u, v in arcs(graph)}
    rows: Rows = np.zeros((1, 0), dtype=np.int64)
    for a in range(int(atom.max()) + 1):
        longer = [np.repeat(rows, count, axis=0), np.tile(np.arange(count), len(rows))[:, None]]
        rows = np.concatenate(longer, axis=1)
        for u, v in pairs:
            if max(u, v) == a:
                rows = rows[rows[:, u] <= rows[:, v]]
    position = rows[:, atom]
    keep = np.ones(len(position), dtype=bool)
    for i in range(count):
        here = position == i
        keep &= here.any(axis=1) & _within(here.sum(axis=1), constraints.nodes_per_stage)
        layers = [(here & (graph.layer == x)).any(axis=1) for x in set(graph.layer.tolist()) - {-1}]
        keep &= _within(np.sum([np.zeros(len(here)), *layers], axis=0), constraints.layers_per_stage)
    if constraints.neighbours_only:
        keep &= (abs(np.diff(position[:, graph.edges], axis=2)) <= 1).all(axis=(1, 2))
    return position[keep]


def _within(number: NDArray[Any], limits: Range) -> Flags:
    least, most = limits
    return (number >= (least or 0)) & (number <= (np.inf if most is None else most))


def _allowed(splits: Splits, devices: Devices, stages: list[Stage], constraints: Constraints) -> Flags:
    """Shape (splits,): may every node be on its stage's kind, and its stage on the devices of its pins?"""
    sound = np.ones(len(splits.here), dtype=bool)
    for i, stage in enumerate(stages):
        kind = devices.kinds[stage.kind]
        row = row_of(splits.graph, kind)
        sound &= splits.fits[:, row, i] if row is not None else False
        for pattern, kinds in constraints.forbid.items():
            if kind.name in kinds:
                sound &= ~splits.here[:, _meant(splits.graph, pattern), i].any(axis=1)
        wanted: dict[int, Flags] = {}
        for pattern, target in constraints.pin.items():
            here = splits.here[:, _meant(splits.graph, pattern), i].any(axis=1)
            inside = [d for d in stage.room if target == f"{kind.name}{d}"]
            sound &= ~here | (target == kind.name) | bool(inside)
            for d in inside:
                wanted[d] = wanted.get(d, False) | here
        sound &= sum(wanted.values(), np.zeros(len(sound), dtype=int)) <= len(stage.devices)
    return sound & _apart(splits, stages, devices, constraints)


def _apart(splits: Splits, stages: list[Stage], devices: Devices, constraints: Constraints) -> Flags:
    """Shape (splits,): is nothing that is pinned to one device in two stages?"""
    sound = np.ones(len(splits.here), dtype=bool)
    for one, other in itertools.product(constraints.pin, repeat=2):
        if constraints.pin[one] == constraints.pin[other] in devices.names:
            first, second = (splits.here[:, _meant(splits.graph, x)].any(axis=1) for x in (one, other))
            sound &= ~(first[:, :, None] & second[:, None, :] & ~np.eye(len(stages), dtype=bool)).any((1, 2))
    return sound
