"""The command ``partitioner simulate``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from partitioner.base.errors import OptionError
from partitioner.base.files import check_writable
from partitioner.cli.argument import Section, flag, value
from partitioner.cli.inputs import read_planned
from partitioner.cli.output import show
from partitioner.cli.shared_arguments import FORMAT, OF_PLAN, PLAN, PROFILE, WORKLOAD, devices
from partitioner.evaluation.solution import PlanRecord
from partitioner.exports.chrome_trace import save_chrome_trace
from partitioner.exports.torch_schedule import refuse_groups, save_torch_schedule
from partitioner.formats.plan_record import load_record
from partitioner.formats.torch_schedule import load_torch_schedule
from partitioner.planning.comparison.schedules import Comparison, compare_schedules
from partitioner.results.timeline_table import rates_of_timeline, timeline_table
from partitioner.schedule import Timeline, simulate
from partitioner.schedule.kinds.registry import KINDS
from partitioner.schedule.reading import read_passes
from partitioner.schedule.simulation import LINKS, usual_schedule
from partitioner.workload.workload import Workload

TABLE = ".csv"
LINKS_ARGUMENT = value(
    "--links",
    "move tensors by host memory (host), or from device to device (direct) (default: host)",
    default="host",
    choices=LINKS,
)
SIMULATE = (
    Section(
        "",
        (
            WORKLOAD,
            PLAN,
            value(
                "--schedule",
                f"run this schedule: {', '.join(KINDS)}, or a file with one of torch's (.csv) "
                "(default: the plan's, else 1f1b, or inference for a graph without a backward pass)",
                metavar="NAME",
            ),
            value(
                "--microbatches",
                "run this many samples (default: as many as the plan or the schedule's file says; if neither "
                "does, the option is required)",
                type=int,
                metavar="N",
            ),
            LINKS_ARGUMENT,
            flag(
                "--recompute",
                "let stages run each forward pass again before the backward pass, and keep no activations "
                "between (default: they are kept)",
                dest="recompute_stages",
            ),
            flag(
                "--late-exchange",
                "let replicas exchange weights when all devices have run their last pass "
                "(default: each device when it has run its own)",
            ),
            flag("--compare", "rank all schedules (default: run one schedule)"),
        ),
    ),
    Section(
        "output",
        (
            value(
                "--output",
                "write the timeline to this file (default: none is written)",
                metavar="TIMELINE.json",
            ),
            value(
                "--trace",
                "write a Chrome trace, for Perfetto, to this file (default: none is written)",
                metavar="TRACE.json",
            ),
            value(
                "--csv",
                "write the schedule for torch to this file (default: none is written)",
                metavar="FILE.csv",
            ),
            FORMAT,
        ),
    ),
    devices(OF_PLAN),
    PROFILE,
)


def simulate_plan(options: argparse.Namespace) -> None:
    """Simulate a plan under a schedule, or compare all schedules; print the result and write files.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, or a file cannot be written.
    """
    of_one_given = options.output or options.csv or options.recompute_stages or options.late_exchange
    if options.compare and of_one_given and not options.schedule:
        of_one = "--output, --csv, --recompute and --late-exchange"
        raise OptionError(f"{of_one} are about one schedule: --compare needs --schedule with them")
    check_writable(options.output, options.trace, options.csv)
    workload, record = read_planned(options, load_record(options.plan))
    comparison = _compared(options, workload, record) if options.compare else None
    timeline = _simulated(options, workload, record) if options.schedule or comparison is None else None
    show(_text(options, timeline, comparison, workload), lambda: _write(options, timeline, comparison))


def _text(
    options: argparse.Namespace,
    timeline: Timeline | None,
    comparison: Comparison | None,
    workload: Workload,
) -> str:
    if comparison is not None:
        return comparison.to_json() if options.format == "json" else comparison.summary()
    assert timeline is not None
    rates = rates_of_timeline(timeline, workload.graph.extras)
    if options.format == "json":
        return json.dumps(timeline.as_dict() | ({"rates": rates} if rates else {}))
    return timeline_table(timeline, rates=rates)


def simulation_arguments(options: argparse.Namespace, record: PlanRecord) -> dict[str, Any]:
    """Return the plan, and the number of samples: that of the options, else that of the plan."""
    return {
        "plan": record,
        "microbatches": record.microbatches if options.microbatches is None else options.microbatches,
        "links": options.links,
    }


def _compared(options: argparse.Namespace, workload: Workload, record: PlanRecord) -> Comparison:
    return compare_schedules(workload.graph, workload.devices, **simulation_arguments(options, record))


def _simulated(options: argparse.Namespace, workload: Workload, record: PlanRecord) -> Timeline:
    graph, devices = workload.graph, workload.devices
    name: str = options.schedule or record.schedule or usual_schedule(graph)
    flags = {"recompute": bool(options.recompute_stages), "late_exchange": bool(options.late_exchange)}
    given = simulation_arguments(options, record) | flags
    if Path(name).suffix != TABLE:
        return simulate(graph, devices, schedule=name, **given)
    table = load_torch_schedule(name, _ranks(workload, record))
    return simulate(graph, devices, schedule=table, **given | {"microbatches": options.microbatches})


def _ranks(workload: Workload, record: PlanRecord) -> list[str]:
    """Return the devices in the order of their first stages, as :func:`torch_ranks` writes them."""
    passes = read_passes(workload.graph, workload.devices, record)
    return [passes.names[device] for device in dict.fromkeys(passes.stage_devices())]


def _write(options: argparse.Namespace, timeline: Timeline | None, comparison: Comparison | None) -> None:
    """Write the requested files; a trace shows every schedule that was compared."""
    if timeline is not None and options.csv is not None:
        refuse_groups(timeline)
    if options.trace is not None:
        runs = {} if timeline is None else {timeline.schedule: timeline}
        if comparison is not None:
            runs = {one.schedule: one.timeline for one in comparison.ranked if one.timeline} | runs
        save_chrome_trace(runs, options.trace)
    if timeline is not None and options.output is not None:
        timeline.save(options.output)
    if timeline is not None and options.csv is not None:
        save_torch_schedule(timeline.table, options.csv)
