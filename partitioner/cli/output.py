"""What a command writes: its files, none of which is one that it reads, and then its text."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from partitioner.base.errors import OptionError
from partitioner.base.safe_text import visible
from partitioner.exports.writers import save_plan
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

STANDARD_ERROR = 2  # the last one of the descriptors of the standard streams
WRITTEN = ("output", "trace", "csv", "picture")  # the options that name files to write


def refuse_own_inputs(options: argparse.Namespace) -> None:
    """Raise if a command would write over a file that it reads, or write two results to one file.

    Raises
    ------
    OptionError
        Naming the option, the file and what else the file is.
    """
    given = {name: path for name in WRITTEN if isinstance(path := getattr(options, name, None), str)}
    for name, path in given.items():
        for other, known in _files(options, name):
            if _same(path, known):
                also = f"is --{other} as well" if other in given else f"is what the command reads as {other}"
                raise OptionError(f"--{name} {path}: {also}: must be a file of its own")


def show(text: str, *writes: Callable[[], object]) -> None:
    """Write files, and then print a text, which may have no reader any more.

    The text is printed too if a file cannot be written, since all that was found would be lost.
    """
    try:
        for write in writes:
            write()
    finally:
        print(visible(text))


def saved(plan: Plan | None, workload: Workload, options: argparse.Namespace) -> list[Callable[[], object]]:
    """Return the call that writes a plan to the file that the options name, if there are both."""
    if plan is None or options.output is None:
        return []
    return [lambda: save_plan(plan, workload, options.output)]


def open_standard_streams() -> None:
    """Open the standard streams that were closed when the program was started.

    Without that files that are opened later would take their place. What is printed to a closed standard
    output cannot be written, which :func:`print` then says.
    """
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= STANDARD_ERROR:
        continue
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def drop_output() -> None:
    """Let what is still to be printed go nowhere, so that the end of the program reports no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _files(options: argparse.Namespace, written: str) -> Iterator[tuple[str, str]]:
    """Yield the texts that may name a file, each with the name of its option; without the one written."""
    for name, given in vars(options).items():
        for text in given if isinstance(given, list | tuple) else [given]:
            if isinstance(text, str) and name != written:
                yield name, text
                yield name, text.rpartition(":")[0]  # as in model.py:make


def _same(path: str, other: str) -> bool:
    """Whether two names lead to one plain file, or would if it existed."""
    try:
        if Path(other).exists():
            return Path(other).is_file() and Path(path).samefile(other)
        return bool(other) and Path(path).resolve() == Path(other).resolve()
    except (OSError, ValueError):  # no such file, or a name that no file can have
        return False
