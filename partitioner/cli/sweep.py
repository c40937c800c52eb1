"""The command ``partitioner sweep``."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from itertools import product
from typing import Any

from partitioner.analysis.plots.sweep import plot_sweep
from partitioner.analysis.sweeps.pool import DevicePool
from partitioner.analysis.sweeps.processes import dask_executor
from partitioner.analysis.sweeps.result import SweepResult
from partitioner.analysis.sweeps.run import sweep
from partitioner.base.errors import NoPlanFound
from partitioner.base.files import check_writable, write_bytes
from partitioner.cli.argument import Argument, Section, counts, flag, names, sizes, value
from partitioner.cli.inputs import format_options
from partitioner.cli.option_arguments import option_section
from partitioner.cli.output import show
from partitioner.cli.pictures import FORMATS, drawn, picture_suffix
from partitioner.cli.progress import ProgressLine
from partitioner.cli.shared_arguments import FORMAT, PROFILE
from partitioner.formats.devices import load_devices
from partitioner.planning.objectives import DEFAULT
from partitioner.planning.option import LIMITS, PIPELINES, SERVING, WANTED
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.options import check_values, cores_for

OF_SPEC = "those of the spec"
VARIED = ("accelerators", "memory", "cpus")
SPEC = value(
    "spec",
    "solve the product that this file in TOML describes (docs/sweeps.md), or every workload in this folder, "
    "or the workload in this file of any other format",
    metavar="SPEC",
)
POOLS = Section(
    "pools of devices, in place of those of the spec: one for each combination",
    (
        value(
            "--accelerators",
            "use these numbers of accelerators, separated by commas "
            f"(default: {OF_SPEC}, else of each workload)",
            type=counts,
            metavar="A,B,C",
        ),
        value(
            "--memory",
            "let each accelerator hold at most these numbers of bytes, such as 16GiB,40GiB (default: "
            f"{OF_SPEC}, else of each workload)",
            type=sizes,
            metavar="A,B,C",
        ),
        value(
            "--cpus",
            f"use these numbers of CPUs, separated by commas (default: {OF_SPEC}, else of each workload)",
            type=counts,
            metavar="A,B,C",
        ),
        value(
            "--devices",
            "read devices from these JSON files, separated by commas, before their number and memory are "
            f"changed (default: {OF_SPEC}, else those of each workload)",
            type=names,
            metavar="A,B,C",
        ),
    ),
)
OBJECTIVES = value(
    "--objective",
    "solve for these objectives, separated by commas (default: those of the spec, else makespan if there "
    f"are a schedule and microbatches, else {DEFAULT})",
    type=names,
    metavar="A,B,C",
)
RUNNING = Section(
    "how to run the tasks",
    (
        value(
            "--processes",
            "run this number of tasks at the same time, each on one core of this machine (default: one for "
            "each core)",
            type=int,
            metavar="N",
        ),
        value(
            "--dask",
            "run the tasks on the cluster of the Dask scheduler at this address, or on one of --processes "
            "processes that is started for the sweep (local) (default: no cluster)",
            metavar="ADDRESS",
        ),
        flag("--retry-failed", "run tasks again that failed before (default: their rows are kept)"),
        flag(
            "--no-warm-up",
            "compile kernels when a task needs them (default: all kernels are compiled before the first task "
            "on each machine)",
            stands_for=False,
            dest="warm_up",
        ),
    ),
)
OUTPUT = Section(
    "output",
    (
        value(
            "--output",
            "write the rows to this file, which ends in .jsonl, .csv or .parquet, and go on from its rows if "
            "it exists (default: they are only printed)",
            metavar="RESULTS",
        ),
        value("--plans", "write the plans into this folder (default: they are not kept)", metavar="FOLDER"),
        value(
            "--picture",
            "draw values and bounds over the number of devices, and the Pareto front, into this file, which "
            f"ends in {', '.join(FORMATS)} (default: no picture)",
            metavar="FILE",
        ),
        FORMAT,
    ),
)


def sweep_sections() -> tuple[Section, ...]:
    """Return the arguments of ``sweep``; the options of ``solve`` among them hold for every task."""
    left_out = ("--objective", "--workers")
    options = [
        Section(section.title, tuple(one for one in section.arguments if one.name not in left_out))
        for section in map(option_section, (WANTED, LIMITS, PIPELINES, SERVING))
    ]
    first: tuple[Argument, ...] = (SPEC, OBJECTIVES)
    return (Section("", first), POOLS, RUNNING, OUTPUT, *options, PROFILE)


def run_sweep(options: argparse.Namespace) -> None:
    """Solve a product of workloads, pools and options, and print a row for each.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C was pressed, with a text that says how to go on.
    NoPlanFound
        If a task failed, or there is no plan at all.
    PartitionerError
        If a file or an option breaks a rule.
    """
    suffix = None if options.picture is None else picture_suffix("--picture", options.picture)
    check_writable(options.picture)
    try:
        found = _found(options)
    except KeyboardInterrupt:  # the second Ctrl-C, or one while files are read
        raise KeyboardInterrupt(f"interrupted{_way_on(options.output)}") from None
    text = found.to_json() if options.format == "json" else found.summary()
    show(text, lambda: _draw(found, options.picture, suffix))
    _check(found, options.output)


def _draw(found: SweepResult, path: str, suffix: str | None) -> None:
    """Write the picture, if one is asked for and there is a plan to draw."""
    if suffix is not None and any(row.value is not None for row in found.rows):
        write_bytes(path, drawn(lambda: plot_sweep(found), suffix))


def _found(options: argparse.Namespace) -> SweepResult:
    check_values(workers=options.processes)
    with ExitStack() as stack:
        line = stack.enter_context(ProgressLine())
        given: dict[str, Any] = {"processes": options.processes}
        if options.dask is not None:
            cluster = dask_executor(options.dask, cores_for(options.processes)[0])
            given = {"executor": stack.enter_context(cluster)}
        return sweep(
            options.spec,
            _pools(options),
            _options(options),
            results=options.output,
            plans=options.plans,
            warm_up=options.warm_up is not False,
            retry_failed=bool(options.retry_failed),
            on_progress=lambda progress: line.write(progress.text()),
            **given,
            **format_options(options),
        )


def _pools(options: argparse.Namespace) -> list[DevicePool] | None:
    """Return a pool for each combination of what the command line gives; None if it gives nothing."""
    given = {name: getattr(options, name) for name in VARIED if getattr(options, name) is not None}
    if not given and options.devices is None:
        return None
    files = [None] if options.devices is None else [load_devices(name) for name in options.devices]
    return [
        DevicePool(devices=devices, **dict(zip(given, values, strict=True)))
        for devices in files
        for values in product(*given.values())
    ]


def _options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of ``solve`` that the command line gives."""
    given = {name: getattr(options, name, None) for name in OPTIONS}
    return {name: each for name, each in given.items() if each is not None}


def _check(found: SweepResult, output: str | None) -> None:
    """Raise if the sweep was interrupted, if a task failed, or if there is no plan."""
    if not found.complete:
        words = f"interrupted: {len(found.rows):,} of {found.total:,} tasks are done"
        raise KeyboardInterrupt(words + _way_on(output))
    if found.failed:
        again = "; --retry-failed runs them again" if output else ""
        raise NoPlanFound(f"{found.failed:,} of {found.total:,} tasks failed{again}")
    if all(row.value is None for row in found.rows):
        raise NoPlanFound("no task found a plan")


def _way_on(output: str | None) -> str:
    return f"; the same command goes on from {output}" if output else ""
