"""The report of a plan as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from partitioner.analysis.plots.timeline import timeline_title
from partitioner.analysis.reports.canvas import require_bokeh, stacked
from partitioner.analysis.reports.devices import loads_figure, memory_figure
from partitioner.analysis.reports.network import MOST_NODES, network_figure
from partitioner.analysis.reports.parts import PlanPart, parts_of
from partitioner.analysis.reports.scheduled import scheduled
from partitioner.analysis.reports.tables import (
    TEXTS,
    facts,
    loads_text,
    network_text,
    part_rows,
    tiles,
    verdict,
)
from partitioner.analysis.reports.timeline import runs_figure, timeline_figure
from partitioner.base.argument_types import require_items, require_type
from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.files import write_text
from partitioner.evaluation.placed import read_placement
from partitioner.evaluation.schedule import Schedule
from partitioner.planning.evaluate import evaluate
from partitioner.results.plan import Plan
from partitioner.results.rates import rates_in_words
from partitioner.schedule.simulation import LINKS
from partitioner.schedule.timeline import Timeline
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload

if TYPE_CHECKING:
    from bokeh.models import UIElement

RUNS = "The runs of one sample; those on the critical path, which ends last, have the stronger colour."


@dataclass(frozen=True)
class Report:
    """The report of a plan.

    Parameters
    ----------
    title
        What the report is of.
    html
        The file's content.
    """

    title: str
    html: str

    def __repr__(self) -> str:
        return f"<Report: {self.title}, {len(self.html):,} characters>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as an HTML file; the file holds all of it or stays as it was.

        Raises
        ------
        PartitionerError
            If the file cannot be written.
        """
        write_text(path, self.html)


def report(
    workload: Workload,
    plan: Plan,
    *,
    explanation: Sequence[str] = (),
    schedule: str | None = None,
    microbatches: int | None = None,
    links: str = LINKS[0],
) -> Report:
    """Return a report of a plan: one HTML file for any browser, which loads nothing from elsewhere.

    It shows the network in the colours of its stages, the loads against the bound, what runs when, the memory
    over time, the stages with their layers, an explanation, the options and the hashes. Loads and memory are
    those of the evaluator, which is asked once more. Colours follow the browser's light or dark scheme.

    Parameters
    ----------
    workload, plan
        The workload, and a plan for it.
    explanation
        Sentences on the plan, which the report shows as they are.
    schedule
        The schedule to simulate; by default that of the plan, else ``"1f1b"``, or ``"inference"`` for a graph
        without backward nodes. For latency and makespans of operators the report shows the plan's own
        schedule if neither `schedule` nor `microbatches` is given.
    microbatches
        The number of samples to simulate; by default that of the plan, else 16.
    links
        As for :func:`partitioner.schedule.simulate`.

    Raises
    ------
    BackendUnavailable
        If bokeh is not installed.
    WorkloadError
        If the plan is made for another graph or for other devices.
    OptionError
        If a schedule or a number of samples is given that cannot be simulated.

    Examples
    --------
    >>> import partitioner as pt
    >>> graph = pt.Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)], cost=0.5)
    >>> workload = pt.Workload(graph, pt.Devices.accelerated(2), name="two nodes")
    >>> pt.report(workload, pt.solve(graph, workload.devices)).title  # doctest: +SKIP
    'two nodes: throughput, chain split'
    """
    require_bokeh()
    require_type("workload", workload, Workload)
    require_type("plan", plan, Plan)
    sentences = [str(sentence) for sentence in require_items("explanation", explanation)]
    workload = replace(workload, graph=plan.record.trained(workload.graph))
    _check_fit(workload, plan)
    graph, devices, unit = workload.graph, workload.devices, plan.time_unit
    evaluation = evaluate(graph, devices, plan)
    placed = read_placement(graph, devices, plan.placement, alternatives=plan.alternatives)
    parts, home = parts_of(graph, plan, evaluation.loads)
    found = scheduled(workload, plan, evaluation, schedule, microbatches, links)
    figures = {"loads": loads_figure(plan, evaluation.loads), **_over_time(found, graph, parts, unit)}
    if len(graph) <= MOST_NODES:
        figures["network"] = network_figure(placed, parts, home, unit)
    title = f"{workload.name}: {plan.objective}, {plan.split} split"
    own = schedule is None and microbatches is None and links == LINKS[0]
    makespan = found.makespan if own and isinstance(found, Timeline) else None
    columns, rows = part_rows(parts, _bubbles(found))
    html = page(
        "plan.html",
        figures,
        title=title,
        headline=[*plan.headline().splitlines(), *([rates_in_words(plan.rates)] * bool(plan.rates))],
        verdict=verdict(plan, evaluation, makespan),
        tiles=tiles(plan, evaluation.loads),
        network=network_text(graph, MOST_NODES),
        bound=loads_text(plan),
        columns=columns,
        texts=TEXTS,
        rows=rows,
        schedule=_described(found),
        explanation=sentences,
        notes=list(dict.fromkeys((*plan.notes, *(found.notes if isinstance(found, Timeline) else ())))),
        facts=facts(workload, plan),
    )
    return Report(title, html)


def _check_fit(workload: Workload, plan: Plan) -> None:
    """Raise if the plan is made for another graph or for other devices."""
    plan.record.check_graph(workload.graph, workload.devices, strict=True)
    if plan.hardware is not None and plan.hardware.text != workload.devices.text:
        rule = f"must be those that the plan is made for: {plan.hardware!r}"
        raise WorkloadError([Flaw("devices", "", repr(workload.devices), rule)])


def _over_time(
    found: Timeline | Schedule | str, graph: Graph, parts: Sequence[PlanPart], unit: str
) -> dict[str, UIElement]:
    """Return the pictures of what runs when and of the memory meanwhile, as far as they are known."""
    if isinstance(found, str):
        return {}
    firsts = list(dict.fromkeys(part.devices[0] for part in parts))
    if isinstance(found, Schedule):
        return {"schedule": runs_figure(found, graph, firsts, unit)}
    timeline = timeline_figure(found, unit)
    return {"schedule": stacked(timeline, memory_figure(found, firsts, timeline.x_range, unit))}


def _bubbles(found: Timeline | Schedule | str) -> dict[str, float]:
    return dict(zip(found.devices, found.bubble.tolist(), strict=True)) if isinstance(found, Timeline) else {}


def _described(found: Timeline | Schedule | str) -> str:
    """Return a sentence on the schedule that is shown, or why none is."""
    if isinstance(found, str):
        return found
    return f"{timeline_title(found)}." if isinstance(found, Timeline) else RUNS


# The page of a report: one HTML file that loads nothing and runs no script but its own two.

if TYPE_CHECKING:
    from bokeh.models import UIElement

ASSETS = files("partitioner.analysis.reports") / "assets"
POLICY = (
    "default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def page(template: str, figures: Mapping[str, UIElement], **texts: Any) -> str:
    """Return the page of a template with its figures, by the id of the element that each is drawn in.

    All texts are escaped by the template. A policy in the page allows its two scripts, by their hashes, and
    no request; so not even markup that got into the page could run anything.
    """
    from jinja2 import Environment, FunctionLoader

    scripts = [_library(), _asset("page.js")]
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(_asset)
    )
    html: str = environment.get_template(template).render(
        policy=POLICY.format(hashes=" ".join(map(_source, scripts))),
        style=_asset("page.css"),
        scripts=scripts,
        figures=_data([_item(model, place) for place, model in figures.items()]),
        **texts,
    )
    return html


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _library() -> str:
    """Return bokeh's script."""
    from bokeh.resources import Resources

    return "\n".join(Resources(mode="inline", components=["bokeh"], log_level="error").js_raw)


def _source(script: str) -> str:
    """Return the hash of a script as a source of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _item(model: UIElement, place: str) -> Any:
    from bokeh.embed import json_item

    return json_item(model, place)


def _data(value: Sequence[Any]) -> str:
    """Return JSON that can stand in an element of a script: without ``<``, which could end it."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
