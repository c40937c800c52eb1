"""A schedule: what runs when, and the critical path that determines when the last entry ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx

from partitioner.evaluation.subgraphs import Units
from partitioner.workload.graph import Floats, Ints, NodeId


@dataclass(frozen=True)
class Run:
    """A subgraph on an accelerator, or a single node on a CPU; times in the graph's unit.

    Parameters
    ----------
    device, index
        The device's name, and the subgraph's index among those of its pass there; None for a CPU node.
    start, finish
        When it begins, and when it ends: its outputs are in host memory then.
    transfer_in, compute, transfer_out
        The parts of its time; they overlap unless `Devices.communication` is ``"sequential"``.
    nodes
        The ids of its nodes.
    backward
        True for a part of the backward pass.
    waits_for
        Position in the schedule of the entry that ended last among those whose output or device this one
        waits for; None if it waits for none.
    """

    device: str
    index: int | None
    start: float
    finish: float
    transfer_in: float
    compute: float
    transfer_out: float
    nodes: tuple[NodeId, ...]
    backward: bool = False
    waits_for: int | None = None


@dataclass(frozen=True)
class Schedule:
    """The entries that run, with their times, and the critical path (paper, Appendix A).

    Parameters
    ----------
    entries
        The entries in order of start; each comes after those that it waits for.
    critical_path
        Positions in `entries`: each waits for the one before, and the last one finishes last.
    """

    entries: tuple[Run, ...]
    critical_path: tuple[int, ...]


def start_times(waiting: nx.DiGraph[int], length: Floats) -> dict[int, float]:
    """Return when each unit starts if it waits only for its predecessors, in a topological order."""
    start: dict[int, float] = {}
    for unit in nx.topological_sort(waiting):
        before = waiting.predecessors(unit)
        start[unit] = max((start[other] + float(length[other]) for other in before), default=0.0)
    return start


def schedule_of(
    units: Units,
    device: Ints,
    waiting: nx.DiGraph[int],
    length: Floats,
    parts: Mapping[str, Floats],
) -> Schedule:
    """Return the schedule in which every unit starts as soon as all units that it waits for have ended.

    Parameters
    ----------
    units, device
        The units, and the position of the device that runs each of them.
    waiting, length
        The acyclic graph of which unit waits for which, and the time of each unit.
    parts
        Shape (units,) each: the fields `transfer_in`, `compute` and `transfer_out`.
    """
    start = start_times(waiting, length)
    finish = {unit: start[unit] + float(length[unit]) for unit in start}
    order = sorted(start, key=start.__getitem__)
    place = {unit: position for position, unit in enumerate(order)}
    members = units.members
    ids = units.placed.graph.ids
    last = {unit: max(waiting.predecessors(unit), key=finish.__getitem__, default=None) for unit in order}
    entries = tuple(
        Run(
            device=units.placed.names[device[unit]],
            index=units.index[unit],
            start=start[unit],
            finish=finish[unit],
            nodes=tuple(ids[node] for node in members[unit]),
            backward=bool(units.backward[unit]),
            waits_for=None if (before := last[unit]) is None else place[before],
            **{name: float(times[unit]) for name, times in parts.items()},
        )
        for unit in order
    )
    return Schedule(entries, _critical_path(entries))


def _critical_path(entries: tuple[Run, ...]) -> tuple[int, ...]:
    place: int | None = max(range(len(entries)), key=lambda i: entries[i].finish, default=None)
    path = []
    while place is not None:
        path.append(place)
        place = entries[place].waits_for
    return tuple(reversed(path))
