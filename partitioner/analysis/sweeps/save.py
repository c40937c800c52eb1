"""Tables of rows in files: CSV, JSON lines, Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from partitioner.analysis.sweeps.journal import row_line
from partitioner.analysis.sweeps.row import SweepRow
from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable, OptionError
from partitioner.base.files import path_name, write_bytes
from partitioner.base.safe_text import csv_text

JSON_LINES = ".jsonl"


def save_rows(rows: Sequence[SweepRow], path: str | os.PathLike[str]) -> None:
    """Write rows in the format that the end of the file's name says; see :meth:`SweepResult.save`."""
    write_bytes(path, WRITERS[suffix_of(path)](rows))


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the end of a name of a table.

    Raises
    ------
    OptionError
        If it is none of those that can be written.

    Examples
    --------
    >>> suffix_of("rows.csv")
    '.csv'
    """
    suffix = Path(path_name(path)).suffix.lower()
    if suffix not in WRITERS:
        raise OptionError(f"results = {path_name(path)!r}: must end in one of {', '.join(WRITERS)}")
    if suffix == ".parquet":
        _pyarrow()
    return suffix


def _csv(rows: Sequence[SweepRow]) -> bytes:
    flat = _flat(rows)
    columns = list(flat[0]) if flat else list(_EMPTY)
    return csv_text(columns, ([row[name] for name in columns] for row in flat)).encode()


def _json_lines(rows: Sequence[SweepRow]) -> bytes:
    return "".join(map(row_line, rows)).encode()


def _parquet(rows: Sequence[SweepRow]) -> bytes:
    arrow, parquet = _pyarrow()
    flat = _flat(rows)
    content = arrow.BufferOutputStream()
    parquet.write_table(
        arrow.table(
            {
                name: _column([row[name] for row in flat])
                for name in _EMPTY | dict.fromkeys(flat[0] if flat else ())
            }
        ),
        content,
    )
    written: bytes = content.getvalue().to_pybytes()
    return written


def _flat(rows: Sequence[SweepRow]) -> list[dict[str, Any]]:
    """Return the rows as one level each, all with the same columns."""
    flat = [row.flat() for row in rows]
    columns = dict.fromkeys(name for row in flat for name in row)
    return [{name: row.get(name) for name in columns} for row in flat]


def _column(values: list[Any]) -> list[Any]:
    """Return the values of a column of one type: as texts, if they have several."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) <= 1:
        return values
    return [None if value is None else str(value) for value in values]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise BackendUnavailable(f"Parquet files need pyarrow: {remedy('parquet')}") from error
    return pyarrow, parquet


_EMPTY = SweepRow("", "", "", 0, "", "").flat()
WRITERS: dict[str, Callable[[Sequence[SweepRow]], bytes]] = {
    ".csv": _csv,
    JSON_LINES: _json_lines,
    ".parquet": _parquet,
}
