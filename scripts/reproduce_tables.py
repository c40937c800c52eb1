"""Reproduce Tables 1 to 4 of the paper, side by side with the published values.

With --ip, Table 1 is continued by integer programs and local search, which take minutes a workload; with
--gpipe, plans for throughput are held against plans for GPipe; with --latency comes Table 4.
Exit code: 0 if every value is as published or better, 1 if one is not, 2 if files are missing or bad.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from paper_tables.catalogue import CATALOGUE
from paper_tables.latency import LatencyMeasurement, table4
from paper_tables.measurement import Effort, Measurement
from paper_tables.model import Table
from paper_tables.partitioners import SCOTCH, scotch
from paper_tables.programs import GPIPE, IP, gpipe, programs
from paper_tables.published import Published, read_published
from paper_tables.sources import Source, find_sources
from paper_tables.tables import PIPEDREAM, pipedream, table1, table2, table3
from paper_tables.writing import as_json, as_markdown, as_text
from rich.console import Console

from partitioner import PartitionerError

GOOD, NOT_REACHED, BAD_INPUT = 0, 1, 2
EFFORT = Effort()
WRITERS = {"text": as_text, "markdown": as_markdown, "json": as_json}
Make = Callable[[Sequence[Measurement], Published], Table]
NUMBERED: Mapping[int | str, Make] = {1: table1, 2: table2, 3: table3}
TABLES: Mapping[int | str, Make] = {
    **NUMBERED,
    PIPEDREAM: pipedream,
    SCOTCH: scotch,
    IP: programs,
    GPIPE: gpipe,
}


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
        published = _published(options.folder, options.reference)
        effort = Effort(options.time_limit, options.gap)
        tables = _tables(options, published, effort)
    except (OSError, ValueError, PartitionerError) as error:
        print(f"reproduce_tables: {error}", file=sys.stderr)
        return BAD_INPUT
    print(WRITERS[options.format](tables))
    return GOOD if all(table.good for table in tables) else NOT_REACHED


def reproduce(
    sources: Sequence[Source], published: Published, wanted: Sequence[int | str], effort: Effort = EFFORT
) -> list[Table]:
    """Fill the tables wanted, without those that have no row; progress goes to a terminal only."""
    console = Console(stderr=True)
    measurements: list[Measurement] = []
    _ = Measurement(sources[0]).plan  # compiles the kernels, or loads them
    for place, source in enumerate(sources, 1):
        measurements.append(Measurement(source, effort))
        if console.is_terminal:
            console.print(f"{place} of {len(sources)}: {source.entry.name}", style="dim")
        for name in wanted:
            TABLES[name](measurements[-1:], published)
    tables = [TABLES[name](measurements, published) for name in wanted]
    return [table for table in tables if table.rows]


def _tables(options: argparse.Namespace, published: Published, effort: Effort) -> list[Table]:
    wanted = _wanted(options)
    tables = []
    if wanted:
        tables += reproduce(find_sources(options.folder, options.only), published, wanted, effort)
    if options.latency:
        sources = find_sources(options.folder, options.only, "latency")
        tables.append(table4([LatencyMeasurement(source, effort) for source in sources], published))
    return tables


def _wanted(options: argparse.Namespace) -> list[int | str]:
    wanted: list[int | str] = []
    for number in options.tables:
        wanted += [number, PIPEDREAM, SCOTCH] if number == 1 else [number]
    return [*wanted, *([IP] if options.ip else []), *([GPIPE] if options.gpipe else [])]


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
        help="folder of table1.json and so on (default: reference/ beside FOLDER, if it is there)",
    )
    parser.add_argument(
        "--tables",
        type=_numbers,
        default=tuple(NUMBERED),
        metavar="1,2,3",
        help="which of the quick tables (all)",
    )
    parser.add_argument("--ip", action="store_true", help="continue Table 1 with integer programs")
    parser.add_argument("--latency", action="store_true", help="Table 4, on the workloads for latency")
    parser.add_argument("--gpipe", action="store_true", help="compare objectives on training workloads")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=EFFORT.time_limit,
        metavar="SECONDS",
        help="of each integer program (%(default)g)",
    )
    parser.add_argument(
        "--gap",
        type=float,
        default=EFFORT.gap,
        metavar="FRACTION",
        help="when an integer program may stop (%(default)g)",
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
    numbers = tuple(int(part) for part in text.split(",") if part)
    if not set(numbers) <= set(NUMBERED):
        raise argparse.ArgumentTypeError(f"{text}: choose from {', '.join(map(str, NUMBERED))}")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
