"""The values that the paper prints, read from the reference files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Published:
    """Rows by workload of Table 1 (and 2), of Table 3 and of Table 4; empty where nothing is known."""

    table1: Rows = field(default_factory=dict)
    table3: Rows = field(default_factory=dict)
    table4: Rows = field(default_factory=dict)


def read_published(folder: Path) -> Published:
    """Read ``table1.json``, ``table3.json`` and ``table4.json``; a file that is missing has no rows."""
    return Published(*(_rows(folder / f"table{number}.json") for number in (1, 3, 4)))


def _rows(path: Path) -> Rows:
    if not path.is_file():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {row["workload"]: row for row in rows}
