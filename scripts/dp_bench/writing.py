"""The measurements as text for a terminal, as markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from grids import markdown_grid, text_grid, wrapped

from dp_bench.measure import Result

MIB = 2**20
OURS = ["workload", "supernodes", "ideals", "steps", "seconds", "MiB"]
BOTH = ["workload", "ours s", "ref. s", "ratio", "ours MiB", "ref. MiB", "ratio", "value"]
Grid = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
Prose = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Report:
    """All that was measured; `compiling` holds seconds with an empty and with a full cache."""

    method: str
    repeat: int
    results: Sequence[Result]
    baseline_bytes: int
    compiling: tuple[float, float] | None = None


def as_text(report: Report) -> str:
    """Aligned columns and remarks."""
    return _written(report, text_grid, wrapped)


def as_markdown(report: Report) -> str:
    """Markdown tables and remarks."""
    return _written(report, markdown_grid, "\n\n".join)


def as_json(report: Report) -> str:
    """One object, with every single run."""
    records = [
        asdict(result)
        | {"median_seconds": result.median_seconds, "difference": _difference(result), "good": result.good}
        for result in report.results
    ]
    return json.dumps(asdict(report) | {"results": records}, indent=1)


def _written(report: Report, grid: Grid, prose: Prose) -> str:
    blocks = [grid(OURS, [_ours(result) for result in report.results])]
    compared = [result for result in report.results if result.reference is not None]
    if compared:
        blocks += ["Ours and the reference program, run in turn:"]
        blocks += [grid(BOTH, [_both(result) for result in compared])]
    return "\n\n".join([*blocks, prose(_remarks(report))])


def _ours(result: Result) -> list[str]:
    if result.failure:
        return [result.workload, *["-"] * (len(OURS) - 2), "failed"]
    counts = [_count(result.supernodes), _count(result.ideals), _count(result.steps)]
    return [result.workload, *counts, _number(result.median_seconds), _mib(result.peak_bytes)]


def _both(result: Result) -> list[str]:
    theirs = result.reference
    assert theirs is not None
    ours = [_number(result.median_seconds), _mib(result.peak_bytes)]
    if theirs.failure:
        return [result.workload, ours[0], "failed", "-", ours[1], "-", "-", "-"]
    difference = _difference(result)
    return [
        result.workload,
        ours[0],
        _number(theirs.seconds),
        _ratio(theirs.seconds, result.median_seconds),
        ours[1],
        _mib(theirs.peak_bytes),
        _ratio(theirs.peak_bytes, result.peak_bytes),
        "-" if difference is None else f"{difference:+.0e}" if difference else "0",
    ]


def _remarks(report: Report) -> list[str]:
    remarks = [
        f"Method {report.method}; seconds: median of {report.repeat} runs with compiled kernels; MiB: peak "
        f"of a process that loads and solves the workload, {_mib(report.baseline_bytes)} for a tiny graph."
    ]
    if report.compiling is not None:
        cold, warm = report.compiling
        remarks += [
            f"First solves of a process: {cold:.1f} s without compiled kernels, {warm:.1f} s with them."
        ]
    if any(result.runs for result in report.results):
        remarks += ["Ratio: reference / ours; value: (ours - reference) / reference."]
    remarks += [f"{result.workload}: {result.failure}" for result in report.results if result.failure]
    failures = [(r.workload, r.reference.failure) for r in report.results if r.reference is not None]
    return remarks + [f"{name}: reference program: {failure}" for name, failure in failures if failure]


def _difference(result: Result) -> float | None:
    theirs = result.reference.value if result.reference is not None else None
    if result.value is None or theirs is None:
        return None
    return (result.value - theirs) / theirs if theirs else result.value - theirs


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.{3 if value < 10 else 1 if value < 100 else 0}f}"


def _mib(value: int | None) -> str:
    return "-" if value is None else f"{value / MIB:,.0f}"


def _ratio(theirs: float | None, ours: float | None) -> str:
    return "-" if not theirs or not ours else _number(theirs / ours)
