"""Plans whose stages compute themselves what depends on the inputs alone, as masks and rotary tables do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from partitioner.base.errors import NoPlanFound, OptionError
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import PlanRecord
from partitioner.planning.choice import Choice, Solve
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import SIMULATED, Objective, objective_of_record
from partitioner.planning.plan_of import Proof, plan_of
from partitioner.planning.request import Request
from partitioner.problem.measure import Measure
from partitioner.results.plan import Plan
from partitioner.schedule import simulate
from partitioner.workload.graph import Graph
from partitioner.workload.input_operators import (
    AUTO,
    COPIED,
    FIELD,
    SENT,
    has_copies,
    input_operators,
    with_shares_of_copies,
)

LOADS = (Measure.LARGEST_LOAD, Measure.LARGEST_LOAD_BY_PASS, Measure.BATCH)
WORDS = {SENT: "sent from one device", COPIED: "computed on every device that reads them"}
CHOICE = Choice(FIELD, "operators that depend on inputs alone are", WORDS, first_share=0.5)


def copies_of(graph: Graph, objective: Objective, options: Mapping[str, Any]) -> str:
    """Return how the plan of a call treats operators that depend on inputs alone; empty if it has no choice.

    Raises
    ------
    OptionError
        If the value of the objective is not made of loads of stages.
    """
    asked = options.get(FIELD)
    if asked not in (COPIED, AUTO) or has_copies(graph) or not input_operators(graph).any():
        return ""
    if objective.measure in LOADS and objective.base is None:
        return str(asked)
    rule = f"the value of objective {objective.name!r} is not made of loads"
    raise OptionError(f"{FIELD} = {asked!r}: must be {SENT!r} or None, {rule}")


def plan_with_copies(graph: Graph, request: Request, run: Solve, time_limit: float | None) -> Plan:
    """Return the plan for a graph whose stages have copies of operators that depend on inputs alone.

    It is looked for on the graph in which classes of readers share these operators, whose bound holds for
    all plans with copies; each stage of the plan then has all of those that it reads.

    Parameters
    ----------
    graph
        The graph without copies.
    request
        The request for it.
    run
        Calls `solve` with a graph in place of that of the call, and keywords that replace others.
    time_limit
        That of the call.

    Raises
    ------
    InfeasibleError, NoPlanFound
        If there is no plan, or none is found; the latter also if the plan that is found lacks memory for its
        copies.
    """
    started = time.perf_counter()
    found = run(with_shares_of_copies(graph), time_limit=time_limit, **{FIELD: None})
    options = {**found.options, FIELD: COPIED}
    record = replace(found.record, options=options)
    evaluation, bubbles = _evaluated(graph, request, record)
    if evaluation.violations:
        words = "the plan that was found lacks room for copies of operators that depend on inputs alone"
        raise NoPlanFound(f"{words}: {evaluation.violations[0]}")
    ended = request.settings.ended(found.bound, evaluation.value)
    ended = found.stop_reason if ended == "heuristic" and found.status != "optimal" else ended
    copied = replace(request, workload=replace(request.workload, graph=record.trained(graph)))
    proof = Proof(
        found.bound, ended, found.backend, found.notes, found.statistics, native_status=found.native_status
    )
    plan = plan_of(copied, found.record, evaluation, proof, bubbles)
    seconds = time.perf_counter() - started
    return replace(plan, split=found.split, method=found.method, options=options, runtime_seconds=seconds)


def _evaluated(
    graph: Graph, request: Request, record: PlanRecord
) -> tuple[Evaluation, dict[str, float] | None]:
    """Return the evaluation of a plan with copies, and the bubbles of its devices if it is simulated."""
    evaluation = evaluate(graph, request.devices, record, objective_of_record(record))
    if request.objective is not SIMULATED:
        return evaluation, None
    timeline = simulate(graph, request.devices, record)
    bubbles = dict(zip(timeline.devices, timeline.bubble.tolist(), strict=True))
    return replace(evaluation, value=timeline.makespan), bubbles
