"""The tables as text for a terminal, as markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from grids import markdown_grid, text_grid, wrapped

from paper_tables.model import Cell, Row, Table
from paper_tables.verdict import BETTER, DIFFERENT, EQUAL, NONE, WORSE

MARKS = {EQUAL: "=", BETTER: "+", WORSE: "!", DIFFERENT: "!", NONE: ""}
LEGEND = ["= as printed (rounded or cut off), + ours is better, ! ours is worse or differs"]


def as_text(tables: Sequence[Table], width: int | None = None) -> str:
    """Two lines for each workload, ours and the paper's with a mark for each verdict."""
    legend = LEGEND if any(_is_published(table) for table in tables) else []
    return "\n\n".join([*(_text(table, width) for table in tables), *legend])


def as_markdown(tables: Sequence[Table]) -> str:
    """One line for each workload; verdicts stand behind our values, the paper's follow."""
    return "\n\n".join(_markdown(table) for table in tables)


def as_json(tables: Sequence[Table]) -> str:
    """One object: `good`, and for each table its rows of cells."""
    records = [
        {
            "number": table.number,
            "title": table.title,
            "good": table.good,
            "rows": [_record(row) for row in table.rows],
            "notes": list(table.notes),
        }
        for table in tables
    ]
    return json.dumps({"good": all(table.good for table in tables), "tables": records}, indent=1)


def _record(row: Row) -> dict[str, Any]:
    cells = {
        name: {"ours": cell.ours, "published": cell.published, "verdict": cell.verdict}
        for name, cell in row.cells.items()
    }
    return {"workload": row.entry.name, "group": row.entry.group, "cells": cells}


def _is_published(table: Table) -> bool:
    return any(cell.published is not None for row in table.rows for cell in row.cells.values())


def _text(table: Table, width: int | None) -> str:
    columns = [""] + [part for name in table.columns for part in (name, "")]
    lines: list[list[str]] = []
    for group, rows in groupby(table.rows, key=lambda row: row.entry.group):
        lines.append([group])
        for row in rows:
            cells = list(row.cells.values())
            lines.append([f" {row.entry.title}"] + [t for c in cells for t in (c.text(c.ours), "")])
            if any(cell.published is not None for cell in cells):
                lines.append(["   paper"] + [text for cell in cells for text in _paper(cell)])
    notes = ["", wrapped(table.notes, width)] if table.notes else []
    return "\n".join([table.title, "", text_grid(columns, lines, width), *notes])


def _paper(cell: Cell) -> tuple[str, str]:
    return ("" if cell.published is None else cell.text(cell.published)), MARKS[cell.verdict]


def _markdown(table: Table) -> str:
    compared = {name for row in table.rows for name, cell in row.cells.items() if cell.published is not None}
    columns = ["workload"]
    for name in table.columns:
        columns += [name, f"{name}, paper"] if name in compared else [name]
    lines = [[f"`{row.entry.name}`", *_markdown_cells(row, compared)] for row in table.rows]
    notes = [f"\n{note}" for note in table.notes]
    return "\n".join([f"**{table.title}**", "", markdown_grid(columns, lines), *notes])


def _markdown_cells(row: Row, compared: set[str]) -> list[str]:
    texts = []
    for name, cell in row.cells.items():
        verdict = "" if cell.verdict == NONE else f" {cell.verdict}"
        texts.append(cell.text(cell.ours) + verdict)
        texts += [cell.text(cell.published)] if name in compared else []
    return texts
