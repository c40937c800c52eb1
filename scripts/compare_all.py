"""Compare the methods on many workloads: markdown tables of values and of gaps, workload by method.

A gap is to the best bound that any method proved for the split or a freer one; "-" stands for no plan, with
the reason below the tables. Exit code: 0; 1 if a method is contradicted; 2 if files or options are bad.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grids import markdown_grid
from rich.console import Console

import partitioner as pt
from partitioner.planning.comparison.runs import Compared
from partitioner.planning.objectives import OBJECTIVES

GOOD, CONTRADICTED, BAD_INPUT = 0, 1, 2
Line = tuple[str, str]  # a method and a split
Found = Mapping[str, pt.MethodComparison]  # by workload


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        The words after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        paths = _paths(options.folders)
        found = {_title(path, paths): _compared(path, options) for path in paths}
    except (OSError, pt.PartitionerError) as error:
        print(f"compare_all: {error}", file=sys.stderr)
        return BAD_INPUT
    print(tables(found))
    return CONTRADICTED if any(each.contradictions for each in found.values()) else GOOD


def tables(found: Found) -> str:
    """Values, gaps and reasons as markdown; methods that come closest to the best on average come first."""
    lines = sorted({(one.method, one.split) for each in found.values() for one in each.compared})
    lines.sort(key=lambda line: _distance(found, line))
    heads = ["workload", *(f"{method} ({split})" for method, split in lines)]
    values = [[name, *(_value(each, line) for line in lines)] for name, each in found.items()]
    gaps = [[name, *(_gap(each, line) for line in lines)] for name, each in found.items()]
    reasons = [f"- {name}, {one.method}, {one.split}: {one.reason}" for name, one in _without(found)]
    bugs = [f"- CONTRADICTION: {name}: {words}" for name in found for words in found[name].contradictions]
    parts = ["Values", markdown_grid(heads, values), "Gaps to the best bound", markdown_grid(heads, gaps)]
    return "\n\n".join([*parts, *(["\n".join([*bugs, *reasons])] if bugs or reasons else [])])


def _without(found: Found) -> list[tuple[str, Compared]]:
    return [(name, one) for name, each in found.items() for one in each.compared if one.plan is None]


def _row(comparison: pt.MethodComparison, line: Line) -> Compared | None:
    """What the method found there; None if nothing."""
    mine = (one for one in comparison.compared if (one.method, one.split) == line)
    one = next(mine, None)
    return None if one is None or one.plan is None else one


def _value(comparison: pt.MethodComparison, line: Line) -> str:
    one = _row(comparison, line)
    return "-" if one is None else f"{one.value:.2f}"


def _gap(comparison: pt.MethodComparison, line: Line) -> str:
    one = _row(comparison, line)
    return "-" if one is None else f"{comparison.gap(one):.2%}"


def _distance(found: Found, line: Line) -> float:
    """The mean over the workloads of the logarithm of value to best value; infinity with a plan missing."""
    logs = []
    for comparison in found.values():
        one, best = _row(comparison, line), comparison.best
        if one is None or best is None:
            return math.inf
        logs.append(math.log(one.value / best.value) if best.value > 0 else 0.0)
    return sum(logs) / len(logs)


def _compared(path: Path, options: argparse.Namespace) -> pt.MethodComparison:
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(path.stem, style="dim")
    workload = pt.load(path)
    devices = _accelerators(workload.devices) if options.no_cpus else workload.devices
    chosen: dict[str, Any] = {"refine": True} if options.refine else {}
    chosen |= {"transfers": pt.Transfers(contention=True)} if options.contention else {}
    return pt.compare_methods(
        workload.graph,
        devices,
        options.objective,
        split=options.split,
        methods=options.methods,
        time_limit=options.time_limit,
        seed=options.seed,
        workers=options.workers,
        **chosen,
    )


def _accelerators(devices: pt.Devices) -> pt.Devices:
    """The devices without those that do not pay for transfers."""
    kinds = (kind if kind.pays_communication else replace(kind, count=0) for kind in devices.kinds)
    return replace(devices, kinds=tuple(kinds))


def _paths(folders: Sequence[Path]) -> list[Path]:
    """The workload files of the folders, by name; a file stands for itself."""
    paths = []
    for folder in folders:
        here = sorted(folder.glob("*.json")) if folder.is_dir() else [folder]
        paths += [path for path in here if path.name != "index.json"]
    if not paths:
        raise FileNotFoundError(f"{', '.join(map(str, folders))}: no workload there")
    return paths


def _title(path: Path, paths: Sequence[Path]) -> str:
    """The file's name, with its folder where there are others of that name."""
    alone = sum(other.stem == path.stem for other in paths) == 1
    return path.stem if alone else f"{path.parent.name}/{path.stem}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="compare_all", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="with workloads, or a file")
    parser.add_argument("--objective", default="throughput", choices=OBJECTIVES)
    parser.add_argument("--split", help="this one only")
    parser.add_argument("--methods", type=_names, metavar="A,B,C", help="these only (all that suit)")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="of each method (%(default)g)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--workers", type=int, metavar="N", help="cores to use")
    parser.add_argument("--refine", action="store_true", help="improve placed operators by local search")
    parser.add_argument("--contention", action="store_true", help="one transfer at a time for each device")
    parser.add_argument("--no-cpus", action="store_true", help="leave the CPUs out")
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    sys.exit(main())
