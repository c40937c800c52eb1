"""Holding a method to its word: its value, the rules, the shape of its plan, its bound."""

from __future__ import annotations

import math

from partitioner.devices import Devices
from partitioner.errors import ContradictionError, InfeasibleError, NoPlanFound
from partitioner.evaluate import Evaluation
from partitioner.graph import Graph
from partitioner.methods.explain import why_infeasible
from partitioner.methods.method import Outcome
from partitioner.preprocess.problem import Problem

TOLERANCE = 1e-9


def confirm(evaluation: Evaluation, outcome: Outcome, devices: Devices) -> None:
    """Compare what a method claims of its plan with what the evaluator finds.

    Raises
    ------
    ContradictionError
        If the evaluator sees it differently.
    """
    if not math.isclose(evaluation.value, outcome.value, rel_tol=TOLERANCE, abs_tol=1e-300):
        claim = f"the method claims {outcome.value!r}, the evaluator finds {evaluation.value!r}"
        raise ContradictionError(claim)
    if evaluation.violations:
        raise ContradictionError("the method's plan breaks a rule: " + evaluation.violations[0])
    if not _has_shape(evaluation, outcome.problem, devices):
        split = outcome.problem.split
        raise ContradictionError(f"the method's plan is {evaluation.shape.name}, not {split}")
    if outcome.bound > evaluation.value * (1 + TOLERANCE):
        raise ContradictionError(f"the bound {outcome.bound!r} exceeds the value {evaluation.value!r}")


def _has_shape(evaluation: Evaluation, problem: Problem, devices: Devices) -> bool:
    shape = evaluation.shape
    if problem.split != "convex":
        return problem.split == "free" or shape.name == "chain"
    torn = {*shape.torn_forward, *(shape.torn_backward if len(problem.regions) > 1 else ())}
    bound = zip(devices.kinds, problem.contiguous.tolist(), strict=True)
    kinds = {kind.name for kind, contiguous in bound if contiguous}
    return not any(load.name in torn and load.kind in kinds for load in evaluation.loads)


def no_plan(graph: Graph, devices: Devices, outcome: Outcome) -> BaseException:
    """What to raise when a method found nothing."""
    if outcome.stop_reason == "interrupted":
        return KeyboardInterrupt()
    if outcome.infeasible:
        return InfeasibleError(why_infeasible(graph, devices))
    notes = "".join(f"; {note}" for note in outcome.notes)
    return NoPlanFound(f"no plan found ({outcome.stop_reason}){notes}")
