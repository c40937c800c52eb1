"""The comparison of what a method claims with its evaluation: value, rules, shape of the plan, bound."""

from __future__ import annotations

import math
from collections.abc import Callable

from partitioner.base.errors import ContradictionError, InfeasibleError, NoPlanFound
from partitioner.evaluation.result import Evaluation
from partitioner.methods.explain import why_infeasible
from partitioner.methods.method import Outcome
from partitioner.problem.problem import Problem
from partitioner.problem.variants import AlternativesProblem, PartsProblem, SampleProblem
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph

TOLERANCE = 1e-9
OWN_FIGURES = "; this method uses the nodes' own figures, none of their alternatives"


def confirm(evaluation: Evaluation, outcome: Outcome, devices: Devices) -> None:
    """Compare the value that a method claims for its plan with its evaluation.

    Raises
    ------
    ContradictionError
        If they differ, or the plan breaks a rule.
    """
    if not math.isclose(evaluation.value, outcome.value, rel_tol=TOLERANCE, abs_tol=1e-300):
        claim = f"the method claims {outcome.value!r}, the evaluator finds {evaluation.value!r}"
        raise ContradictionError(claim)
    if evaluation.violations:
        raise ContradictionError("the method's plan breaks a rule: " + evaluation.violations[0])
    form = misshapen(evaluation, outcome.problem, devices)
    if form:
        raise ContradictionError(f"the method's plan is {form}")
    if outcome.bound > evaluation.value * (1 + TOLERANCE):
        raise ContradictionError(f"the bound {outcome.bound!r} exceeds the value {evaluation.value!r}")


def misshapen(evaluation: Evaluation, problem: Problem, devices: Devices) -> str:
    """Return in which way the placement has another shape than requested; empty if it has that shape."""
    shape = evaluation.shape
    if isinstance(problem, SampleProblem):
        return ""  # its subgraphs are judged with the rules
    if not isinstance(problem, PartsProblem) or not problem.regions:
        shaped = shape.is_chain or not problem.ordered
        return "" if shaped else f"{shape.name}, not {problem.split}"
    torn = {*shape.torn_forward, *(shape.torn_backward if len(problem.regions) > 1 else ())}
    bound = zip(devices.kinds, problem.contiguous.tolist(), strict=True)
    kinds = {kind.name for kind, contiguous in bound if contiguous}
    names = [load.name for load in evaluation.loads if load.name in torn and load.kind in kinds]
    return f"not convex: what {names[0]} holds is not contiguous" if names else ""


def no_plan(
    graph: Graph,
    devices: Devices,
    outcome: Outcome,
    conflicting_constraints: Callable[[], tuple[str, ...]] = tuple,
    by_keyboard: bool = True,
) -> BaseException:
    """Return the error to raise if a method found no plan.

    Parameters
    ----------
    graph, devices
        The workload, fitted to the devices.
    outcome
        Of the method.
    conflicting_constraints
        Called if it is proven that there is no plan: finds demands without one of which there is.
    by_keyboard
        Whether it was Ctrl-C that interrupted the run, if it was interrupted.
    """
    if outcome.stop_reason == "interrupted" and by_keyboard:
        return KeyboardInterrupt()
    if outcome.infeasible:
        why = why_infeasible(graph, devices, outcome.problem, conflicting_constraints())
        unused = bool(graph.alternatives) and not isinstance(outcome.problem, AlternativesProblem)
        return InfeasibleError(why + (OWN_FIGURES if unused else ""))
    notes = "".join(f"; {note}" for note in outcome.notes)
    return NoPlanFound(f"no plan found ({outcome.stop_reason}){notes}")
