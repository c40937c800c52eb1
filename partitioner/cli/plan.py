"""The command ``partitioner plan``."""

from __future__ import annotations

import argparse
from pathlib import Path

from partitioner.analysis.reports.layouts import report_layouts
from partitioner.base.errors import OptionError, shown
from partitioner.base.files import check_writable, write_text
from partitioner.cli.argument import (
    Section,
    flag,
    milliseconds,
    names,
    pool,
    prices,
    rate,
    seconds,
    size,
    value,
)
from partitioner.cli.output import show
from partitioner.cli.report import check_html
from partitioner.cli.shared_arguments import FORMAT
from partitioner.planning.layouts.changes import OTHER_GPUS
from partitioner.planning.layouts.plan import TIME_LIMIT, TOP, plan
from partitioner.planning.layouts.question import LATENCY, NETWORK, NODE
from partitioner.planning.layouts.result import LayoutPlan
from partitioner.planning.layouts.runtime_files import writer_of
from partitioner.planning.layouts.runtimes import RUNTIMES
from partitioner.planning.pools.plan_pool import plan_pool
from partitioner.planning.pools.result import PoolPlan
from partitioner.planning.serving.on_pool import SERVERS
from partitioner.planning.serving.plan_serving import plan_serving
from partitioner.planning.serving.result import ServingPlan

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
            value("--device", "take these GPUs, such as A100-80 (default: those of --pool)", metavar="NAME"),
            value(
                "--pool",
                "take these numbers of GPUs by kind, with at most this many bytes of memory each if given, "
                'such as "A100-80=4,RTX 4090=4:22GB" (default: --gpus of --device)',
                type=pool,
                metavar="KIND=N[:BYTES],...",
            ),
            value(
                "--global-batch",
                "train with batches of this many sequences (default: none, with --serve)",
                type=int,
                metavar="N",
            ),
            value(
                "--sequence",
                "train with sequences of this many tokens (default: none, with --serve)",
                type=int,
                metavar="N",
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
        "serving",
        (
            flag("--serve", "rank layouts of a server that generates text (default: layouts of training)"),
            value(
                "--prompt",
                "answer prompts of this many tokens (default: none, without --serve)",
                type=int,
                metavar="N",
            ),
            value(
                "--generate",
                "generate this many tokens after a prompt (default: none, without --serve)",
                type=int,
                metavar="N",
            ),
            value(
                "--ttft",
                "have the first token within this time, such as 600ms (default: no limit)",
                type=milliseconds,
                metavar="TIME",
            ),
            value(
                "--tpot",
                "have each further token within this time, such as 50ms (default: no limit)",
                type=milliseconds,
                metavar="TIME",
            ),
            value(
                "--users",
                "1: serve one user as fast as possible, with memory for one context (default: as many as "
                "bring the most tokens)",
                type=int,
                metavar="N",
            ),
            value(
                "--requests-per-second",
                "find the fewest GPUs of --pool or --device that answer this many requests (default: use "
                "all)",
                type=float,
                metavar="RATE",
            ),
            value(
                "--prices",
                "with --requests-per-second: find the cheapest at these prices of a GPU, such as "
                '"H100=3,L40S=1" (default: the fewest)',
                type=prices,
                metavar="KIND=PRICE,...",
            ),
            value(
                "--servers",
                "take prompts and generate on the same servers, on separate ones, or on any, whichever "
                "is better (default: any)",
                choices=SERVERS,
                default="any",
            ),
            value(
                "--weight-dtype",
                "keep weights in numbers of this type, such as q4_k_m (default: that of --dtype)",
                metavar="TYPE",
            ),
            value(
                "--cache-dtype",
                "keep keys and values in numbers of this type (default: the model's)",
                metavar="TYPE",
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
                f"add seconds, or a time such as 5us, to messages between servers (default: {LATENCY:g})",
                type=seconds,
                default=LATENCY,
                metavar="TIME",
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
                "--report",
                "write a report of the fastest layout, with the ranks of all GPUs, its schedule and memory, "
                "to this file (default: none)",
                metavar="FILE.html",
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


TRAINING = ("global_batch", "sequence")
EQUAL = ("gpus", "tokens_per_second", "runtime", "nvlink", "memory", "instead")  # of equal GPUs only
SERVED = ("prompt", "generate")
MOST_GPUS = 1024  # that --requests-per-second looks at without --gpus


def plan_layouts(options: argparse.Namespace) -> None:
    """Rank the layouts of a language model on a cluster, print them, and write files.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, or no layout fits.
    """
    _check_files(options)
    needed = SERVED if options.serve else TRAINING
    for name in needed:
        if getattr(options, name) is None:
            other = "with" if options.serve else "without"
            raise OptionError(f"{name} = None: must be given {other} --serve")
    found = _server(options) if options.serve else _pooled(options) if options.pool else _training(options)
    texts = {options.output: found.to_json() + "\n"}
    if not isinstance(found, PoolPlan) and options.settings is not None:
        texts[options.settings] = found.settings()
    if isinstance(found, LayoutPlan) and options.report is not None:
        texts[options.report] = report_layouts(found, model=Path(options.config).stem).html
    writes = [lambda path=path, text=text: write_text(path, text) for path, text in texts.items() if path]
    show(found.to_json() if options.format == "json" else found.summary(), *writes)


def _check_files(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written for this question, before it is answered.

    Raises
    ------
    PartitionerError
        If a file cannot be written, or the question has no such file.
    """
    check_writable(options.output, options.settings, options.report)
    if options.report is not None:
        check_html("--report", options.report)
        if options.serve or options.pool:
            raise OptionError(f"report = {shown(options.report)}: is written for training on equal GPUs")
    if options.settings is not None and not options.serve:
        if options.pool:
            rule = "are written for training on equal GPUs, and for one user"
            raise OptionError(f"settings = {shown(options.settings)}: {rule}")
        writer_of(options.runtime)


def _training(options: argparse.Namespace) -> LayoutPlan:
    if options.device is None:
        raise OptionError("device = None: give --device, or --pool")
    asked = ("gpus", "tokens_per_second", "device", *TRAINING, "runtime", "top", "time_limit", "node")
    given = {name: getattr(options, name) for name in (*asked, "latency", "memory", "dtype", "instead")}
    if options.network is not None:
        given["network"] = options.network
    return plan(options.config, peer=options.nvlink, explain=bool(options.explain), **given)


def _pooled(options: argparse.Namespace) -> PoolPlan:
    """Return the layouts of training on a pool.

    Raises
    ------
    OptionError
        If an option is given that is for equal GPUs only.
    """
    for name in ("device", *EQUAL, "explain"):
        if getattr(options, name) not in (None, False, "any"):
            raise OptionError(f"{name} = {shown(getattr(options, name))}: is not for --pool without --serve")
    asked = (*TRAINING, "top", "time_limit", "node", "latency", "dtype")
    given = {name: getattr(options, name) for name in asked}
    if options.network is not None:
        given["network"] = options.network
    return plan_pool(options.config, options.pool, **given)


def _server(options: argparse.Namespace) -> ServingPlan:
    asked = ("ttft", "tpot", "users", "servers", "requests_per_second", "prices", "node", "top", "time_limit")
    given = {name: getattr(options, name) for name in (*SERVED, *asked, "dtype")}
    if options.network is not None:
        given["network"] = options.network
    types = {name: getattr(options, name) for name in ("weight_dtype", "cache_dtype")}
    given |= {name: value for name, value in types.items() if value is not None}
    devices = options.pool
    gpus = MOST_GPUS if options.gpus is None and options.requests_per_second else options.gpus
    if devices is None and (options.device is None or gpus is None):
        raise OptionError("pool = None: give --pool, or --gpus and --device")
    return plan_serving(options.config, devices or {options.device: (gpus, options.memory)}, **given)
