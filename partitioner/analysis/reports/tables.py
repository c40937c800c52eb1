"""The texts and tables of a report, as plain texts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import partitioner
from partitioner.analysis.plots.loads import bounds_loads
from partitioner.analysis.reports.parts import PlanPart
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.names import ranges
from partitioner.evaluation.text.tables import fullness, percentage, unit_of
from partitioner.evaluation.time_parts import parts_in_words
from partitioner.planning.verify import TOLERANCE
from partitioner.results.plan import Plan
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload

TEXTS = ("part", "devices", "layers")  # columns that hold no figures
NAMES = 100  # characters of the names of layers
SHOWN = 120  # characters of an option's value


def tiles(plan: Plan, loads: Sequence[DeviceLoad]) -> list[tuple[str, str, str]]:
    """Return the most important figures: a title, the figure, and what it is."""
    by_operator = plan.execution_order is not None
    known = "" if plan.maximised else plan.time_unit
    unit = f"{known}{unit_of(plan.objective, pipelined=not by_operator)}".strip()
    used = sum(load.nodes > 0 or load.replica_of is not None for load in loads)
    bounded = "upper bound" if plan.maximised else "lower bound"
    found = [
        (plan.objective, figure(plan.value), unit),
        (bounded, figure(plan.bound), f"{plan.status}, gap {plan.gap:.2%}"),
        ("devices", f"{used}", f"of {len(loads)}"),
    ]
    limited = [load for load in loads if load.memory_limit]
    if limited:
        fullest = max(limited, key=lambda load: load.memory / (load.memory_limit or 1.0))
        of = f"of {amount(fullest.memory_limit or 0.0)}B on {fullest.name}"
        found.append(("fullest memory", f"{amount(fullest.memory)}B", of))
    return found


def verdict(plan: Plan, evaluation: Evaluation, makespan: float | None) -> str:
    """Return what the evaluator says of the plan when the report is made.

    The value of a plan for the makespan of a pipeline is compared with `makespan`, that of its simulation;
    None if another schedule, or none, is simulated.
    """
    value = evaluation.value if evaluation.objective == plan.objective else makespan
    if evaluation.violations:
        return f"Evaluated for this report: the plan breaks a rule: {evaluation.violations[0]}."
    if value is None:
        return "Evaluated for this report: no rule is broken."
    if math.isclose(plan.value, value, rel_tol=TOLERANCE, abs_tol=1e-300):
        return f"Evaluated for this report: {value:.6g}, as the plan says, and no rule is broken."
    return f"Evaluated for this report: {value:.6g}, which is not the value of the plan, {plan.value:.6g}."


def network_text(graph: Graph, most: int) -> str:
    """Return how to read the picture of the network, or why there is none."""
    if len(graph) > most:
        return f"The network is not drawn: it has {len(graph):,} nodes, a picture at most {most:,}."
    shapes = "Boxes are forward nodes, ellipses backward nodes. " if graph.backward.any() else ""
    return (
        f"{shapes}Strong lines are tensors between two parts. A long network goes on in the next line, every "
        "second line from right to left. The wheel zooms, dragging moves the picture."
    )


def loads_text(plan: Plan) -> str:
    """Return a sentence on the bound in the picture of loads, or why there is none."""
    if bounds_loads(plan):
        line = f"The dashed line is the lower bound {figure(plan.bound)}"
        return f"{line}: no plan of this split has a smaller largest load."
    return f"The plan is for {plan.objective}, which is not the largest load: no bound is drawn."


def part_rows(
    parts: Sequence[PlanPart], bubbles: Mapping[str, float]
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the titles of the columns of the table of parts, and for each part its colour and its cells.

    `bubbles` has the fraction of time in which a device is idle, for those in a simulated schedule. Columns
    in which no part has a text are left out.
    """
    largest = max((part.load.load for part in parts), default=0.0) or 1.0
    rows = [
        {
            "part": part.title,
            "devices": ", ".join(ranges(part.devices)) if part.devices != (part.title,) else "",
            "layers": _short(ranges(part.layers)),
            "nodes": str(part.nodes),
            "load": figure(part.load.load),
            "load %": percentage(part.load.load / largest),
            "memory": f"{amount(part.load.memory)}B",
            "full": fullness(part.load),
            "bubble": percentage(bubbles[part.devices[0]]) if part.devices[0] in bubbles else "",
        }
        for part in parts
    ]
    titles = [title for title in rows[0] if any(row[title] for row in rows)]
    cells = [[row[title] for title in titles] for row in rows]
    return titles, list(zip([part.colour for part in parts], cells, strict=True))


def facts(workload: Workload, plan: Plan) -> list[tuple[str, str]]:
    """Return the run, the options and the hashes of a plan, by title."""
    graph = workload.graph
    made = {"value": f"{plan.value:.6g}: {parts_in_words(plan.parts)}"} if plan.parts else {}
    options = {f"option {name}": _text(value) for name, value in plan.options.items()}
    statistics = {name.replace("_", " "): f"{value:.6g}" for name, value in plan.statistics.items()}
    return [
        *{
            "workload": f"{workload.name}: {len(graph)} nodes, {len(graph.edges)} edges",
            "devices": repr(workload.devices).strip("<>").removeprefix("Devices: "),
            "objective, split": f"{plan.objective}, {plan.split}",
            **made,
            "method": f"{plan.method} ({plan.backend})",
            "stopped": f"{plan.stop_reason} after {plan.runtime_seconds:.3g} s",
            "seed": str(plan.seed),
            **options,
            **statistics,
            "SHA-256 of the workload": plan.workload_sha256,
            "SHA-256 of the plan": hashlib.sha256(plan.to_json().encode()).hexdigest(),
            "partitioner": partitioner.__version__,
        }.items()
    ]


def _short(names: Sequence[str]) -> str:
    """Return all names, or the first and the last one if they are too long together."""
    text = ", ".join(names)
    return text if len(text) <= NAMES else f"{names[0]} ... {names[-1]}"


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."
