"""Texts of others where they could do harm: control characters on a terminal, formulas in a spreadsheet."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
KEPT = "\n\t"
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # the direction of what follows
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with these a spreadsheet takes a cell for a formula


def visible(text: str) -> str:
    r"""Return a text in which control characters other than the ends of lines and tabs are written out.

    A terminal would obey them: they move the cursor, change colours or the title, or turn what follows round.

    Examples
    --------
    >>> print(visible("gpu\x1b[2J"), visible("café"))
    gpu\x1b[2J café
    """
    if text.isprintable():
        return text
    return "".join(_written_out(each) if _obeyed(each) else each for each in text)


def cell(value: T) -> T | str:
    """Return the value of a cell of a CSV file, with an apostrophe before a text that looks like a formula.

    Examples
    --------
    >>> cell("=1+1"), cell("node 3"), cell(-2.5), cell("-")
    ("'=1+1", 'node 3', -2.5, '-')
    """
    formula = isinstance(value, str) and len(value) > 1 and value.startswith(FORMULA)
    return f"'{value}" if formula else value


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV, in which no text is a formula."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(cell, columns))
    writer.writerows(map(cell, row) for row in rows)
    return file.getvalue()


def _obeyed(character: str) -> bool:
    control = unicodedata.category(character) in ("Cc", "Cs")
    return (control and character not in KEPT) or character in TURNING


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode()
