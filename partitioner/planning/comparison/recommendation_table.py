"""A recommendation as a text table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from partitioner.planning.comparison.ranked import bubble_share, fullest_device
from partitioner.planning.comparison.recommended_pipeline import RecommendedPipeline
from partitioner.results.figures import amount, figure, gap_cell, samples_per_second
from partitioner.results.tables import WIDE, bar, columns, figure_table, render
from partitioner.results.timeline_table import memory_share

FIGURES = ("copies", "stages", "devices", "makespan", "gap", "bubble", "memory", "full")
WIDE_FIGURES = (*FIGURES[:4], "per sample", *FIGURES[4:])
MARK = "* no other pipeline that fits is as fast and needs less memory"
NO_BOUND = "gap -: no lower bound is known for this schedule"


def recommendation_table(
    choices: Sequence[RecommendedPipeline],
    trade: Sequence[RecommendedPipeline],
    microbatches: int,
    seconds: float,
    time_unit: str,
    width: int | None = None,
) -> str:
    """Return a line for each pipeline in the order given, then why the others cannot be used."""
    wide = columns(width) >= WIDE
    table = figure_table(
        wide, ("schedule",), (*FIGURES[:4], *(("per sample",) if wide else ()), *FIGURES[4:])
    )
    if wide:
        table.add_column("device", no_wrap=True)
        table.add_column("busy of the makespan", no_wrap=True)
    usable = [one for one in choices if not one.against]
    for one in usable:
        table.add_row(*map(Text, _row(one, one in trade, wide)))
    against = _reasons([one for one in choices if one.against])
    known = [MARK] if usable else []
    known += [NO_BOUND] if any(one.plan and one.plan.bound <= 0 for one in usable) else []
    head = Text(_head(usable, choices, microbatches, seconds, time_unit))
    return render([head, *([table] if usable else []), *map(Text, [*known, *against])], width)


def _head(
    usable: Sequence[RecommendedPipeline],
    choices: Sequence[RecommendedPipeline],
    microbatches: int,
    seconds: float,
    time_unit: str,
) -> str:
    tried = f"{len(usable)} of {len(choices)} kinds of pipeline fit, {seconds:.3g} s"
    if not usable or usable[0].timeline is None:
        return f"{microbatches} microbatches: no pipeline can be used; {tried}"
    best = usable[0]
    per_sample = best.timeline.time_per_sample if best.timeline else 0.0
    copies = "" if best.copies == "1" else f" with {best.copies} copies of stages"
    return (
        f"{microbatches} microbatches: {best.schedule}{copies} is the fastest, {best.makespan:.6g} per batch"
        f"{samples_per_second(per_sample, time_unit)}; {tried}"
    )


def _row(one: RecommendedPipeline, marked: bool, wide: bool) -> list[str]:
    timeline, plan = one.timeline, one.plan
    assert timeline is not None
    assert plan is not None
    fullest = fullest_device(timeline)
    idle = bubble_share(timeline)
    return [
        f"{one.schedule}{' *' if marked else ''}",
        one.copies,
        str(len(plan.stages)),
        str(sum(map(len, timeline.groups))),
        figure(timeline.makespan),
        *([figure(timeline.time_per_sample)] if wide else []),
        gap_cell(timeline.makespan, plan.bound),
        f"{idle:.1%}",
        amount(timeline.peak_memory[fullest]),
        memory_share(timeline, fullest),
        *((timeline.devices[fullest], bar(1 - idle)) if wide else ()),
    ]


def _reasons(unusable: Sequence[RecommendedPipeline]) -> list[str]:
    """Return a line for each reason, with the pipelines that it is about."""
    about: dict[str, list[str]] = {}
    for one in unusable:
        about.setdefault(one.against, []).append(
            f"{one.schedule}{'' if one.copies == '1' else f' x{one.spread}'}"
        )
    return [f"not used: {', '.join(sorted(names))}: {why}" for why, names in about.items()]
