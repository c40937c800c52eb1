"""Short HTML of results, for notebooks; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], most: int = 20) -> str:
    """Return a table with a title, and with at most `most` rows; a last row says how many are left out.

    Examples
    --------
    >>> html_table("a < b", ["device"], [["gpu0"]])
    '<table><caption>a &lt; b</caption><tr><th>device</th></tr><tr><td>gpu0</td></tr></table>'
    """
    found = [list(row) for row in rows]
    shown = found[:most] if len(found) > most + 1 else found
    lines = [_row("th", columns), *(_row("td", row) for row in shown)]
    if len(shown) < len(found):
        lines.append(_row("td", [f"and {len(found) - len(shown)} more", *[""] * (len(columns) - 1)]))
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
