"""What ``solve`` takes, and ``compare`` with few changes: one list of arguments, read by one function."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from partitioner.cli.argument import Section, flag, registered, value
from partitioner.cli.inputs import read_constraints, read_transfers
from partitioner.cli.shared_arguments import (
    FORMAT,
    OF_WORKLOAD,
    PROFILE,
    WORKLOAD,
    constraints,
    devices,
    pipelines,
    transfers,
)
from partitioner.evaluation.shape import SHAPES
from partitioner.methods.placing import GROUPERS
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import DEFAULT, OBJECTIVES
from partitioner.planning.options import DEFAULTS, GRANULARITIES
from partitioner.workload.workload import Workload

WANTED = Section(
    "what to look for",
    (
        value(
            "--objective",
            f"minimise this: {', '.join(OBJECTIVES.own)} (default: {DEFAULT})",
            default=DEFAULT,
            type=registered(OBJECTIVES),
            metavar="NAME",
        ),
        value(
            "--method",
            "run this method; 'partitioner methods' lists them (default: auto, the strongest that applies)",
            default="auto",
            type=registered(METHODS, "auto"),
            metavar="NAME",
        ),
        value(
            "--split",
            "make a chain of stages, convex parts, or free parts "
            "(default: chain for throughput and batch, convex for latency, free for gpipe and makespan)",
            choices=SHAPES,
        ),
        flag(
            "--contiguous-backward",
            "for convex splits, require that backward parts are contiguous, too "
            "(default: only forward parts must be)",
        ),
        flag(
            "--scattered-cpus",
            "for convex splits, allow parts on CPUs that are not contiguous (default: they must be)",
            stands_for=False,
            dest="contiguous_cpus",
        ),
        value(
            "--granularity",
            "place operators on their own, or all operators of a layer together (default: operator)",
            choices=GRANULARITIES,
        ),
    ),
)
LIMITS = Section(
    "when to stop, and what may be used",
    (
        value(
            "--time-limit",
            "return the best plan found after this many seconds, in which compiling is not counted "
            "(default: no limit)",
            type=float,
            metavar="SECONDS",
        ),
        value(
            "--gap",
            "stop once the plan is proven within this fraction of the optimum "
            "(default: 0, search until the plan is proven optimal)",
            type=float,
            default=0.0,
            metavar="FRACTION",
        ),
        value("--seed", "draw random numbers from this seed (default: 0)", type=int, default=0, metavar="N"),
        value("--workers", "use at most this many cores (default: all)", type=int, metavar="N"),
        flag(
            "--deterministic",
            "count work in steps instead of seconds, on one core, so that the same call gives the same plan "
            "(default: methods ip, latency_ip and portfolio run searches in parallel by the clock)",
        ),
        value(
            "--backend",
            "solve integer programs with this solver; 'partitioner methods' lists them "
            "(default: auto, the best ones installed)",
            default="auto",
            metavar="NAME",
        ),
        value(
            "--memory-budget",
            "let the exact search take at most this many bytes (default: 4294967296, which is 4 GiB)",
            type=int,
            metavar="BYTES",
        ),
        value("--orders", "let method dpl try this many linear orders (default: 12)", type=int, metavar="N"),
    ),
)
PIPELINES = Section(
    "pipelines, batches and single samples",
    (
        value("--replicas", "let up to this many devices share a stage (default: 1)", type=int, metavar="N"),
        *pipelines(""),
    ),
)
PLACING = Section(
    "operators one by one (objective makespan, and list schedulers)",
    (
        flag(
            "--refine",
            "improve the placement by local search (default: the placement stays as the method makes it; "
            "portfolio improves its own)",
        ),
        value(
            "--sct-threshold",
            "let m-SCT take edges whose value in the linear program is at most this, 0 to 1, as edges to "
            "favourite children (default: 0.1)",
            type=float,
            metavar="X",
        ),
        value(
            "--grouper",
            "for Baechi's methods, keep a node with its only successor (coplace), or do not (none) "
            "(default: none)",
            choices=GROUPERS,
        ),
        flag("--fuse", "for Baechi's methods, contract the edges inside groups (default: they stay)"),
        value(
            "--fusion-range",
            "let a cluster of Celeritas have at most this many nodes (default: 200)",
            type=int,
            metavar="N",
        ),
        value(
            "--fusion-memory",
            "let a cluster of Celeritas take at most this fraction of the smallest device's memory "
            "(default: 0.25)",
            type=float,
            metavar="FRACTION",
        ),
        value(
            "--imbalance",
            "let the largest part of scotch and metis exceed the mean by this fraction (default: 0.01)",
            type=float,
            metavar="FRACTION",
        ),
        *transfers("as --devices says"),
    ),
)
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
SOLVE = (
    Section("", (WORKLOAD,)),
    *(WANTED, LIMITS, PIPELINES),
    devices(OF_WORKLOAD),
    constraints(""),
    *(PLACING, PROFILE, OUTPUT),
)
CHANGED = {
    "--method": value(
        "--methods",
        "run these methods, separated by commas; 'partitioner methods' lists them (default: all that suit)",
        metavar="A,B,C",
    ),
    "--split": value(
        "--split",
        "compare on splits of this shape only "
        "(default: chains of methods that make them, free splits of placers, all splits of other methods)",
        choices=SHAPES,
    ),
    "--time-limit": value(
        "--time-limit",
        "let each method return its best plan after this many seconds, in which compiling is not counted "
        "(default: 10)",
        type=float,
        default=10.0,
        metavar="SECONDS",
    ),
    "--output": value(
        "--output",
        "write the best plan to this file in addition (default: no plan is written)",
        metavar="PLAN.json",
    ),
}
COMPARE = tuple(
    replace(section, arguments=tuple(CHANGED.get(one.name, one) for one in section.arguments))
    for section in SOLVE
)


def solve_options(options: argparse.Namespace, workload: Workload) -> dict[str, Any]:
    """Return the keywords of ``partitioner.solve`` that a command line of ``solve`` or ``compare`` asks for.

    The objective, the method and the methods are left to the caller. Method options that are not given
    keep the defaults of the library.
    """
    given = {name: getattr(options, name, None) for name in DEFAULTS}
    limits = read_constraints(options, workload.graph)
    given |= {"constraints": None if limits.empty else limits, "transfers": read_transfers(options)}
    always = ("split", "backend", "time_limit", "gap", "seed", "workers")
    return {name: getattr(options, name) for name in always} | {
        name: each for name, each in given.items() if each is not None
    }
