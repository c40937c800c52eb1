"""The command ``partitioner warm-up``."""

from __future__ import annotations

import argparse

from partitioner.cli.argument import Section
from partitioner.cli.option_arguments import argument_of
from partitioner.cli.output import show
from partitioner.cli.progress import ProgressLine
from partitioner.cli.shared_arguments import FORMAT
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.warm_up.run import warm_up

WARM_UP = (Section("", (argument_of(OPTIONS["workers"], "2, or 1 if the machine has one core"), FORMAT)),)


def compile_all(options: argparse.Namespace) -> None:
    """Compile all kernels into numba's cache, and print how many, in how long, and where they are kept.

    Raises
    ------
    PartitionerError
        If no folder can be written, or a process that compiles ends early.
    KeyboardInterrupt
        If Ctrl-C was pressed, with a text that says what is kept.
    """
    try:
        with ProgressLine() as line:
            done = warm_up(workers=options.workers, on_progress=line.show)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the kernels compiled until then are kept") from None
    show(done.to_json() if options.format == "json" else done.summary())
