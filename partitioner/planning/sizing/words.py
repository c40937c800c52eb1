"""The text of a search for the size of a pool."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

from partitioner.evaluation.text.figures import figure
from partitioner.evaluation.text.tables import render
from partitioner.planning.sizing.trial import SizeTrial
from partitioner.results.plan import Plan


def within(limit: float | None, unit: str) -> str:
    """Return the limit of the time per sample as the end of a clause.

    Examples
    --------
    >>> within(12.5, "ms"), within(None, "ms")
    (' for at most 12.5 ms per sample', ' for a plan of any time')
    """
    if limit is None:
        return " for a plan of any time"
    return f" for at most {figure(limit)}{f' {unit}' if unit else ''} per sample"


def found_lines(
    head: str, sizes: Sequence[str], trials: Sequence[SizeTrial], plan: Plan, width: int | None
) -> str:
    """Return the answer, a line with all trials, and the plan, as text of at most `width` columns."""
    tried = "; ".join(f"{size}: {_verdict(trial)}" for size, trial in zip(sizes, trials, strict=True))
    return "\n".join([render([Text(head), Text(f"tried: {tried}")], width), "", plan.summary(width)])


def _verdict(trial: SizeTrial) -> str:
    if trial.suffices and trial.plan is not None:
        return f"a plan takes {figure(trial.plan.value)}"
    if math.isinf(trial.bound):
        return "no plan"
    if trial.excluded:
        return f"no plan takes less than {figure(trial.bound)}"
    return "left open"
