"""The exact dynamic program over ideals for pipelines with replicas, schedules, limits and batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.dp.exact import lattice_within, too_many
from partitioner.methods.dp.linear import LinearSearch, Model, best_linear
from partitioner.methods.dp.search import Bracket
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.methods.pipeline.batch import BatchBracket
from partitioner.methods.pipeline.ground import PipelineGround
from partitioner.methods.pipeline.levels.ground import LevelsGround, group_bytes
from partitioner.methods.pipeline.loads import least_value, pipeline_of, pipeline_value
from partitioner.methods.pipeline.model import least_memory
from partitioner.methods.pipeline.states import state_bytes
from partitioner.methods.pipeline.turned import turned, turned_stages
from partitioner.methods.relaxation import relax
from partitioner.preprocess.ideals import Lattice
from partitioner.preprocess.problem import Problem

NEAR = 1.15
MERGED = "free nodes were merged, perhaps at a loss, to keep the ideals few"


def solve_pipeline(problem: Problem, settings: Settings) -> Outcome:
    """Method ``pipeline``: the best pipeline, proven, where the ideals fit the memory budget.

    Elsewhere it is the best one over linear orders, with a bound that holds for every pipeline.
    """
    end_first, model = turned(problem), model_for(problem)
    relaxation = relax(replace(end_first, relaxed_size=least_memory(end_first)))
    if np.isinf(relaxation.bound):
        return no_split(problem)
    linear = best_linear(end_first, relaxation, replace(settings, incumbent=None), model)
    if linear.closed or settings.expired:
        return _turned_back(problem, linear.outcome())
    lattice = lattice_within(end_first, settings, model)
    if lattice is not None:
        return _turned_back(problem, _search(linear, lattice))
    if problem.coarser is not None:
        coarse = solve_pipeline(problem.coarser, replace(settings, incumbent=None))
        if coarse.value < linear.value:
            return _without_proof(coarse, linear.bound, settings)
    return _turned_back(problem, linear.outcome(too_many(end_first, settings, model)))


def model_for(problem: Problem) -> Model:
    """What pipelines are judged by, by the objective."""
    levels = len(pipeline_of(problem).slowdown) > 0
    return Model(
        ground=LevelsGround if levels else PipelineGround,
        bracket=BatchBracket if problem.objective == "batch" else Bracket,
        value=pipeline_value,
        bound=least_value,
        state_bytes=group_bytes if levels else state_bytes,
    )


def _search(linear: LinearSearch, lattice: Lattice) -> Outcome:
    """The best pipeline of the lattice of all ideals, from the best linear one on."""
    problem, model, settings = linear.problem, linear.model, linear.settings
    ground = model.ground(problem, linear.relaxation, lattice)
    bracket = model.bracket(ground, settings, linear.bound, linear.value)
    bracket.narrow(from_top=np.isfinite(linear.value) and linear.value > NEAR * linear.bound)
    stages = bracket.stages or linear.stages
    cut = not bracket.complete and bracket.steps > settings.step_limit
    note = f"the exact search was stopped after {bracket.steps:,} steps, its limit"
    return Outcome(
        problem,
        stages,
        bracket.value,
        min(bracket.bound, bracket.value),
        settings.ended(bracket.bound, bracket.value),
        infeasible=bracket.complete and stages is None,
        notes=(note,) if cut else (),
        statistics={
            "ideals": lattice.size,
            "steps": bracket.steps,
            "table_bytes": lattice.nbytes + lattice.size * model.state_bytes(problem),
            "orders": linear.orders,
            "linear_value": linear.value,
        },
    )


def _turned_back(problem: Problem, outcome: Outcome) -> Outcome:
    """What was found for the turned problem, as an outcome of the problem."""
    parts = None if outcome.parts is None else turned_stages(outcome.parts, problem.n)
    return replace(outcome, problem=problem, parts=parts)


def _without_proof(coarse: Outcome, bound: float, settings: Settings) -> Outcome:
    """What was found where free nodes are merged, with the bound of the problem in which they are not."""
    bound = min(bound, coarse.value)
    return replace(
        coarse,
        bound=bound,
        stop_reason=settings.ended(bound, coarse.value),
        notes=(*coarse.notes, MERGED),
    )
