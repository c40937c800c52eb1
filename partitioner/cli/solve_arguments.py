"""The arguments of ``solve``, and of ``compare``, which takes the same with few changes."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from partitioner.cli.argument import Section, names, value
from partitioner.cli.inputs import read_constraints, read_transfers
from partitioner.cli.option_arguments import argument_of, option_section
from partitioner.cli.shared_arguments import (
    FORMAT,
    OF_WORKLOAD,
    PROFILE,
    WORKLOAD,
    constraints,
    devices,
    transfers,
)
from partitioner.exports.writers import TARGETS
from partitioner.planning.objectives import THROUGHPUT, objective_of
from partitioner.planning.option import LIMITS, PIPELINES, PLACING, SERVING, WANTED
from partitioner.planning.option_records import OPTIONS
from partitioner.workload.workload import Workload

OUTPUT = Section(
    "output",
    (
        value(
            "--output",
            "write the plan to this file in addition (default: it is only printed)",
            metavar="PLAN.json",
        ),
        FORMAT,
    ),
)
TABLE = value(
    "--csv",
    "write a row for each method to this file in addition (default: none is written)",
    metavar="FILE.csv",
)
CHANGED = {
    "--method": value(
        "--methods",
        "run these methods, separated by commas; 'partitioner methods' lists them, and auto is the one that "
        "solve would take (default: all that suit)",
        type=names,
        metavar="A,B,C",
    ),
    "--split": argument_of(
        replace(OPTIONS["split"], help="compare on splits of this shape only"),
        "chains of methods that make them, free splits of placers, all splits of other methods",
    ),
    "--time-limit": argument_of(
        replace(
            OPTIONS["time_limit"],
            help="let each method return its best plan after this many seconds, in which compiling is not "
            "counted",
        ),
        "10",
    ),
    "--output": value(
        "--output",
        "write the best plan to this file in addition (default: no plan is written)",
        metavar="PLAN.json",
    ),
}


def solve_sections() -> tuple[Section, ...]:
    """Return the arguments of ``solve``."""
    return (
        Section("", (WORKLOAD,)),
        *(option_section(title) for title in (WANTED, LIMITS, PIPELINES, SERVING)),
        devices(OF_WORKLOAD),
        constraints(""),
        option_section(PLACING, *transfers("as --devices says")),
        *(PROFILE, OUTPUT),
    )


def compare_sections() -> tuple[Section, ...]:
    """Return the arguments of ``compare``: those of ``solve``, some of them about several plans."""
    *others, output = (
        replace(section, arguments=tuple(CHANGED.get(one.name, one) for one in section.arguments))
        for section in solve_sections()
    )
    return (*others, replace(output, arguments=(*output.arguments, TABLE)))


def solve_options(options: argparse.Namespace, workload: Workload) -> dict[str, Any]:
    """Return the keywords of ``partitioner.solve`` that a command line of ``solve`` or ``compare`` asks for.

    Options that are not given keep the defaults of the library.
    """
    given = {name: getattr(options, name, None) for name in OPTIONS}
    limits = read_constraints(options, workload.graph)
    given |= {"constraints": None if limits.empty else limits, "transfers": read_transfers(options)}
    return {name: each for name, each in given.items() if each is not None}


def expressible_split(options: argparse.Namespace) -> dict[str, Any]:
    """Return the split for a tool that runs any map of modules to devices, if none is asked for."""
    asked = options.split is not None or options.method is not None
    if asked or options.expressible is None or not TARGETS[options.expressible].free:
        return {}
    objective = THROUGHPUT if options.objective is None else objective_of(options.objective)
    return {"split": objective.freer("free")}
