"""The command ``partitioner simulate``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from partitioner.comparison.schedules import Comparison, compare_schedules
from partitioner.errors import OptionError
from partitioner.exports.chrome_trace import save_chrome_trace
from partitioner.exports.torch_schedule import save_torch_schedule
from partitioner.files import check_writable
from partitioner.formats.placement import load_placement
from partitioner.formats.replicas import load_order, load_replicas
from partitioner.formats.torch_schedule import load_torch_schedule
from partitioner.graph import Graph
from partitioner.inputs import read_workload
from partitioner.schedule import Table, Timeline, simulate
from partitioner.schedule.reading import read_passes
from partitioner.schedule_report import timeline_table
from partitioner.workload import Workload

TABLE = ".csv"


def simulate_plan(options: argparse.Namespace) -> None:
    """Simulate a plan under a schedule, or compare all schedules; print what came out, write files.

    Raises
    ------
    PartitionerError
        If something in files or options is not sound, or a file cannot be written.
    """
    if options.compare and (options.output or options.csv) and not options.schedule:
        raise OptionError("--output and --csv are about one schedule: --compare needs --schedule with them")
    check_writable(options.output, options.trace, options.csv)
    workload = read_workload(options)
    given = _given(options, workload)
    comparison = _compared(options, workload, given) if options.compare else None
    timeline = _simulated(options, workload, given) if options.schedule or comparison is None else None
    if comparison is not None:
        print(comparison.to_json() if options.format == "json" else comparison.summary())
    elif timeline is not None:
        print(timeline.to_json() if options.format == "json" else timeline_table(timeline))
    _write(options, timeline, comparison)


def _given(options: argparse.Namespace, workload: Workload) -> dict[str, Any]:
    """What the plan file says, by the names of arguments."""
    return {
        "plan": load_placement(options.plan, workload.graph, workload.devices),
        "replicas": load_replicas(options.plan) or None,
        "order": load_order(options.plan),
        "links": options.links,
    }


def _compared(options: argparse.Namespace, workload: Workload, given: dict[str, Any]) -> Comparison:
    count = options.microbatches
    return compare_schedules(workload.graph, workload.devices, microbatches=count, **given)


def _simulated(options: argparse.Namespace, workload: Workload, given: dict[str, Any]) -> Timeline:
    graph, devices = workload.graph, workload.devices
    name: str = options.schedule or _usual(graph)
    is_file = Path(name).suffix == TABLE
    schedule: str | Table = load_torch_schedule(name, _ranks(workload, given)) if is_file else name
    return simulate(graph, devices, schedule=schedule, microbatches=options.microbatches, **given)


def _usual(graph: Graph) -> str:
    """The schedule where none is named."""
    return "1f1b" if graph.backward.any() else "inference"


def _ranks(workload: Workload, given: dict[str, Any]) -> list[str]:
    """The devices in the order of their first stages, as :func:`torch_ranks` writes them."""
    passes = read_passes(workload.graph, workload.devices, **given)
    return [passes.names[device] for device in dict.fromkeys(passes.stage_devices())]


def _write(options: argparse.Namespace, timeline: Timeline | None, comparison: Comparison | None) -> None:
    """The files asked for; a trace shows every schedule that was compared."""
    if options.trace is not None:
        runs = {} if timeline is None else {timeline.schedule: timeline}
        if comparison is not None:
            runs = {one.schedule: one.timeline for one in comparison.ranked if one.timeline} | runs
        save_chrome_trace(runs, options.trace)
    if timeline is not None and options.output is not None:
        timeline.save(options.output)
    if timeline is not None and options.csv is not None:
        save_torch_schedule(timeline.table, options.csv)
