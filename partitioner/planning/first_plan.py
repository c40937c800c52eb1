"""A first plan, which needs neither compiled code nor a solver."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from partitioner.base.clock import Clock
from partitioner.evaluation.result import Evaluation
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.pipeline_loads import least_value
from partitioner.methods.expand import Placement, expand, expand_subgraphs
from partitioner.methods.first_plan.candidates import candidates
from partitioner.methods.latency.path import longest_path
from partitioner.methods.method import Outcome, Part, meets
from partitioner.planning.request import Request
from partitioner.planning.verify import misshapen
from partitioner.planning.warm_start import subgraphs_of
from partitioner.problem.arrays import Ints
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.problem.variants import AlternativesProblem, OperatorNodes, PipelineProblem, SampleProblem
from partitioner.workload.graph import NodeId

NUMPY = "numpy"  # what made the plan where the method had no solver at work
SECONDS = 0.3  # for evaluating candidates, once there is a plan
WHY = {"time_limit": "the time limit was reached", "out_of_memory": "the process ran out of memory"}
LARGE = 5000  # supernodes for which the relaxation takes too long


@dataclass(frozen=True, eq=False)
class FirstPlan:
    """A plan that obeys every rule, according to the evaluator.

    Parameters
    ----------
    outcome
        As of a method; its value is the evaluator's.
    placement, subgraphs, evaluation
        The same for the user's nodes, and what the evaluator says of it.
    seconds
        What the evaluation took.
    """

    outcome: Outcome
    placement: Placement
    subgraphs: Mapping[NodeId, int] | None
    evaluation: Evaluation
    seconds: float = 0.0

    def in_place_of(self, outcome: Outcome) -> Outcome:
        """Return the plan as the outcome of a run that was ended early without a better one."""
        bound = max(outcome.bound if np.isfinite(outcome.bound) else 0.0, lower_bound(outcome.problem))
        value = self.outcome.value
        proven = meets(bound, value)
        why = WHY.get(outcome.stop_reason, "the run was interrupted")
        note = f"{why} before a better plan was found than the first one, which is made in a single pass"
        return replace(
            self.outcome,
            bound=value if proven else min(bound, value),
            stop_reason="optimal" if proven else outcome.stop_reason,
            notes=outcome.notes if proven else (*outcome.notes, note),
            statistics=outcome.statistics,
            native_status=outcome.native_status,
            backend=outcome.backend or NUMPY,
        )


def find_first_plan(
    request: Request, problem: Problem, incumbent: Sequence[Part] | None = None, subgraph: Ints | None = None
) -> FirstPlan | None:
    """Return the best of some quick candidates and of the warm start.

    Parameters
    ----------
    request, problem
        What is asked for.
    incumbent, subgraph
        Parts to start from, see :class:`partitioner.methods.method.Settings`.

    Returns
    -------
    FirstPlan or None
        None if the evaluator lets none of them pass, or devices have several stages.
    """
    if request.regime.has_virtual_stages:
        return None
    clock, best = Clock(SECONDS), _given(request, problem, incumbent, subgraph)
    exact = problem.measure not in (Measure.ONE_SAMPLE, Measure.LAST_OPERATOR, Measure.OTHER)
    for outcome in candidates(problem):
        found = _evaluated(request, problem, outcome)
        if found is not None and (best is None or found.outcome.value < best.outcome.value):
            best = found
        if found is not None and (exact or clock.expired):
            break
    return best


def evaluation_of(
    request: Request, placement: Placement, subgraphs: Mapping[NodeId, int] | None, known: FirstPlan | None
) -> Evaluation:
    """Return the evaluation of a placement; that of the first plan is not computed again."""
    if known is not None and (known.placement, known.subgraphs) == (placement, subgraphs):
        return known.evaluation
    return request.evaluated(placement, subgraphs)


def _given(
    request: Request, problem: Problem, incumbent: Sequence[Part] | None, subgraph: Ints | None
) -> FirstPlan | None:
    if incumbent is None:
        return None
    order = np.arange(problem.n) if problem.measure is Measure.LAST_OPERATOR else None
    given = Outcome(problem, incumbent, np.inf, 0.0, "heuristic", subgraph=subgraph, order=order)
    return _evaluated(request, problem, given)


def _evaluated(request: Request, problem: Problem, outcome: Outcome) -> FirstPlan | None:
    """Return the evaluation of a candidate; None if it breaks a rule."""
    graph, devices = request.graph, request.devices
    placement = expand(graph, devices, outcome)
    if placement is None or len(set(placement.order)) < len(placement.order):
        return None
    began = time.perf_counter()
    evaluation = request.evaluated(placement, expand_subgraphs(graph, outcome))
    seconds = time.perf_counter() - began
    sound = evaluation.feasible and np.isfinite(evaluation.value)
    if not sound or misshapen(evaluation, outcome.problem, devices):
        return None
    subgraph = (
        subgraphs_of(problem, graph, evaluation.schedule) if problem.measure is Measure.ONE_SAMPLE else None
    )
    outcome = replace(outcome, value=evaluation.value, subgraph=subgraph)
    return FirstPlan(outcome, placement, expand_subgraphs(graph, outcome), evaluation, seconds)


def lower_bound(problem: Problem) -> float:
    """Return a lower bound that takes little time to compute; 0 if there is none."""
    if problem.measure is Measure.OTHER or isinstance(problem, AlternativesProblem):
        return 0.0
    if problem.n > LARGE:
        return longest_path(problem) if isinstance(problem, OperatorNodes) else 0.0
    relaxation = relax(problem)
    if isinstance(problem, SampleProblem):
        return longest_path(problem)
    if isinstance(problem, OperatorNodes):
        return max(relaxation.bound, longest_path(problem))
    return least_value(problem, relaxation) if isinstance(problem, PipelineProblem) else relaxation.bound
