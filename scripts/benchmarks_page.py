"""Write ``docs/benchmarks.md`` from the tables and the ``page.toml`` in ``scripts/benchmarks/``.

With ``--check`` the page is not written; the exit code is 1 if it is not what would be written.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
RESULTS = SCRIPTS / "benchmarks"
PAGE = SCRIPTS.parent / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the page instead of writing it")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page (docs/benchmarks.md)")
    options = parser.parse_args(arguments)
    made = page()
    if options.check:
        return int(made != options.page.read_text(encoding="utf-8"))
    options.page.write_text(made, encoding="utf-8")
    return 0


def page(folder: Path = RESULTS) -> str:
    """Return the page: its introduction, and a section for each question."""
    asked = tomllib.loads((folder / "page.toml").read_text(encoding="utf-8"))
    parts = ["# Benchmarks", asked["introduction"].strip()]
    for section in asked["section"]:
        parts += _section(section, folder)
    return "\n\n".join(parts) + "\n"


def _section(section: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield the paragraphs of a section: title, question, command, findings, tables."""
    yield f"## {section['title']}"
    yield f"**{section['question']}**"
    yield f"```\n{section['command']}\n```"
    if "findings" in section:
        yield section["findings"].strip()
    for result in section.get("result", ()):
        text = (folder / result["file"]).read_text(encoding="utf-8")
        yield chosen(text, result.get("columns"), result.get("rows", ""))


def chosen(table: str, columns: Sequence[str] | None = None, rows: str = "") -> str:
    r"""Return some columns of a Markdown table, and the rows in whose cells, joined, the pattern is found.

    Examples
    --------
    >>> print(chosen("| a | b |\n| :-- | --: |\n| x | 1 |\n| y | 2 |", ["b"], "y"))
    | b |
    | --: |
    | 2 |
    """
    head, rule, *body = [_cells(line) for line in table.splitlines()]
    at = range(len(head)) if columns is None else [head.index(name) for name in columns]
    kept = [head, rule, *(cells for cells in body if re.search(rows, " | ".join(cells)))]
    return "\n".join(f"| {' | '.join(cells[i] for i in at)} |" for cells in kept)


def _cells(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


if __name__ == "__main__":
    sys.exit(main())
