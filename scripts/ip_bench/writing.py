"""The runs as text for a terminal and as markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grids import markdown_grid, text_grid, wrapped
from paper_tables.verdict import BETTER, EQUAL, smaller_is_better

from ip_bench.runs import BASELINE, Run
from ip_bench.store import as_line

RUNS = ["workload", "split", "setting", "value", "bound", "gap", "seconds", "stop", "by", "paper", "verdict"]
TOTALS = ["setting", "runs", "plans", "proven", "paper's or better", "seconds"]
COLUMNS = {"convex": "contiguous", "free": "noncontiguous"}
Published = Mapping[str, Mapping[str, Any]]
Grid = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
Prose = Callable[[Sequence[str]], str]


def as_text(runs: Sequence[Run], published: Published) -> str:
    """Aligned columns and remarks."""
    return _written(runs, published, text_grid, wrapped)


def as_markdown(runs: Sequence[Run], published: Published) -> str:
    """Markdown tables and remarks."""
    return _written(runs, published, markdown_grid, "\n\n".join)


def as_json(runs: Sequence[Run], published: Published) -> str:
    """One JSON object a line, as in the file of finished runs."""
    return "\n".join(as_line(run) for run in runs)


def _written(runs: Sequence[Run], published: Published, grid: Grid, prose: Prose) -> str:
    settings = list(dict.fromkeys(run.task.setting for run in runs))
    totals = [
        _total(setting, [run for run in runs if run.task.setting == setting], published)
        for setting in settings
    ]
    tables = [grid(RUNS, [_line(run, published) for run in runs]), grid(TOTALS, totals)]
    return "\n\n".join([*tables, prose(_remarks(runs))])


def _line(run: Run, published: Published) -> list[str]:
    task, paper = run.task, paper_value(run, published)
    name = [task.workload, task.split, task.setting]
    if run.failure:
        return [*name, *["-"] * 4, "failed", "-", _number(paper), "-"]
    return [
        *name,
        _number(run.value),
        _number(run.bound),
        "-" if run.gap is None else f"{run.gap:.2%}",
        "-" if run.seconds is None else f"{run.seconds:.1f}",
        run.stop_reason,
        run.backend,
        _number(paper),
        verdict(run, published),
    ]


def _total(setting: str, runs: Sequence[Run], published: Published) -> list[str]:
    good = sum(verdict(run, published) in (EQUAL, BETTER) for run in runs)
    plans = sum(not run.failure for run in runs)
    proven = sum(run.proven for run in runs)
    return [setting, *map(str, (len(runs), plans, proven, good)), f"{sum(r.seconds or 0 for r in runs):.0f}"]


def paper_value(run: Run, published: Published) -> float | None:
    """What the paper prints for the workload and the split, or for the same baseline; throughput only."""
    if run.task.limits.objective != "throughput":
        return None
    column = "local_search" if run.task.setting == BASELINE else COLUMNS[run.task.split]
    value: float | None = published.get(run.task.workload, {}).get(column)
    return value


def verdict(run: Run, published: Published) -> str:
    """Our value against the paper's, to the digits that it prints."""
    return smaller_is_better(run.value, paper_value(run, published))


def _remarks(runs: Sequence[Run]) -> list[str]:
    limits = list(dict.fromkeys(run.task.limits for run in runs))
    remarks = [
        f"Objective {each.objective}, at most {each.time_limit:g} s a run, until a gap of {each.gap:.2%}, "
        f"seed {each.seed}, {each.workers or 'all'} cores."
        for each in limits
    ]
    failed = [run for run in runs if run.failure]
    return remarks + [f"{r.task.workload}, {r.task.split}, {r.task.setting}: {r.failure}" for r in failed]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
