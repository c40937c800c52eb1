"""How the nodes of each stage run, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from partitioner.evaluation.text.tables import WIDE, columns, figure_table
from partitioner.results.by_stage import StageLoad


def ways_table(stages: Sequence[StageLoad], width: int | None) -> Table | None:
    """Return a table of the copies and the degree of each stage, and how many nodes run in which way.

    The result is None if all nodes run by their own figures.
    """
    if not any(stage.ways for stage in stages):
        return None
    table = figure_table(columns(width) >= WIDE, ("stage",), ("devices", "copies", "degree"))
    table.add_column("nodes by way", overflow="fold")
    for number, stage in enumerate(stages, 1):
        figures = map(str, (number, len(stage.devices), stage.copies, stage.degree))
        table.add_row(*map(Text, (*figures, ways_text(stage) or "all by own figures")))
    return table


def ways_text(stage: StageLoad) -> str:
    """Return how many nodes of a stage run in which way; empty if all run by their own figures.

    Examples
    --------
    >>> ways_text(StageLoad(("gpu0",), (), None, 1.0, 2.0, ways={"own figures": 1, "recomputed": 2}))
    '1 by own figures, 2 by recomputed'
    """
    return ", ".join(f"{count} by {way}" for way, count in stage.ways.items())
