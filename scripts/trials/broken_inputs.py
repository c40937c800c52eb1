"""Broken files, Python objects and command lines: nothing but errors of the package's own may come out.

A case ends in a result, in a PartitionerError, or with exit code 0, 2, 3 or 4; output files are whole or as
they were. Cases run in a process of their own with bounded memory, so that one that never ends is one case.
Case number i has seed S + i. Exit code: 0, or 1 if something is wrong.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

import partitioner as pt
from trials.broken_files import broken, file_name, write_all
from trials.broken_objects import some_call
from trials.broken_options import run_line, some_line
from trials.broken_readers import READERS
from trials.campaign import Campaign, Trial, campaign_parser
from trials.worker import Lost, Worker

MEMORY = 6 * 2**30  # bytes of address space
PATIENCE = 90.0
SORTS = ("file", "object", "line")


class Case(NamedTuple):
    """A broken input: its row, what to do in a folder with all files, and how to show it to a person."""

    row: str
    run: Callable[[Path], tuple[str, str]]
    files: dict[str, bytes]
    paste: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = campaign_parser(__doc__, 5000)
    parser.add_argument("--only", choices=SORTS, help="cases of this sort (of all in turn)")
    options = parser.parse_args(arguments)
    return Campaign(options.cases).run(trials(options.seed, options.cases, options.only))


def trials(first: int, count: int, only: str | None = None) -> Iterator[Trial]:
    """One trial a seed."""
    worker = Worker("trials.broken_inputs:answer", PATIENCE)
    try:
        for seed in range(first, first + count):
            yield trial(worker, only or SORTS[seed % len(SORTS)], seed)
    finally:
        worker.close()


def trial(worker: Worker, sort: str, seed: int) -> Trial:
    """One broken input."""
    try:
        outcome, wrong = worker.ask(sort, seed)
    except Lost as error:
        outcome, wrong = "lost", str(error)
    case = case_of(sort, seed)
    command = f"# python scripts/trials/broken_inputs.py --only {sort} --cases 1 --seed {seed}"
    return Trial(case.row, outcome, wrong, f"{command}\n{case.paste}" if wrong else "")


def answer(sort: str, seed: int) -> tuple[str, str]:
    """Run a case: how it ended, and what is wrong with that; for :mod:`trials.worker`."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    case = case_of(sort, seed)
    with tempfile.TemporaryDirectory() as name:
        write_all(Path(name), case.files)
        try:
            return case.run(Path(name))
        except pt.ContradictionError as error:
            return "contradiction", str(error)[:300]
        except pt.PartitionerError as error:
            return type(error).__name__, "" if str(error).strip() else "an error without a word"
        except Exception as error:  # whatever escapes is what these trials look for
            return "exception", f"{type(error).__name__}: {str(error)[:300]}"


def case_of(sort: str, seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    if sort == "file":
        kind = rng.choice(list(READERS))
        data = broken(kind, rng)
        run: Any = partial(_read, READERS[kind], file_name(kind))
        return Case(f"file, {kind}", run, {kind: data}, f"# {READERS[kind].__name__}({data[:2000]!r})")
    if sort == "object":
        entry, given = some_call(rng)
        odd = {name: value for name, value in given.items() if value is not entry.given[name]}
        return Case(
            f"object, {entry.name}", partial(_called, entry.call, given), {}, f"# {entry.name}: {odd!r:.300}"
        )
    words, files = some_line(rng)
    shown = "".join(f"\n# {file_name(kind)}: {data[:2000]!r}" for kind, data in files.items())
    return Case(
        f"line, {words[0]:.12}", partial(run_line, words), files, f"# partitioner {words!r:.500}{shown}"
    )


def _read(reader: Callable[[Path], None], name: str, folder: Path) -> tuple[str, str]:
    reader(folder / name)
    return "done", ""


def _called(call: Callable[..., Any], given: dict[str, Any], folder: Path) -> tuple[str, str]:
    with chdir(folder):
        call(**given)
    return "done", ""


if __name__ == "__main__":
    sys.exit(main())
