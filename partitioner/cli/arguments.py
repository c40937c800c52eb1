"""The parser of the command line, with the arguments of every command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from partitioner import __version__
from partitioner.cli.argument import Section, add_sections, flag, value
from partitioner.cli.conflict import conflict_sections
from partitioner.cli.diff import DIFF
from partitioner.cli.explain import EXPLAIN
from partitioner.cli.export import EXPORT
from partitioner.cli.option_arguments import argument_of
from partitioner.cli.plan import LAYOUTS
from partitioner.cli.plot import PLOT
from partitioner.cli.profile import MEASURE
from partitioner.cli.recommend import RECOMMEND
from partitioner.cli.report import REPORT
from partitioner.cli.shared_arguments import (
    FORMAT,
    OF_PLAN,
    PLAN,
    PROFILE,
    WORKLOAD,
    constraints,
    devices,
    transfers,
)
from partitioner.cli.simulate import SIMULATE
from partitioner.cli.sizing import sizing_sections
from partitioner.cli.solve_arguments import compare_sections, solve_sections
from partitioner.cli.sweep import sweep_sections
from partitioner.cli.verify import VERIFY
from partitioner.cli.warm_up import WARM_UP
from partitioner.planning.objectives import DEFAULT, OBJECTIVES
from partitioner.planning.option import PIPELINES
from partitioner.planning.option_records import OPTIONS

Command = Callable[[argparse.Namespace], None]
OF_THE_PLAN = "as the plan says"
ALL = "--help-all"
MANY_OPTIONS = 25  # of a command, above which its help is short
EVALUATE = (
    Section(
        "",
        (
            WORKLOAD,
            PLAN,
            argument_of(
                replace(
                    OPTIONS["objective"],
                    help=f"evaluate the placement for this objective: {', '.join(OBJECTIVES.own)}",
                ),
                f"the plan's objective, else {DEFAULT}",
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
    Section(
        PIPELINES,
        tuple(
            argument_of(OPTIONS[name], f"{OF_THE_PLAN}, else {OPTIONS[name].shown_default}")
            for name in ("schedule", "microbatches", "subgraphs_per_accelerator", "max_time_per_sample")
        ),
    ),
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


def command_parser(commands: Mapping[str, Command], words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser; `commands` has the function that runs each command.

    The help of a command with very many options has the common ones, unless the command line, whose words
    may be given, asks for all of them.
    """
    parser = argparse.ArgumentParser(
        prog="partitioner",
        description="Split a neural network's graph over devices, with a proof of how good the split is.",
        epilog="'partitioner COMMAND --help' explains the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (text, usage, sections) in _commands().items():
        line = " ".join(filter(None, ("partitioner", name, usage, "[OPTION ...]")))
        one = added.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", usage=line)
        many = sum(len(section.arguments) for section in sections) > MANY_OPTIONS
        add_sections(one, sections, shown=not many or ALL in words)
        if many:
            one.add_argument(
                ALL, action="help", dest="help", help="show this help message with all options and exit"
            )
            one.epilog = None if ALL in words else f"'partitioner {name} {ALL}' has all options."
        one.set_defaults(run=commands.get(name))
    return parser


def _commands() -> dict[str, _Words]:
    """Return the help and the arguments of every command, with the options that are registered now."""
    return {
        "solve": _Words("find the best split of a workload", "WORKLOAD", solve_sections()),
        "evaluate": _Words("compute the value of a placement and check its rules", "WORKLOAD PLAN", EVALUATE),
        "simulate": _Words("run a schedule with the times of a plan", "WORKLOAD PLAN", SIMULATE),
        "compare": _Words(
            "run all methods on a workload and rank their plans", "WORKLOAD", compare_sections()
        ),
        "recommend": _Words(
            "plan pipelines under all schedules and rank them", "WORKLOAD --microbatches N", RECOMMEND
        ),
        "plan": _Words(
            "rank the layouts of a language model on a cluster",
            "CONFIG --gpus N --device NAME",
            LAYOUTS,
        ),
        "explain": _Words(
            "say why a plan takes as long as it does, and what would change that", "WORKLOAD PLAN", EXPLAIN
        ),
        "diff": _Words("say what two plans of a workload differ in", "WORKLOAD PLAN PLAN", DIFF),
        "conflict": _Words(
            "find the smallest set of demands that rules out every plan", "WORKLOAD", conflict_sections()
        ),
        "fewest-devices": _Words(
            "find the fewest devices for a time per sample", "WORKLOAD", sizing_sections()
        ),
        "least-memory": _Words(
            "find the least memory of a device with which there is a plan", "WORKLOAD", sizing_sections()
        ),
        "sweep": _Words("solve a product of workloads, pools and options", "SPEC", sweep_sections()),
        "export": _Words("write a plan for another tool", "WORKLOAD PLAN --to NAME", EXPORT),
        "methods": _Words("list the methods, what each guarantees, and the solvers", "[NAME]", METHODS),
        "plot": _Words("draw a plan or its schedule into a file", "WORKLOAD PLAN --output FILE", PLOT),
        "report": _Words(
            "write a report of a plan as one HTML file", "WORKLOAD PLAN --output FILE.html", REPORT
        ),
        "profile": _Words("measure the times and the memory of a model of torch", "SCRIPT:FUNCTION", MEASURE),
        "verify": _Words(
            "run a plan's pipeline and compare it with its prediction",
            "SCRIPT:FUNCTION WORKLOAD PLAN",
            VERIFY,
        ),
        "warm-up": _Words("compile all kernels into numba's cache", "", WARM_UP),
    }


# Completion of the command line in shells, by argcomplete.

ASKED = "_ARGCOMPLETE"  # the shell sets it where it asks a program for completions


def completing() -> bool:
    """Whether a shell asks for completions."""
    return ASKED in os.environ


def complete_if_asked(parser: argparse.ArgumentParser) -> None:
    """Write completions and end the process if a shell asks for them and argcomplete is installed."""
    if completing():
        with suppress(ImportError):
            import argcomplete

            argcomplete.autocomplete(parser)
