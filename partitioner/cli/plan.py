"""The command ``partitioner plan``."""

from __future__ import annotations

import argparse

from partitioner.base.files import check_writable, write_text
from partitioner.cli.argument import Section, flag, names, rate, size, value
from partitioner.cli.output import show
from partitioner.cli.shared_arguments import FORMAT
from partitioner.planning.layouts.changes import OTHER_GPUS
from partitioner.planning.layouts.plan import LATENCY, NETWORK, NODE, TIME_LIMIT, TOP, plan
from partitioner.planning.layouts.runtimes import RUNTIMES

LAYOUTS = (
    Section(
        "",
        (
            value("config", "read the model from this config.json (required)", metavar="CONFIG"),
            value(
                "--gpus",
                "lay it out on this many GPUs (default: the fewest with --tokens-per-second)",
                type=int,
                metavar="N",
            ),
            value(
                "--tokens-per-second",
                "find the fewest GPUs, or whole servers, with this rate (default: --gpus says how many there "
                "are)",
                type=float,
                metavar="RATE",
            ),
            value("--device", "take these GPUs, such as A100-80 (required)", metavar="NAME", required=True),
            value(
                "--global-batch",
                "train with batches of this many sequences (required)",
                type=int,
                metavar="N",
                required=True,
            ),
            value(
                "--sequence",
                "train with sequences of this many tokens (required)",
                type=int,
                metavar="N",
                required=True,
            ),
            value(
                "--runtime",
                "rank only what this runtime can run (default: any)",
                choices=tuple(RUNTIMES),
                default="any",
            ),
            value("--top", f"print this many layouts (default: {TOP})", type=int, default=TOP, metavar="N"),
            value(
                "--time-limit",
                f"end after this many seconds with the best layouts so far (default: {TIME_LIMIT:g})",
                type=float,
                default=TIME_LIMIT,
                metavar="SECONDS",
            ),
            flag(
                "--explain",
                "also find what a faster network, more memory, FP8, other servers and other GPUs would buy "
                "(default: no)",
            ),
            value(
                "--instead",
                "with --explain: try these GPUs in place of the cluster's, commas between them "
                f"(default: {', '.join(OTHER_GPUS)})",
                type=names,
                metavar="NAMES",
            ),
        ),
    ),
    Section(
        "the cluster",
        (
            value(
                "--node",
                f"have this many GPUs in a server (default: {NODE})",
                type=int,
                default=NODE,
                metavar="N",
            ),
            value(
                "--nvlink",
                "send this many bytes a second to GPUs of the server, such as 300GB/s (default: those of the "
                "device)",
                type=rate,
                metavar="RATE",
            ),
            value(
                "--network",
                f"send this many bytes a second to GPUs of other servers (default: {NETWORK / 1e9:g}GB/s)",
                type=rate,
                metavar="RATE",
            ),
            value(
                "--latency",
                f"add this many seconds to a message between servers (default: {LATENCY:g})",
                type=float,
                default=LATENCY,
                metavar="SECONDS",
            ),
            value("--memory", "use this many bytes of a GPU (default: all)", type=size, metavar="BYTES"),
            value(
                "--dtype",
                "multiply numbers of this type (default: bfloat16)",
                default="bfloat16",
                metavar="TYPE",
            ),
        ),
    ),
    Section(
        "output",
        (
            value(
                "--settings",
                "write the runtime's settings for the fastest layout to this file (default: none)",
                metavar="FILE",
            ),
            value(
                "--output",
                "write the table as JSON to this file (default: none is written)",
                metavar="FILE.json",
            ),
            FORMAT,
        ),
    ),
)


def plan_layouts(options: argparse.Namespace) -> None:
    """Rank the layouts of a language model on a cluster, print them, and write files.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, or no layout fits.
    """
    check_writable(options.output, options.settings)
    asked = (
        "gpus",
        "tokens_per_second",
        "device",
        "global_batch",
        "sequence",
        "runtime",
        "top",
        "time_limit",
        "node",
    )
    given = {name: getattr(options, name) for name in (*asked, "latency", "memory", "dtype", "instead")}
    if options.network is not None:
        given["network"] = options.network
    found = plan(options.config, peer=options.nvlink, explain=bool(options.explain), **given)
    texts = {options.output: found.to_json() + "\n"}
    if options.settings is not None:
        texts[options.settings] = found.settings()
    writes = [lambda path=path, text=text: write_text(path, text) for path, text in texts.items() if path]
    show(found.to_json() if options.format == "json" else found.summary(), *writes)
