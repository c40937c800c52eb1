"""Reproduce Tables 1, 2 and 3 of the paper, side by side with the published values.

Exit code: 0 if every value is as published or better, 1 if one is not, 2 if files are missing or bad.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from paper_tables.catalogue import CATALOGUE
from paper_tables.measurement import Measurement
from paper_tables.model import Table
from paper_tables.published import Published, read_published
from paper_tables.sources import Source, find_sources
from paper_tables.tables import TABLES
from paper_tables.writing import as_json, as_markdown, as_text
from rich.console import Console

from partitioner import PartitionerError

GOOD, NOT_REACHED, BAD_INPUT = 0, 1, 2
WRITERS = {"text": as_text, "markdown": as_markdown, "json": as_json}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        The words after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        sources = find_sources(options.folder, options.only)
        tables = reproduce(sources, _published(options.folder, options.reference), options.tables)
    except (OSError, ValueError, PartitionerError) as error:
        print(f"reproduce_tables: {error}", file=sys.stderr)
        return BAD_INPUT
    print(WRITERS[options.format](tables))
    return GOOD if all(table.good for table in tables) else NOT_REACHED


def reproduce(sources: Sequence[Source], published: Published, numbers: Sequence[int]) -> list[Table]:
    """Fill the tables of the given numbers; progress goes to a terminal only."""
    console = Console(stderr=True)
    measurements: list[Measurement] = []
    _ = Measurement(sources[0]).plan  # compiles the kernels, or loads them
    for place, source in enumerate(sources, 1):
        measurements.append(Measurement(source))
        if console.is_terminal:
            console.print(f"{place} of {len(sources)}: {source.entry.name}", style="dim")
        for number in numbers:
            TABLES[number](measurements[-1:], published)
    return [TABLES[number](measurements, published) for number in numbers]


def _published(folder: Path, reference: Path | None) -> Published:
    """The published values; without `reference` they are looked for beside the folder."""
    if reference is not None and not reference.is_dir():
        raise FileNotFoundError(f"{reference}: no such folder")
    return read_published(reference or folder.resolve().parent / "reference")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reproduce_tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("../shared/workloads"),
        metavar="FOLDER",
        help="a checkout of msr-fiddle/dnn-partitioning, or a folder with throughput/ and experts/ "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--reference",
        type=Path,
        metavar="FOLDER",
        help="folder of table1.json and table3.json (default: reference/ beside FOLDER, if it is there)",
    )
    parser.add_argument(
        "--tables", type=_numbers, default=tuple(TABLES), metavar="1,2,3", help="which tables (all)"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=[entry.name for entry in CATALOGUE],
        metavar="NAME",
        help="this workload only; may be given more than once",
    )
    parser.add_argument("--format", default="text", choices=tuple(WRITERS))
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    if not set(numbers) <= set(TABLES):
        raise argparse.ArgumentTypeError(f"{text}: choose from {', '.join(map(str, TABLES))}")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
