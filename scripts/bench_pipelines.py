"""What replicas, schedules, limits and levels of links cost the dynamic program, beside the plain one.

Every setting is solved `--repeat` times in turn, after one call that compiles or loads the kernels (and
counts if there is no other); the table has the medians. Exit code: 0; 2 if files are missing or bad.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grids import markdown_grid, text_grid

import partitioner as pt

BANDWIDTH = 12e6  # bytes in a ms, where the file does not say
SLOWDOWN = 8.0
GOOD, BAD_INPUT = 0, 2
Case = tuple[pt.Devices, dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """What came of one setting of one workload; `ratio` is to the seconds of the first setting."""

    workload: str
    setting: str
    plan: pt.Plan
    seconds: float
    ratio: float

    def cells(self) -> list[str]:
        """The row as texts."""
        plan = self.plan
        return [
            self.workload, self.setting, f"{plan.value:.3f}", f"{plan.gap:.2%}", f"{self.seconds:.2f}",
            f"{self.ratio:.1f}", plan.stop_reason,
        ]  # fmt: skip


HEADS = ("workload", "setting", "value", "gap", "s", "times plain", "stopped")


def plain(devices: pt.Devices) -> Case:
    """The accelerators and CPUs of the file."""
    return devices, {}


def limited(devices: pt.Devices) -> Case:
    """Stages of any size, but tensors only between neighbours."""
    return devices, {"constraints": pt.Constraints(neighbours_only=True)}


def one_forward_one_backward(devices: pt.Devices) -> Case:
    """Memory that knows how many samples a stage holds."""
    return devices, {"schedule": "1f1b"}


def replicated(devices: pt.Devices) -> Case:
    """Stages on any number of accelerators, which exchange weights."""
    kinds = tuple(
        replace(k, bandwidth=k.bandwidth or BANDWIDTH) if k.pays_communication else k for k in devices.kinds
    )
    return replace(devices, kinds=kinds), {"replicas": max(k.count for k in kinds)}


def two_servers(devices: pt.Devices) -> Case:
    """Accelerators only, in two servers; an odd number is made even."""
    (gpu,) = (replace(k, count=k.count + k.count % 2) for k in devices.kinds if k.pays_communication)
    server = pt.Level("server", {gpu.name: gpu.count // 2}, SLOWDOWN)
    return replace(devices, kinds=(gpu,), levels=(server,)), {}


def both(devices: pt.Devices) -> Case:
    """Replicas in two servers."""
    return two_servers(devices)[0], replicated(devices)[1]


SETTINGS: dict[str, Callable[[pt.Devices], Case]] = {
    "plain": plain,
    "neighbours": limited,
    "1f1b": one_forward_one_backward,
    "replicas": replicated,
    "servers": two_servers,
    "both": lambda devices: both(replicated(devices)[0]),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        rows = [row for file in options.files for row in measure(file, options)]
    except pt.PartitionerError as error:
        print(f"bench_pipelines: {error}", file=sys.stderr)
        return BAD_INPUT
    grid = markdown_grid if options.format == "markdown" else text_grid
    print(grid(HEADS, [row.cells() for row in rows]))
    return GOOD


def measure(file: Path, options: argparse.Namespace) -> list[Row]:
    """Solve a workload in every setting in turn."""
    workload = pt.load(file)
    devices = workload.devices
    if options.accelerators is not None:
        kinds = (replace(k, count=options.accelerators) for k in devices.kinds if k.pays_communication)
        devices = replace(devices, kinds=tuple(kinds))
    kinds = (replace(k, bandwidth=options.bandwidth) for k in devices.kinds)
    devices = replace(devices, kinds=tuple(kinds))
    plans: dict[str, list[pt.Plan]] = {name: [] for name in options.settings}
    for _ in range(options.repeat + 1):
        for name in options.settings:
            kinds_of, extra = SETTINGS[name](devices)
            plans[name].append(pt.solve(workload.graph, kinds_of, time_limit=options.time_limit, **extra))
    seconds = {
        name: statistics.median(plan.runtime_seconds for plan in each[1:] or each)
        for name, each in plans.items()
    }
    first = seconds[options.settings[0]]
    return [Row(file.stem, name, plans[name][-1], seconds[name], seconds[name] / first) for name in plans]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench_pipelines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a workload file")
    parser.add_argument(
        "--settings", type=_chosen, default=tuple(SETTINGS), metavar=",".join(SETTINGS), help="(all)"
    )
    parser.add_argument("--accelerators", type=int, metavar="N", help="in place of those of the file")
    parser.add_argument("--bandwidth", type=float, metavar="BYTES", help="in a unit of time (12e6)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (3)")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="of each run (none)")
    parser.add_argument("--format", default="text", choices=("text", "markdown"))
    return parser


def _chosen(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not set(names) <= set(SETTINGS):
        raise argparse.ArgumentTypeError(f"{text}: choose from {', '.join(SETTINGS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
