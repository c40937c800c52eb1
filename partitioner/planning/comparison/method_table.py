"""A comparison of methods as a text table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from partitioner.evaluation.text.figures import amount, figure, gap_cell
from partitioner.evaluation.text.tables import WIDE, bar, columns, figure_table, fullness, render
from partitioner.planning.comparison.runs import BUG, CANNOT_RUN, INFEASIBLE, Compared

FIGURES = ("value", "gap", "bound", "seconds", "memory", "full")
PER_SAMPLE = "per sample"  # the time of a sample, where the value is a number of samples
PREFIX = {INFEASIBLE: "infeasible: ", CANNOT_RUN: "cannot run: "}


def compared_table(
    head: str,
    compared: Sequence[Compared],
    bounds: Mapping[str, float],
    contradictions: Sequence[str],
    served: bool,
    width: int | None = None,
) -> str:
    """Return a line for each plan, then the reasons of methods without a plan, then contradictions.

    Parameters
    ----------
    head
        What stands above the table.
    compared
        The methods, the best one first.
    bounds
        For each split the best bound that any method proved for it or for a freer one.
    contradictions
        Bugs, in words.
    served
        Whether values are numbers of samples in flight, so that the time of a sample is shown, too.
    width
        The most columns, by default the terminal's.
    """
    wide = columns(width) >= WIDE
    titles = (FIGURES[0], PER_SAMPLE, *FIGURES[1:]) if served else FIGURES
    table = figure_table(wide, ("method", "split"), titles)
    if wide:
        table.add_column("stopped", no_wrap=True)
        table.add_column("best value to its own", no_wrap=True)
    for one in compared:
        if one.plan is not None:
            table.add_row(*map(Text, _cells(one, bounds[one.split], compared[0].value, served, wide)))
    without = [
        Text(f"{one.method}, {one.split}: {PREFIX.get(one.against, '') + one.reason}")
        for one in compared
        if one.against not in ("", BUG)
    ]
    bugs = [Text(f"CONTRADICTION, please report: {words}") for words in contradictions]
    tables = [table] if compared[0].plan is not None else []
    return render([Text(head), *tables, *without, *bugs], width)


def _cells(one: Compared, bound: float, best: float, served: bool, wide: bool) -> list[str]:
    assert one.plan is not None and one.fullest is not None
    timed = [figure(one.plan.bottleneck.load)] if served else []
    cells = [
        *(one.method, one.split, figure(one.value), *timed, gap_cell(one.value, bound)),
        *(figure(bound), f"{one.seconds:.2f}"),
        *(amount(one.fullest.memory), fullness(one.fullest)),
    ]
    larger, smaller = max(best, one.value), min(best, one.value)
    share = smaller / larger if larger > 0 else 1.0
    return [*cells, one.plan.stop_reason, bar(share)] if wide else cells
