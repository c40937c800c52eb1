"""Comparisons of methods as text for people."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from partitioner.comparison.methods import MethodComparison
from partitioner.comparison.runs import BUG, CANNOT_RUN, INFEASIBLE, Compared
from partitioner.figures import amount, figure, gap_cell
from partitioner.report import BAR_WIDTH, WIDE, columns, fullness, render, unit_of

FIGURES = ("value", "gap", "bound", "seconds", "memory", "full")
PREFIX = {INFEASIBLE: "infeasible: ", CANNOT_RUN: "cannot run: "}


def methods_compared(comparison: MethodComparison, width: int | None = None) -> str:
    """A comparison as text: a line for each plan, best first, then why some methods have none."""
    wide = columns(width) >= WIDE
    table = Table(box=None, padding=(0, 3 if wide else 1, 0, 0))
    table.add_column("method", no_wrap=True)
    table.add_column("split", no_wrap=True)
    for title in FIGURES:
        table.add_column(title, justify="right", no_wrap=True)
    if wide:
        table.add_column("stopped", no_wrap=True)
        table.add_column("best value to its own", no_wrap=True)
    for one in comparison.compared:
        if one.plan is not None:
            table.add_row(*map(Text, _cells(comparison, one, wide)))
    without = [
        Text(f"{one.method}, {one.split}: {_why(one)}")
        for one in comparison.compared
        if one.against not in ("", BUG)
    ]
    bugs = [Text(f"CONTRADICTION, please report: {words}") for words in comparison.contradictions]
    tables = [table] if comparison.best else []
    return render([Text(_head(comparison)), *tables, *without, *bugs], width)


def _head(comparison: MethodComparison) -> str:
    """The best plan of all, and what the bounds are."""
    best = comparison.best
    if best is None:
        return f"{comparison.objective}: no method found a plan"
    limit = "" if comparison.time_limit is None else f", at most {comparison.time_limit:g} s each"
    return (
        f"{comparison.objective}: {best.value:.6g} per {unit_of(comparison.objective)} "
        f"by {best.method} ({best.split} split){limit}\n"
        "gap: to the bound, the best that any method proved for the split or a freer one; above 10 % "
        "how many times the bound the value is"
    )


def _cells(comparison: MethodComparison, one: Compared, wide: bool) -> list[str]:
    assert one.plan is not None and one.fullest is not None and comparison.best is not None
    near = gap_cell(one.value, comparison.bounds[one.split])
    cells = [
        *(one.method, one.split, figure(one.value), near),
        *(figure(comparison.bounds[one.split]), f"{one.seconds:.2f}"),
        *(amount(one.fullest.memory), fullness(one.fullest)),
    ]
    share = comparison.best.value / one.value if one.value > 0 else 1.0
    return [*cells, one.plan.stop_reason, "█" * round(BAR_WIDTH * share)] if wide else cells


def _why(one: Compared) -> str:
    return PREFIX.get(one.against, "") + one.reason
