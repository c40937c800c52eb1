"""Published measurements compared with predictions from config and layout: training, memory, serving.

Every row of ``published.json`` is predicted by the library alone: the layers of the config as one of the
devices that divide them sees them, equal numbers of blocks in each stage, and the schedule of the run, and so
are Sailor's runs on unlike GPUs, which lie beside it. Rows that do not say enough are listed with the reason.
Exit code: 0.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from grids import markdown_grid, text_grid
from published_bench import memory, sailor, serving, training, unlike
from published_bench.rows import Row, read_rows

SHARED = Path(__file__).resolve().parents[2] / "shared"
ROWS = Path("reference", "published.json")
HEADS = ("measurement", "measured", "predicted", "error %", "note")
DECODE = "a step of decoding alone is no plan's value"


class Line(NamedTuple):
    """A measured value and the predicted one; None, with the reason, where there is no prediction."""

    group: str
    name: str
    measured: float
    predicted: float | None
    note: str = ""

    @property
    def error(self) -> float | None:
        """The relative error, signed."""
        return None if self.predicted is None else self.predicted / self.measured - 1


def lines_of(row: Row, benchmarks: Path) -> Iterator[Line]:
    """Yield the lines of a row."""
    if row.kind == "training time":
        found = training.predicted(row)
        group = "sc21" if row.name.startswith("sc21-") else "other training"
        short = "" if found.memory <= found.limit else f"does not fit: {found.memory / 1e9:.1f} GB"
        yield Line(group, row.name, row.measured["seconds_per_batch"], found.seconds, short)
    elif row.kind.startswith("training time from"):
        if not (benchmarks / sailor.MEMORY).exists():
            yield Line("Sailor", row.name, row.measured["seconds_per_batch"], None, "no profiles there")
            return
        found = sailor.predicted(row, benchmarks)
        group = "Sailor" if row.layout["microbatches_per_pipeline"] > 1 else "Sailor, one microbatch"
        yield Line(f"{group}: time", row.name, row.measured["seconds_per_batch"], found.seconds)
        yield Line(f"{group}: memory", row.name, row.measured["max_memory_bytes"] / 1e9, found.memory / 1e9)
    elif row.kind.startswith("training memory"):
        for part, gibi in memory.predicted(row).items():
            if part in row.measured:
                yield Line("training memory", f"{row.name}: {part}", row.measured[part], gibi)
    elif row.kind.startswith("serving"):
        blocks = serving.blocks(row)
        yield Line("vLLM's blocks", row.name, row.measured, blocks, serving.NOT_SAID.get(row.name, ""))
    elif row.kind.startswith("llama.cpp"):
        yield Line("llama.cpp's buffers", row.name, row.measured, serving.buffer(row))
    else:
        yield Line("decode", row.name, row.measured, None, DECODE)


def summary(lines: Sequence[Line]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, number of rows, median and worst error in percent of each group."""
    for group in dict.fromkeys(line.group for line in lines):
        errors = [abs(one.error) * 100 for one in lines if one.group == group and one.error is not None]
        if errors:
            yield group, str(len(errors)), f"{statistics.median(errors):.1f}", f"{max(errors):.1f}"


def all_lines(shared: Path, beginnings: tuple[str, ...] = ("",)) -> list[Line]:
    """Return the lines of all rows whose ids begin in one of some ways."""
    rows = [row for row in read_rows(shared / ROWS) if row.name.startswith(beginnings)]
    benchmarks = shared / "benchmarks"
    lines = [line for row in rows for line in lines_of(row, benchmarks)]
    if not (benchmarks / unlike.TIMES).exists():
        return lines
    others = (Line(*each) for each in unlike.lines(benchmarks))
    return [*lines, *(line for line in others if line.name.startswith(beginnings))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="bench_published", description=__doc__)
    parser.add_argument("rows", nargs="*", help="beginnings of the ids of rows (all)")
    parser.add_argument("--shared", type=Path, default=SHARED, help=f"folder of the measurements ({SHARED})")
    parser.add_argument("--part", choices=("summary", "rows"), help="print one of both tables (both)")
    parser.add_argument("--markdown", action="store_true", help="print tables as markdown")
    options = parser.parse_args(arguments)
    path = options.shared / ROWS
    if not path.exists():
        print(f"skipped: there is no {path}; --shared names the folder with reference/published.json")
        return 0
    lines = all_lines(options.shared, tuple(options.rows) or ("",))
    grid = markdown_grid if options.markdown else text_grid
    if options.part != "rows":
        print(grid(("group", "rows", "median %", "worst %"), list(summary(lines))))
    if options.part != "summary":
        print(grid(HEADS, [texts(line) for line in lines]))
    return 0


def texts(line: Line) -> tuple[str, ...]:
    """Return the cells of a line."""
    error = "-" if line.error is None else f"{line.error * 100:+.1f}"
    predicted = "-" if line.predicted is None else f"{line.predicted:,.2f}"
    return line.name, f"{line.measured:,.2f}", predicted, error, line.note


if __name__ == "__main__":
    sys.exit(main())
