"""Comparisons of schedules for one plan, the fastest first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from rich.text import Text

from partitioner.base.errors import OptionError, shown
from partitioner.base.markup import html_table
from partitioner.evaluation.solution import AnySolution
from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.tables import WIDE, bar, columns, figure_table, render
from partitioner.planning.comparison.ranked import Ranked, bubble_share, fullest_device
from partitioner.results.timeline_table import memory_share
from partitioner.schedule import Timeline, simulate
from partitioner.schedule.kinds.registry import KINDS
from partitioner.workload.device_validation import LARGEST
from partitioner.workload.devices import MEMORY_TOLERANCE, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.networkx_graph import as_graph

ALWAYS = "single_stream"


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of schedules for a plan: those that can be used first, the fastest first.

    Parameters
    ----------
    ranked
        The schedules, see :class:`Ranked`.
    microbatches
        How many samples pass through.
    bound
        The largest load of a device: no schedule takes less time a sample.
    notes
        What a reader should know: what the workload leaves open.
    """

    ranked: tuple[Ranked, ...]
    microbatches: int
    bound: float
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        best = "none can be used" if self.best is None else f"best {self.best.schedule}"
        makespan = "" if self.best is None else f" with makespan {self.best.makespan:.6g}"
        counts = f"{len(self.ranked)} schedules, {self.microbatches} microbatches"
        return f"<Comparison: {counts}, {best}{makespan}>"

    def _repr_html_(self) -> str:
        rows = [(one.schedule, f"{one.makespan:.6g}", one.against) for one in self.ranked]
        return html_table(repr(self)[1:-1], ("schedule", "makespan", "against"), rows)

    @property
    def best(self) -> Ranked | None:
        """The fastest schedule that can be used; None if none can."""
        return self.ranked[0] if self.ranked[0].feasible else None

    def summary(self, width: int | None = None) -> str:
        """Return a text table of at most `width` columns, by default the terminal's."""
        verdict = "no schedule can be used" if self.best is None else f"{self.best.schedule} is the fastest"
        head = (
            f"{self.microbatches} microbatches: {verdict}; "
            f"no schedule takes less than {self.bound:.6g} per sample"
        )
        return ranked_table(head, self.ranked, self.notes, width)

    def to_json(self) -> str:
        """Return the schedules and their figures as one JSON object."""
        record: dict[str, Any] = {"microbatches": self.microbatches, "bound": self.bound}
        record |= {"notes": list(self.notes)} if self.notes else {}
        return json.dumps(record | {"schedules": [one.as_dict() for one in self.ranked]}, indent=1)


def compare_schedules(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices | None,
    plan: AnySolution,
    microbatches: int | None = None,
    memory: float | None = None,
    *,
    replicas: Mapping[str, Sequence[str]] | None = None,
    order: Sequence[str] | None = None,
    links: str = "host",
) -> Comparison:
    """Simulate every schedule for a plan and rank them by makespan.

    Graphs with backward nodes are compared under the schedules for training, others under those for
    inference.

    Parameters
    ----------
    graph, devices, plan, microbatches, replicas, order, links
        As for :func:`partitioner.schedule.simulate`.
    memory
        What every device may hold, in the unit of the graph's sizes; by default what `devices` says.

    Raises
    ------
    WorkloadError
        As there.
    OptionError
        As there, or if `memory` is no positive number.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)])
    >>> from partitioner.workload.devices import DeviceKind
    >>> found = compare_schedules(graph, Devices((DeviceKind("gpu", 2),)), {0: "gpu0", 1: "gpu1"}, 4)
    >>> [(one.schedule, one.makespan) for one in found.ranked]
    [('inference', 5.0), ('single_stream', 8.0)]
    """
    _check_memory(memory)
    graph = as_graph(graph, devices)
    given: dict[str, Any] = {"replicas": replicas, "order": order, "links": links}
    base = simulate(graph, devices, plan, ALWAYS, microbatches, **given)  # refuses what no schedule can run
    found = [_judged(base, memory)]
    for name, kind in KINDS.items():
        if name != ALWAYS and kind.trains in (None, bool(graph.backward.any())):
            try:
                timeline = simulate(graph, devices, plan, name, microbatches, **given)
            except OptionError as error:
                found.append(Ranked(name, None, str(error).partition(": ")[2]))
            else:
                found.append(_judged(timeline, memory))
    ranked = sorted(found, key=lambda one: (not one.feasible, one.makespan))
    notes = dict.fromkeys(note for one in ranked if one.timeline for note in one.timeline.notes)
    return Comparison(tuple(ranked), base.table.microbatches, base.bound, tuple(notes))


def _judged(timeline: Timeline, memory: float | None) -> Ranked:
    """Return the record of a simulated schedule; `memory` replaces the memory limits if it is given."""
    if memory is not None:
        limit = np.full(len(timeline.devices), memory * (1 + MEMORY_TOLERANCE))
        timeline = replace(timeline, memory_limit=limit)
    if timeline.fits.all():
        return Ranked(timeline.schedule, timeline)
    fullest = fullest_device(timeline)
    peak, limit = timeline.peak_memory[fullest], timeline.memory_limit[fullest]
    words = f"{timeline.devices[fullest]} needs {amount(peak)} of memory and has {amount(limit)}"
    return Ranked(timeline.schedule, timeline, words)


def _check_memory(memory: object) -> None:
    number = isinstance(memory, int | float) and not isinstance(memory, bool)
    if memory is not None and not (number and 0 < memory <= LARGEST):  # type: ignore[operator]
        raise OptionError(
            f"memory = {shown(memory)}: must be None or a positive number of at most {LARGEST:g}"
        )


# A comparison of schedules as a text table.


def ranked_table(head: str, ranked: Sequence[Ranked], notes: Sequence[str], width: int | None = None) -> str:
    """Return a line for each schedule in the order given, then why some cannot be used, then notes."""
    wide = columns(width) >= WIDE
    table = figure_table(wide, ("schedule",), ("makespan", "per sample", "bubble", "memory", "full"))
    table.add_column("device", overflow="fold")
    if wide:
        table.add_column("of the possible throughput", no_wrap=True)
    for one in ranked:
        table.add_row(*map(Text, _row(one, wide)))
    against = [f"{one.schedule} cannot be used: {one.against}" for one in ranked if one.against]
    return render([Text(head), table, *map(Text, [*against, *(f"note: {note}" for note in notes)])], width)


def _row(one: Ranked, wide: bool) -> list[str]:
    timeline = one.timeline
    title = one.schedule if one.feasible else f"({one.schedule})"
    if timeline is None:
        return [title]
    fullest = fullest_device(timeline)
    return [
        title,
        figure(timeline.makespan),
        figure(timeline.time_per_sample),
        f"{bubble_share(timeline):.1%}",
        amount(timeline.peak_memory[fullest]),
        memory_share(timeline, fullest),
        timeline.devices[fullest],
        *([bar(timeline.efficiency)] if wide else []),
    ]
