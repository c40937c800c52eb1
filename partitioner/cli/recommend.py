"""The command ``partitioner recommend``."""

from __future__ import annotations

import argparse

from partitioner.base.errors import NoPlanFound
from partitioner.base.files import check_writable
from partitioner.cli.argument import Section, names, value
from partitioner.cli.inputs import read_constraints, read_workload
from partitioner.cli.output import saved, show
from partitioner.cli.progress import ProgressLine
from partitioner.cli.shared_arguments import FORMAT, OF_WORKLOAD, PROFILE, WORKLOAD, constraints, devices
from partitioner.planning.comparison.recommend import TIME_LIMIT, recommend
from partitioner.workload.training_states import NAMES as STATES

RECOMMEND = (
    Section(
        "",
        (
            WORKLOAD,
            value(
                "--microbatches",
                "make a batch of this many samples (default: none, the option is required)",
                type=int,
                metavar="N",
                required=True,
            ),
            value(
                "--schedules",
                "try these schedules, separated by commas (default: all that suit the graph)",
                type=names,
                metavar="A,B,C",
            ),
            value(
                "--time-limit",
                "let the whole call take this many seconds, in which compiling is not counted (default: "
                f"{TIME_LIMIT:g})",
                type=float,
                default=TIME_LIMIT,
                metavar="SECONDS",
            ),
            value(
                "--seed", "use this seed of everything random (default: 0)", type=int, default=0, metavar="N"
            ),
        ),
    ),
    devices(OF_WORKLOAD),
    constraints(""),
    PROFILE,
    Section(
        "output",
        (
            value(
                "--output",
                "write the fastest plan to this file in addition (default: no plan is written)",
                metavar="PLAN.json",
            ),
            FORMAT,
        ),
    ),
)


def recommend_pipelines(options: argparse.Namespace) -> None:
    """Plan and simulate pipelines of several kinds, and print them ranked.

    Raises
    ------
    NoPlanFound
        If none of them fits.
    PartitionerError
        If a file or an option breaks a rule.
    """
    check_writable(options.output)
    workload = read_workload(options)
    with ProgressLine() as line:
        found = recommend(
            workload.graph,
            workload.devices,
            options.microbatches,
            schedules=options.schedules,
            constraints=read_constraints(options, workload.graph),
            time_limit=options.time_limit,
            seed=options.seed,
            on_progress=line.show,
            **{name: each for name in STATES if (each := getattr(options, name)) is not None},
        )
    best = None if found.best is None else found.best.plan
    show(found.to_json() if options.format == "json" else found.summary(), *saved(best, workload, options))
    if best is None:
        raise NoPlanFound("\n".join(("no pipeline fits", *found.remedies())))
