"""A recommendation as a text table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from partitioner.evaluation.text.figures import amount, figure, gap_cell, samples_per_second
from partitioner.evaluation.text.tables import WIDE, bar, columns, figure_table, render
from partitioner.planning.comparison.ranked import bubble_share, fullest_device
from partitioner.planning.comparison.recommended_pipeline import RecommendedPipeline
from partitioner.results.timeline_table import memory_share

FIGURES = ("copies", "stages", "devices", "makespan", "gap", "bubble", "memory", "full")
WIDE_FIGURES = (*FIGURES[:4], "per sample", *FIGURES[4:])
MARK = "* needs at least 1 % less memory than every faster one"
GAP = "gap: distance to a lower bound for pipelines of the line"
WAYS = "other ways: how many nodes run by which alternative; the rest runs by its own figures"


def recommendation_table(
    choices: Sequence[RecommendedPipeline],
    trade: Sequence[RecommendedPipeline],
    microbatches: int,
    took: str,
    time_unit: str,
    width: int | None = None,
) -> str:
    """Return a line for each pipeline in the order given, then why the others cannot be used."""
    wide = columns(width) >= WIDE
    table = figure_table(wide, ("schedule",), WIDE_FIGURES if wide else FIGURES)
    if wide:
        table.add_column("device", no_wrap=True)
        table.add_column("busy of the makespan", no_wrap=True)
    usable = [one for one in choices if not one.against]
    ways = any(one.ways for one in usable)
    if ways:
        table.add_column("other ways", overflow="fold")
    for one in usable:
        chosen = ", ".join(f"{count} {name}" for name, count in one.ways.items())
        table.add_row(*map(Text, (*_row(one, one in trade, wide), *([chosen] * ways))))
    against = _reasons([one for one in choices if one.against])
    known = [MARK, GAP] * bool(usable) + [WAYS] * ways
    notes = dict.fromkeys(note for one in usable if one.timeline for note in one.timeline.notes)
    lines = [*known, *against, *(f"note: {note}" for note in notes)]
    head = Text(_head(usable, choices, microbatches, took, time_unit))
    return render([head, *([table] if usable else []), *map(Text, lines)], width)


def _head(
    usable: Sequence[RecommendedPipeline],
    choices: Sequence[RecommendedPipeline],
    microbatches: int,
    took: str,
    time_unit: str,
) -> str:
    tried = f"{len(usable)} of {len(choices)} kinds of pipeline fit, {took}"
    if not usable or usable[0].timeline is None:
        return f"{microbatches} microbatches: no pipeline can be used; {tried}"
    best = usable[0]
    per_sample = best.timeline.time_per_sample if best.timeline else 0.0
    copies = "" if best.copies == "1" else f" with {best.copies} copies of stages"
    batch = f"{best.makespan:.6g}{time_unit and f' {time_unit}'} per batch"
    rate = samples_per_second(per_sample, time_unit)
    return f"{microbatches} microbatches: {best.schedule}{copies} is the fastest, {batch}{rate}; {tried}"


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
        str(one.devices),
        figure(timeline.makespan),
        *([figure(timeline.time_per_sample)] if wide else []),
        gap_cell(timeline.makespan, plan.bound),
        f"{idle:.1%}",
        amount(timeline.peak_memory[fullest]),
        memory_share(timeline, fullest),
        *((timeline.devices[fullest], bar(1 - idle)) if wide else ()),
    ]


def _reasons(unusable: Sequence[RecommendedPipeline]) -> list[str]:
    """Return a line for each reason, with the pipelines that it is about and the numbers of their copies."""
    about: dict[str, dict[str, list[str]]] = {}
    for one in unusable:
        title = f"{one.schedule}{' with alternatives' if one.recipe.ways else ''}"
        about.setdefault(one.against, {}).setdefault(title, [title]).append(f"x{one.spread}")
    return [
        f"not used ({why}): {', '.join(' '.join(names[title]) for title in sorted(names))}"
        for why, names in about.items()
    ]
