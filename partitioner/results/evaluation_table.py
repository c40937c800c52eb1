"""Evaluations as text."""

from __future__ import annotations

from rich.text import Text

from partitioner.base.errors import SHOWN_FLAWS
from partitioner.evaluation.result import Evaluation
from partitioner.results.tables import render, tables_of, unit_of


def evaluation_table(evaluation: Evaluation, width: int | None = None) -> str:
    """Return an evaluation as text: value, feasibility, shape, each device, and for latency the schedule."""
    verdict = "is feasible" if evaluation.feasible else "breaks the rules"
    unit = unit_of(evaluation.objective)
    head = f"{evaluation.objective}: {evaluation.value:.6g}{unit}; the placement {verdict}"
    form = evaluation.shape
    parts = f"forward part {_yes(form.forward_convex)}, backward part {_yes(form.backward_convex)}"
    shape = f"shape: {form.name} ({parts})"
    broken = [f"broken: {violation}" for violation in evaluation.violations[:SHOWN_FLAWS]]
    hidden = len(evaluation.violations) - SHOWN_FLAWS
    broken += [f"broken: ... and {hidden} more"] if hidden > 0 else []
    order, by_operator = evaluation.shape.order, evaluation.by_operator
    tables = tables_of(evaluation.loads, order, evaluation.schedule, width, by_operator)
    notes = [f"note: {note}" for note in evaluation.notes]
    return render([Text(f"{head}\n{shape}"), *tables, *map(Text, broken), *map(Text, notes)], width)


def _yes(convex: bool) -> str:
    return "convex" if convex else "not convex"
