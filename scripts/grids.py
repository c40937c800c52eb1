"""Tables of texts: aligned for a terminal, or as markdown."""

from __future__ import annotations

import io
import shutil
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE, ROOMY, TIGHT = 100, 3, 1


def text_grid(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Columns of text, the first one to the left; a row of one text is a heading.

    Parameters
    ----------
    columns
        Their names; a column without a name stands close to the one before it.
    rows
        As many texts as there are columns.
    width
        Columns of the terminal, by default what it has.
    """
    there = shutil.get_terminal_size().columns if width is None else width
    gaps = ["" if place == 0 else _gap(name, there) for place, name in enumerate(columns)]
    table = Table(box=None, padding=0, pad_edge=False, header_style="none")
    for gap, name in zip(gaps, columns, strict=True):
        table.add_column(Text(gap + name), justify="right" if gap and name else "left", no_wrap=True)
    for row in rows:
        texts = row if len(row) > 1 else [""] * len(columns)
        table.add_row(*(Text(gap + text) for gap, text in zip(gaps, texts, strict=True)))
    head, *lines = _printed(table)
    return "\n".join(
        [head, *(row[0] if len(row) == 1 else line for row, line in zip(rows, lines, strict=True))]
    )


def _gap(name: str, width: int) -> str:
    return " " * ((ROOMY if width >= WIDE else TIGHT) if name else 1)


def wrapped(remarks: Sequence[str], width: int | None = None) -> str:
    """Remarks below each other, in lines of at most `width` columns."""
    there = shutil.get_terminal_size().columns if width is None else width
    return "\n".join(textwrap.fill(remark, there) for remark in remarks)


def markdown_grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table, the first column to the left and the others to the right."""
    rules = [":--", *("--:" for _ in columns[1:])]
    lines = [columns, rules, *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _printed(table: Table) -> list[str]:
    """The lines of the whole table, however wide it is."""
    console = Console(file=io.StringIO(), width=10_000, color_system=None, highlight=False)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]
