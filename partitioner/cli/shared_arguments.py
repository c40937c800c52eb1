"""Arguments that several commands take: files, devices, constraints, transfers, profiles, output."""

from __future__ import annotations

from partitioner.cli.argument import Argument, Section, flag, value
from partitioner.workload.devices import COMMUNICATION_MODELS

OF_WORKLOAD = "of the workload"
OF_PLAN = "of the plan, or else of the workload"
WORKLOAD = value(
    "workload",
    "read the workload from this JSON file, or from a profile of PipeDream's profiler (.txt)",
    metavar="WORKLOAD",
)
PLAN = value(
    "plan",
    "read the plan from this file, which solve has written, or a split with fpgas and cpus",
    metavar="PLAN",
)
FORMAT = value(
    "--format",
    "print text, or exactly one JSON object (default: text)",
    default="text",
    choices=("text", "json"),
)
PROFILE = Section(
    "profiles of PipeDream's profiler (.txt files)",
    (
        value(
            "--bandwidth",
            "move this many bytes per second between an accelerator and host memory; a profile needs "
            "this option (default: none)",
            type=float,
            metavar="BYTES",
        ),
        value(
            "--cpu-factor",
            "let a CPU take this many times as long as an accelerator; --cpus needs this option "
            "(default: none)",
            type=float,
            metavar="X",
        ),
        flag(
            "--inference",
            "leave out the backward pass (default: training, with a backward node for each node)",
        ),
    ),
)


def devices(owner: str) -> Section:
    """Return the arguments that replace the devices of a workload or a plan."""
    return Section(
        f"devices, in place of those {owner}",
        (
            value(
                "--devices",
                f"read all devices, and how tensors travel, from this JSON file (default: those {owner})",
                metavar="FILE",
            ),
            value(
                "--accelerators",
                f"use this number of accelerators (default: those {owner})",
                type=int,
                metavar="N",
            ),
            value(
                "--memory",
                f"let each accelerator hold at most this many bytes (default: the limit {owner})",
                type=float,
                metavar="BYTES",
            ),
            value("--cpus", f"use this number of CPUs (default: those {owner})", type=int, metavar="N"),
            value(
                "--communication",
                "compute a device's load as the sum of transfers and processing (sequential), the larger of "
                "the two (overlapped), or the largest of receiving, processing and sending (duplex) "
                f"(default: the model {owner}, which is sequential if the file names none)",
                choices=COMMUNICATION_MODELS,
            ),
        ),
    )


def constraints(otherwise: str) -> Section:
    """Return the arguments of constraints; `otherwise` is the default in words."""
    return Section(
        "constraints on the plan",
        (
            value(
                "--constraints",
                "read pins, prohibitions and limits on stages from this JSON file "
                f"(default: {otherwise or 'no constraints'})",
                metavar="FILE",
            ),
            value(
                "--stages",
                "require this number of stages, replicas not counted "
                f"(default: {otherwise or 'as --constraints says, else any number'})",
                type=int,
                metavar="N",
            ),
            flag(
                "--use-all-devices",
                "require that every device holds a node "
                f"(default: {otherwise or 'as --constraints says, else some may be empty'})",
            ),
            flag(
                "--neighbours-only",
                "require that no edge skips a stage "
                f"(default: {otherwise or 'as --constraints says, else edges may skip stages'})",
            ),
        ),
    )


def transfers(otherwise: str) -> tuple[Argument, ...]:
    """Return the arguments of transfers; `otherwise` says where they are read by default."""
    return (
        flag(
            "--contention",
            "let a device send or receive one tensor at a time "
            f"(default: {otherwise}, else transfers do not delay one another)",
        ),
        value(
            "--link-slope",
            "let a transfer take this time for each unit of its edge's cost "
            f"(default: {otherwise}, else what the dearer of the two devices pays)",
            type=float,
            metavar="X",
        ),
        value(
            "--link-intercept",
            f"let every transfer take this time in addition (default: {otherwise}, else 0)",
            type=float,
            metavar="T",
        ),
    )
