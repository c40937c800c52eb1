"""Plans whose stages compute themselves what depends on the inputs alone, as masks and rotary tables do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import PlanRecord
from partitioner.planning.choice import Choice, Solve, bounded_by_both
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import SIMULATED, Objective, objective_of_record
from partitioner.planning.plan_of import Proof, plan_of
from partitioner.planning.request import Request
from partitioner.problem.measure import Measure
from partitioner.results.plan import Plan
from partitioner.schedule import simulate
from partitioner.workload.devices import Devices
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
SEARCHES = 3  # for stages with room for whole copies, each with less memory than the last
LEAST_SHARE = 0.1
LACKING = "no plan was found that has room for copies of operators that depend on inputs alone"
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


def note_without_copies(graph: Graph, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note if copies are asked for and no node can be copied, as where nodes are whole blocks.

    Examples
    --------
    >>> note_without_copies(Graph.from_arrays({"gpu": [1.0]}), {"input_operators": "copied"})[0][:40]
    "input_operators = 'copied' has no effect"
    """
    asked = options.get(FIELD)
    if asked not in (COPIED, AUTO) or has_copies(graph) or input_operators(graph).any():
        return ()
    rule = (
        "no node depends on inputs alone; if nodes are blocks with such operators inside, make the graph by"
    )
    return (f"{FIELD} = {asked!r} has no effect: {rule} operator (granularity = 'operator')",)


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
        If there is no plan, or none is found.
    """
    started = time.perf_counter()

    def left() -> float | None:
        """Return the seconds that are left; a last search has a tenth of the limit."""
        used = time.perf_counter() - started
        return None if time_limit is None else max(time_limit - used, LEAST_SHARE * time_limit)

    shared = with_shares_of_copies(graph)
    devices, bound, plan = request.devices, None, None
    for _ in range(SEARCHES):
        try:
            found = run(shared, devices=devices, time_limit=left(), **{FIELD: None})
        except (InfeasibleError, NoPlanFound):
            if bound is None:
                raise
            break
        bound = found.bound if bound is None else bound
        plan, lacking = _with_whole_copies(graph, request, found, bound)
        if plan is not None:
            break
        devices = _with_less_memory(devices, lacking)
    if plan is None:
        assert bound is not None
        try:
            plan = _sent(run(graph, time_limit=left(), **{FIELD: SENT}), bound)
        except InfeasibleError as error:  # of plans with copies nothing is proven
            raise NoPlanFound(f"{LACKING}, and none sends them: {error}") from error
    return replace(plan, runtime_seconds=time.perf_counter() - started)


def _with_whole_copies(
    graph: Graph, request: Request, found: Plan, bound: float
) -> tuple[Plan | None, float]:
    """Return a plan whose stages have whole copies, or None and the memory that a device lacks for them."""
    options = {**found.options, FIELD: COPIED}
    record = replace(found.record, options=options)
    evaluation, bubbles = _evaluated(graph, request, record)
    if evaluation.violations:
        return None, max(load.memory - (load.memory_limit or np.inf) for load in evaluation.loads)
    ended = request.settings.ended(bound, evaluation.value)
    ended = found.stop_reason if ended == "heuristic" and found.status != "optimal" else ended
    copied = replace(request, workload=replace(request.workload, graph=record.trained(graph)))
    proof = Proof(
        bound, ended, found.backend, found.notes, found.statistics, native_status=found.native_status
    )
    plan = plan_of(copied, found.record, evaluation, proof, bubbles)
    return replace(plan, split=found.split, method=found.method, options=options), 0.0


def _with_less_memory(devices: Devices, lacking: float) -> Devices:
    """Return the devices with less memory where it is limited, but none with less than nothing."""
    kinds = tuple(
        kind if kind.memory is None else replace(kind, memory=max(kind.memory - lacking, 0.0))
        for kind in devices.kinds
    )
    return replace(devices, kinds=kinds)


def _sent(plan: Plan, bound: float) -> Plan:
    """Return a plan without copies that stands for one with copies, with a bound for both kinds of plans."""
    note = (
        "no plan was found that has room for copies of operators that depend on inputs alone: they are sent"
    )
    return bounded_by_both(plan, bound, "heuristic", note)


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
