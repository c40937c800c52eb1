"""The commands ``partitioner methods`` and ``partitioner compare``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.base.files import check_writable, write_text
from partitioner.cli.inputs import read_workload
from partitioner.cli.output import saved, show
from partitioner.cli.progress import ProgressLine
from partitioner.cli.solve_arguments import solve_options
from partitioner.evaluation.text.tables import columns, render
from partitioner.extensions import broken_entries
from partitioner.methods.info import MethodInfo
from partitioner.methods.registry import FEATURES, METHODS, backends_of
from partitioner.methods.solvers.backends.backend import Capability
from partitioner.methods.solvers.backends.catalogue import BACKENDS, missing_backends
from partitioner.planning.comparison.methods import MethodComparison, compare_methods
from partitioner.planning.comparison.runs import INFEASIBLE
from partitioner.planning.objectives import OBJECTIVES

MORE = "all of one method: partitioner methods NAME; of every method: --long"


def list_methods(options: argparse.Namespace) -> None:
    """Print a line for each method, all that is known of one or of all, or the same as JSON.

    Raises
    ------
    OptionError
        If no method has the name that is given.
    """
    if options.name is not None:
        METHODS.check("NAME", options.name)
    chosen = list(METHODS.values()) if options.name is None else [METHODS[options.name]]
    if options.format == "json":
        broken = [asdict(entry) for entry in broken_entries() if options.name is None]
        print(json.dumps([*map(_record, chosen), *broken], indent=1))
    elif options.name is not None:
        print(method_details(chosen[0]))
    else:
        print(methods_table(chosen) if options.long else methods_lines(chosen))
        print(backends_table(list(BACKENDS.values()), missing_backends()))
        for entry in broken_entries():
            print(entry)


def letters() -> dict[str, str]:
    """Return a letter for every objective: the first letter of its name that no earlier objective has."""
    found: dict[str, str] = {}
    for objective in OBJECTIVES:
        wanted = [*objective.upper(), *objective.lower(), "?"]
        found[objective] = next(each for each in wanted if each not in found.values() or each == "?")
    return found


def _record(info: MethodInfo) -> dict[str, Any]:
    """Return what is known of a method as plain data; a function by its module and name."""
    record, place = asdict(info), info.place
    if not isinstance(place, str):
        name = getattr(place, "__qualname__", type(place).__qualname__)
        record["place"] = f"{place.__module__}:{name}"
    return record


def methods_lines(methods: Sequence[MethodInfo], width: int | None = None) -> str:
    """Return a line for each method: its objectives as letters, and its guarantee."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), width=max(80, columns(width)))
    table.add_column("method", no_wrap=True)
    table.add_column("for", no_wrap=True)
    table.add_column("result", ratio=1)
    known = letters()
    for info in methods:
        able = "".join(
            letter if OBJECTIVES[name].known_as in info.objectives else "-" for name, letter in known.items()
        )
        table.add_row(info.name, able, Text(info.guarantee))
    legend = ", ".join(f"{letter} {name}" for name, letter in known.items())
    return render([Text(f"for: {legend}"), table, Text(MORE)], width)


def method_details(info: MethodInfo, width: int | None = None) -> str:
    """Return all that is known of a method as text."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    lists = {"objectives": info.objectives, "splits": info.splits, "backends": backends_of(info)}
    lists["also knows"] = tuple(FEATURES[name] for name in info.features if name in FEATURES)
    for title, words in {"method": (info.name,), **lists, "result": (info.guarantee,)}.items():
        if words:
            table.add_row(title, Text(", ".join(words)))
    return render([table], width)


def methods_table(methods: Sequence[MethodInfo]) -> str:
    """Return the methods as text: what each can be asked for and what it guarantees."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for name in ("objectives", "splits", "backends", "guarantee"):
        table.add_column(name, overflow="fold", ratio=3 if name == "guarantee" else None)
    for info in methods:
        lists = (", ".join(names) for names in (info.objectives, info.splits, backends_of(info)))
        table.add_row(info.name, *lists, info.guarantee)
    return render([table])


def backends_table(backends: Sequence[Capability], missing: Collection[str]) -> str:
    """Return the solvers of integer programs as text: whether each is installed, and its abilities."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("backend", "here", "cores", "solutions"):
        table.add_column(name, overflow="fold")
    for backend in backends:
        here = f"no: {backend.remedy}" if backend.name in missing else "yes"
        told = "as it finds them" if backend.streams else "at its end"
        table.add_row(backend.name, Text(here), "several" if backend.parallel else "one", told)
    return render([table])


# The comparison of all methods on a workload.


def compare_all(options: argparse.Namespace) -> None:
    """Run the methods on a workload and print the result of each.

    Raises
    ------
    InfeasibleError
        If every method proved that there is no plan.
    NoPlanFound
        If no method found a plan.
    PartitionerError
        If a file or an option breaks a rule.
    """
    check_writable(options.output, options.csv)
    workload = read_workload(options)
    with ProgressLine() as line:
        comparison = compare_methods(
            workload.graph,
            workload.devices,
            methods=options.methods,
            on_progress=line.show,
            **solve_options(options, workload),
        )
    best = None if comparison.best is None else comparison.best.plan
    text = comparison.to_json() if options.format == "json" else comparison.summary()
    table = [] if options.csv is None else [lambda: write_text(options.csv, comparison.to_csv())]
    show(text, *saved(best, workload, options), *table)
    if best is None:
        raise _nothing(comparison)


def _nothing(comparison: MethodComparison) -> Exception:
    if all(one.against == INFEASIBLE for one in comparison.compared):
        return InfeasibleError(comparison.compared[0].reason)
    return NoPlanFound("no method found a plan")
