"""The parser of the command line, with the arguments of every command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

from partitioner import __version__
from partitioner.cli.argument import Section, add_sections, flag, registered, value
from partitioner.cli.plot import PLOT
from partitioner.cli.shared_arguments import (
    FORMAT,
    OF_PLAN,
    PLAN,
    PROFILE,
    WORKLOAD,
    constraints,
    devices,
    pipelines,
    transfers,
)
from partitioner.cli.simulate import SIMULATE
from partitioner.cli.solve_arguments import COMPARE, SOLVE
from partitioner.planning.objectives import DEFAULT, OBJECTIVES

Command = Callable[[argparse.Namespace], None]
OF_THE_PLAN = "as the plan says"
EVALUATE = (
    Section(
        "",
        (
            WORKLOAD,
            PLAN,
            value(
                "--objective",
                f"evaluate the placement for this objective: {', '.join(OBJECTIVES.own)} "
                f"(default: the plan's objective, else {DEFAULT})",
                type=registered(OBJECTIVES),
                metavar="NAME",
            ),
            value(
                "--bound",
                "search this many seconds for a bound on how far the placement is from the best one "
                "(default: no search)",
                type=float,
                metavar="SECONDS",
            ),
            FORMAT,
        ),
    ),
    Section("pipelines, batches and single samples", pipelines(OF_THE_PLAN)),
    devices(OF_PLAN),
    constraints(f"{OF_THE_PLAN}, else none"),
    Section("operators one by one (objective makespan)", transfers("as --devices or the plan says")),
    PROFILE,
)
METHODS = (
    Section(
        "",
        (
            value(
                "name",
                "print all that is known of this method (default: list all)",
                nargs="?",
                metavar="NAME",
            ),
            flag("--long", "print all that is known of every method (default: one line for each method)"),
            FORMAT,
        ),
    ),
)


class _Words(NamedTuple):
    help: str
    usage: str
    sections: tuple[Section, ...]


COMMANDS = {
    "solve": _Words("find the best split of a workload", "WORKLOAD", SOLVE),
    "evaluate": _Words("compute the value of a placement and check its rules", "WORKLOAD PLAN", EVALUATE),
    "simulate": _Words("run a schedule with the times of a plan", "WORKLOAD PLAN", SIMULATE),
    "compare": _Words("run all methods on a workload and rank their plans", "WORKLOAD", COMPARE),
    "methods": _Words("list the methods, what each guarantees, and the solvers", "[NAME]", METHODS),
    "plot": _Words("draw a plan or its schedule into a file", "WORKLOAD PLAN --output FILE", PLOT),
}


def command_parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """Return the parser; `commands` has a function for every command that shall run."""
    parser = argparse.ArgumentParser(
        prog="partitioner",
        description="Split a neural network's graph over devices, with a proof of how good the split is.",
        epilog="'partitioner COMMAND --help' explains the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (text, usage, sections) in COMMANDS.items():
        line = f"partitioner {name} {usage} [OPTION ...]"
        one = added.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", usage=line)
        add_sections(one, sections)
        one.set_defaults(run=commands.get(name))
    return parser
