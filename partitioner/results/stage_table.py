"""The stages of a plan as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from partitioner.evaluation.text.figures import amount
from partitioner.evaluation.text.names import joined_within, ranges
from partitioner.evaluation.text.tables import WIDE, columns, figure_table
from partitioner.results.by_stage import StageLoad

NARROW_NAMES, WIDE_NAMES = 44, 100


def stage_table(stages: Sequence[StageLoad], width: int | None) -> Table | None:
    """Return a table of what the table of devices does not show: layers, parameters, bubble.

    The result is None if neither the layers nor the bubble of a stage are known.
    """
    if not any(stage.layers or stage.bubble is not None for stage in stages):
        return None
    wide = columns(width) >= WIDE
    shown = [name for name in FIGURES if any(getattr(stage, name) is not None for stage in stages)]
    table = figure_table(wide, ("stage", "layers"), shown)
    for number, stage in enumerate(stages, 1):
        names = joined_within(ranges(stage.layers), WIDE_NAMES if wide else NARROW_NAMES)
        figures = (FIGURES[name](getattr(stage, name)) for name in shown)
        table.add_row(*map(Text, (str(number), names, *figures)))
    return table


def _percent(share: float) -> str:
    return f"{share:.1%}"


FIGURES: dict[str, Callable[[float], str]] = {"parameters": amount, "bubble": _percent}
