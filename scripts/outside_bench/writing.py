"""The runs as text for a terminal, as markdown and as JSON: a table and a summary for every set."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict

from grids import markdown_grid, text_grid

from outside_bench.runs import Run

COLUMNS = ["instance", "value", "bound", "gap", "optimum", "over", "seconds", "stop"]
Grid = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def as_text(runs: Sequence[Run]) -> str:
    """Aligned columns."""
    return _written(runs, text_grid, "{}")


def as_markdown(runs: Sequence[Run]) -> str:
    """Markdown tables."""
    return _written(runs, markdown_grid, "**{}**")


def as_json(runs: Sequence[Run]) -> str:
    """One JSON object a line; figures that are not known are null."""
    records = [{k: None if v != v else v for k, v in asdict(run).items()} for run in runs]
    return "\n".join(map(json.dumps, records))


def summary(runs: Sequence[Run]) -> str:
    """Return a line with the counts and the means of runs."""
    plans = [run for run in runs if not run.failure]
    known = [run.excess for run in plans if not math.isnan(run.excess)]
    parts = [f"{len(runs)} instances", f"{len(runs) - len(plans)} without a plan"]
    if known:
        reached = sum(run.reached for run in plans)
        parts += [f"{reached} at the best known value", f"excess {_mean_and_worst(known)}"]
    parts += [f"{sum(run.proven for run in plans)} proven"]
    if plans:
        seconds = [run.seconds for run in plans]
        parts += [f"gap {_mean_and_worst([run.gap for run in plans])}"]
        parts += [f"{sum(seconds):.1f} s, longest {max(seconds):.1f} s"]
    return "; ".join([*parts, f"{sum(run.wrong for run in plans)} wrong"])


def _written(runs: Sequence[Run], grid: Grid, title: str) -> str:
    tables = list(dict.fromkeys(run.table for run in runs))
    blocks = []
    for table in tables:
        mine = [run for run in runs if run.table == table]
        blocks += [title.format(table), grid(COLUMNS, [_line(run) for run in mine]), summary(mine)]
    return "\n\n".join([*blocks, f"All: {summary(runs)}"] if len(tables) > 1 else blocks)


def _line(run: Run) -> list[str]:
    optimum = _number(run.low) if run.low == run.high else f"{_number(run.low)} to {_number(run.high)}"
    known = "-" if math.isnan(run.high) else optimum
    if run.failure:
        return [run.name, "-", "-", "-", known, "-", "-", run.failure]
    over = "-" if math.isnan(run.excess) else f"{run.excess:.2%}"
    stop = "WRONG" if run.wrong else run.stop_reason
    figures = [_number(run.value), _number(run.bound), f"{run.gap:.2%}", known, over, f"{run.seconds:.2f}"]
    return [run.name, *figures, stop]


def _number(value: float) -> str:
    return f"{value:.7g}"


def _mean_and_worst(shares: Sequence[float]) -> str:
    return f"{sum(shares) / len(shares):.2%} (worst {max(shares):.2%})"
