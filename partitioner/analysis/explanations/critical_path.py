"""The critical path of a plan whose value is the end of a schedule: where its time goes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from partitioner.evaluation.schedule import Run, Schedule
from partitioner.workload.graph import NodeId

MOST = 5  # entries that are named


@dataclass(frozen=True)
class PathEntry:
    """An entry of the critical path: a subgraph, or an operator.

    Parameters
    ----------
    device
        The device that runs it.
    start, time
        When it begins, and how long it takes with its transfers.
    nodes
        The ids of its nodes.
    """

    device: str
    start: float
    time: float
    nodes: tuple[NodeId, ...]


@dataclass(frozen=True)
class CriticalPath:
    """The entries that follow one another without slack up to the end of the schedule.

    Parameters
    ----------
    count
        How many entries the path has.
    end
        When its last entry ends.
    devices
        For each device the time that the path spends on it, the largest first.
    waiting
        The time between entries, in which tensors travel.
    longest
        The entries that take the most time, in decreasing order.
    """

    count: int
    end: float
    devices: tuple[tuple[str, float], ...]
    waiting: float
    longest: tuple[PathEntry, ...]


def critical_path_of(schedule: Schedule) -> CriticalPath:
    """Return where the time of a schedule's critical path goes."""
    runs = [schedule.entries[place] for place in schedule.critical_path]
    spent: dict[str, float] = defaultdict(float)
    for run in runs:
        spent[run.device] += run.finish - run.start
    end = max((run.finish for run in runs), default=0.0)
    longest = sorted(runs, key=lambda run: run.start - run.finish)[:MOST]
    return CriticalPath(
        count=len(runs),
        end=end,
        devices=tuple(sorted(spent.items(), key=lambda item: -item[1])),
        waiting=end - sum(spent.values()),
        longest=tuple(_entry(run) for run in longest),
    )


def _entry(run: Run) -> PathEntry:
    return PathEntry(run.device, run.start, run.finish - run.start, run.nodes)
