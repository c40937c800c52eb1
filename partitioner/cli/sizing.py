"""The commands ``partitioner fewest-devices`` and ``partitioner least-memory``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from partitioner.base.files import check_writable
from partitioner.cli.argument import Argument, Section, value
from partitioner.cli.inputs import read_workload
from partitioner.cli.option_arguments import argument_of
from partitioner.cli.output import saved, show
from partitioner.cli.progress import ProgressLine
from partitioner.cli.solve_arguments import solve_options, solve_sections
from partitioner.planning.option import SERVING
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.sizing.fewest_devices import FewestDevices, fewest_devices
from partitioner.planning.sizing.least_memory import LeastMemory, least_memory

LIMIT = "max_time_per_sample"
KIND = value(
    "--kind",
    "ask for devices of this kind (default: the only kind that pays for transfers)",
    metavar="NAME",
)
CHANGED = {
    "--time-limit": argument_of(
        replace(
            OPTIONS["time_limit"],
            help="let the whole search take this many seconds, in which compiling is not counted",
        ),
    ),
    "--gap": argument_of(
        replace(OPTIONS["gap"], help="stop once the plan, or the memory, is proven within this fraction")
    ),
}


def sizing_sections() -> tuple[Section, ...]:
    """Return the arguments of both commands: those of ``solve`` with a limit of the time, and the kind."""
    limit = argument_of(
        replace(OPTIONS[LIMIT], help="look for plans that take at most this time for a sample"),
        "none, any plan will do",
    )
    targets = (
        value(
            "--tokens-per-second",
            "look for plans through which this many tokens pass in a second (default: none)",
            type=float,
            metavar="N",
        ),
        value(
            "--batch-seconds",
            "look for plans that take at most this time for a batch (default: none)",
            type=float,
            metavar="SECONDS",
        ),
    )
    first, *others = (section for section in solve_sections() if section.title != SERVING)
    return (
        replace(first, arguments=(*first.arguments, limit, *targets, KIND)),
        *(replace(one, arguments=tuple(map(_changed, one.arguments))) for one in others),
    )


def _changed(argument: Argument) -> Argument:
    return CHANGED.get(argument.name, argument)


def find_fewest(options: argparse.Namespace) -> None:
    """Print the fewest devices with which a plan takes at most a given time.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, or no number of devices suffices.
    """
    _print_found(options, fewest_devices)


def find_least_memory(options: argparse.Namespace) -> None:
    """Print the least memory of a device with which there is a plan within the time.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, or no memory suffices.
    """
    _print_found(options, least_memory)


def _print_found(options: argparse.Namespace, find: Callable[..., FewestDevices | LeastMemory]) -> None:
    check_writable(options.output)
    workload = read_workload(options)
    given: dict[str, Any] = {LIMIT: None, **solve_options(options, workload), "kind": options.kind}
    given |= {name: getattr(options, name) for name in ("tokens_per_second", "batch_seconds")}
    with ProgressLine() as line:
        found = find(workload.graph, workload.devices, on_progress=line.show, **given)
    text = found.to_json() if options.format == "json" else found.summary()
    show(text, *saved(found.plan, workload, options))
