"""The exact dynamic program for pipelines with replicas, schedules, limits and batches (paper, Appendix H).

The least largest load of stages that hold ideal J on the devices of state s + r of kind k is

    value[J, s + r of k] = min over I in J of max(value[I, s], load(J - I, k, r))

    load(S, k, r) = work(S, k) / r + (r - 1) / r * (weights(S) + r message(k)) / bandwidth(k)

where `message` is what is sent in the latency of a message (0 without weights). The exchange of weights is a
maximum with the work if the two run at the same time, and a batch adds up loads. Three nodes in a row take
2, 8 and 2; with four devices, stages of at most two and no weights, the stages {2} of load 2, {8} on two
devices of load 4 and {2} of load 2 are best: value 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.bracket import TableBracket
from partitioner.methods.dp.forms import Turned, refined_stages, turned, turned_stages, without_levels
from partitioner.methods.dp.improvement import ChainImprovement
from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.dp.levels import LevelsTables, group_bytes
from partitioner.methods.dp.linear import ChainModel, LinearSearch, best_linear, lattice_within, too_many
from partitioner.methods.dp.pipeline_loads import least_value, pipeline_value
from partitioner.methods.dp.pipeline_tables import (
    BatchBracket,
    GroupTables,
    LowerBatchBracket,
    LowerGroupTables,
    PipelineTables,
    group_state_bytes,
    is_exact,
    state_bytes,
)
from partitioner.methods.dp.sparse import SparseBracket, ThoroughSparseBracket
from partitioner.methods.dp.sparse_tables import (
    LowerSparseTables,
    SparseTables,
    can_do_without,
    has_many_states,
    ideal_bytes,
)
from partitioner.methods.dp.stages import behind_matters, relax_memory
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, Settings, meets, no_split
from partitioner.problem.measure import Measure
from partitioner.problem.variants import PipelineProblem

EQUAL_LINKS = "the lower bound assumes that all links are as fast as inside the smallest groups of devices"
OVER_LEVELS = "the lower bound is the largest value that the search over levels of devices refuted"
MERGED = "free nodes were merged, which keeps the ideals few but may lose the optimum"


@dataclass(frozen=True)
class PipelineEffort:
    """How the steps of the method share the time.

    Parameters
    ----------
    near
        A value within this factor of the bound lets thresholds rise from the bound, else the first one is
        just below the value.
    flat_share
        The share of the time left for the problem on equal links, and for a first pipeline of a batch.
    orders_saved
        The divisor of the number of linear orders over levels, where each takes longer.
    """

    near: float = 1.15
    flat_share: float = 0.3
    orders_saved: int = 4


EFFORT = PipelineEffort()


def best_pipeline(
    problem: PipelineProblem, settings: Settings, goes_on: bool = True, known: float = 0.0
) -> Outcome:
    """Return the best pipeline by the dynamic program if the ideals fit in memory.

    Else the result is the best pipeline over linear orders, whose borders are moved
    (:mod:`partitioner.methods.dp.improvement`), with a bound that holds for every pipeline. The problem with
    all free nodes merged is solved first, as its ideals are few: often its best pipeline meets the bound that
    holds without the merging.

    Parameters
    ----------
    problem, settings
        The problem, whose links are equal or whose tables price them, and the settings of the run.
    goes_on
        Whether pipelines are improved until the time limit where the ideals do not fit.
    known
        A lower bound on the value.
    """
    if problem.coarser is None:
        return _solved(problem, settings, goes_on, known)
    coarse = best_pipeline(problem.coarser, replace(settings, incumbent=None), False, known)
    if coarse.infeasible or coarse.stop_reason != "heuristic":
        return replace(coarse, notes=(*coarse.notes, MERGED)) if coarse.stop_reason != "optimal" else coarse
    starts = [settings.incumbent, None if coarse.parts is None else refined_stages(coarse, problem)]
    given = [start for start in starts if start is not None]
    start = min(given, key=lambda parts: pipeline_value(problem, parts), default=None)
    fine = _solved(problem, replace(settings, incumbent=start), goes_on, known)
    bound = min(max(coarse.bound, fine.bound), fine.value)
    if fine.stop_reason == "heuristic":
        fine = replace(fine, stop_reason=settings.ended(bound, fine.value))
    wide = [each.statistics[ANY_DEVICES] for each in (coarse, fine) if ANY_DEVICES in each.statistics]
    figures = {**fine.statistics, ANY_DEVICES: max(wide)} if wide else fine.statistics
    return replace(fine, bound=bound, statistics=figures)


def _solved(problem: PipelineProblem, settings: Settings, goes_on: bool, known: float) -> Outcome:
    """Return the best pipeline of the given problem, which is turned if memory depends on devices behind."""
    if not behind_matters(problem):
        return _walked(problem, settings, goes_on, known)
    start = None if settings.incumbent is None else turned_stages(settings.incumbent, problem.n)
    form = Turned(problem, turned(problem))
    return form.outcome(_walked(form.problem, replace(settings, incumbent=start), goes_on, known))


def _walked(problem: PipelineProblem, settings: Settings, goes_on: bool, known: float) -> Outcome:
    """Return the best pipeline over linear orders and then over all ideals."""
    model = model_for(problem, known)
    relaxation = relax_memory(problem)
    if np.isinf(relaxation.bound):
        return no_split(problem)
    if problem.measure is Measure.BATCH:
        settings = _with_start(problem, relaxation, settings)
    linear = best_linear(problem, relaxation, _with_orders(problem, settings), model)
    if linear.closed or settings.expired:
        return _from_orders(linear)
    lattice = lattice_within(problem, settings, model)
    if lattice is None:
        note = too_many(problem, settings, model)
        if goes_on:
            ChainImprovement(linear).run_on()
        return _from_orders(linear, note)
    return _search(linear, lattice)


def _with_start(problem: PipelineProblem, relaxation: Relaxation, settings: Settings) -> Settings:
    """Return the settings with a pipeline of small largest load as incumbent, unless theirs is better."""
    largest = replace(problem, measure=Measure.LARGEST_LOAD)
    model = model_for(largest)
    if not model.large:
        return settings
    left = settings.seconds_left
    early = settings if left is None else settings.within(EFFORT.flat_share * left)
    found = best_linear(largest, relaxation, replace(early, incumbent=None), model).stages
    starts = [stages for stages in (settings.incumbent, found) if stages is not None]
    best = min(starts, key=lambda stages: pipeline_value(problem, stages), default=None)
    return replace(settings, incumbent=best)


def _from_orders(linear: LinearSearch[PipelineProblem], note: str = "") -> Outcome:
    """Return the best pipeline of the linear orders; `note` says why no others were searched."""
    outcome = linear.outcome(note)
    more = () if linear.closed else _gap_notes(linear.problem, outcome.value, outcome.bound, outcome.bound)
    return replace(outcome, notes=(*outcome.notes, *more))


def _with_orders(problem: PipelineProblem, settings: Settings) -> Settings:
    """Return the settings, with fewer linear orders if devices are in levels, as each takes longer."""
    levels = len(problem.pipeline.slowdown) > 0
    return replace(settings, orders=-(-settings.orders // EFFORT.orders_saved)) if levels else settings


def model_for(problem: PipelineProblem, known: float = 0.0) -> ChainModel[PipelineProblem]:
    """Return the cost model and search of pipelines for the problem's measure, levels and groups."""
    levels, groups = len(problem.pipeline.slowdown) > 0, len(problem.pipeline.link) > 0
    least = partial(_least_value, known)
    listed = can_do_without(problem)
    if listed and has_many_states(problem):
        return ChainModel(SparseTables, SparseBracket, pipeline_value, least, ideal_bytes, True, True)
    return ChainModel(
        tables=LevelsTables if levels else GroupTables if groups else PipelineTables,
        bracket=BatchBracket if problem.measure is Measure.BATCH else TableBracket,
        value=pipeline_value,
        bound=least,
        state_bytes=group_bytes if levels else group_state_bytes if groups else state_bytes,
        listed=listed,
    )


def _least_value(known: float, problem: PipelineProblem, relaxation: Relaxation) -> float:
    return max(known, least_value(problem, relaxation))


def bound_without_levels(linear: LinearSearch[PipelineProblem], lattice: Lattice) -> float:
    """Return a lower bound on every pipeline's value, as if all links were as fast as inside a group."""
    flat = without_levels(linear.problem.relaxed())
    model = model_for(flat)
    tables = model.tables(flat, linear.relaxation, lattice)
    bracket = model.bracket(tables, linear.settings, linear.bound, linear.value)
    bracket.narrow()
    return bracket.bound


def _search(linear: LinearSearch[PipelineProblem], lattice: Lattice) -> Outcome:
    """Return the best pipeline of the lattice of all ideals, with the best linear one as incumbent."""
    problem, settings = linear.problem, linear.settings
    model, skipped = linear.model, len(problem.pipeline.link) > 0 and not is_exact(problem, lattice)
    if model.large or (skipped and model.listed):
        model = linear.model = replace(model, tables=SparseTables, bracket=ThoroughSparseBracket)
    tables = model.tables(problem, linear.relaxation, lattice)
    low = linear.bound
    if len(problem.pipeline.slowdown):
        low = max(low, bound_without_levels(linear, lattice))
    bracket = model.bracket(tables, settings, low, linear.value)
    far = np.isfinite(linear.value) and linear.value > EFFORT.near * linear.bound
    bracket.narrow(from_top=far and low == linear.bound)
    stages, value = bracket.stages or linear.stages, bracket.value
    bound, infeasible = bracket.bound, bracket.complete and stages is None
    if skipped:
        stages, value, bound = _bracket_below(linear, lattice, stages, value)
        infeasible = infeasible and (problem.lossless or bool(np.isinf(bound)))
    elif not problem.lossless:
        tables = model.tables(problem.relaxed(), linear.relaxation, lattice)
        below = model.bracket(tables, settings, linear.bound, bracket.value)
        below.narrow(from_top=np.isfinite(bracket.value))
        bound, infeasible = below.bound, infeasible and np.isinf(below.bound)
    cut = not bracket.complete and bracket.steps > settings.step_limit
    note = f"the exact search was stopped by its limit after {bracket.steps:,} steps"
    more = () if bracket.complete else _gap_notes(problem, value, bound, low)
    return Outcome(
        problem,
        stages,
        value,
        min(bound, value),
        settings.ended(bound, value),
        infeasible=infeasible,
        notes=(note, *more) if cut else more,
        statistics={
            "ideals": lattice.size,
            "steps": bracket.steps,
            "table_bytes": lattice.nbytes + lattice.size * model.state_bytes(problem),
            "orders": linear.orders,
            "linear_value": linear.value,
            **({ANY_DEVICES: low} if len(problem.pipeline.slowdown) else {}),
        },
    )


def _bracket_below(
    linear: LinearSearch[PipelineProblem], lattice: Lattice, stages: Sequence[Part] | None, value: float
) -> tuple[Sequence[Part] | None, float, float]:
    """Return the best pipeline known, its value, and a lower bound on all pipelines of the lattice.

    Parameters
    ----------
    linear, lattice
        The problem with its bound, and the lattice of its ideals.
    stages, value
        The best pipeline so far.
    """
    problem = linear.problem
    lower = LowerSparseTables if linear.model.listed else LowerGroupTables
    model = linear.model
    if problem.measure is Measure.BATCH:
        model = replace(model, bracket=LowerBatchBracket)
    tables = lower(problem.relaxed(), linear.relaxation, lattice)
    below = model.bracket(tables, linear.settings, linear.bound, value)
    below.narrow(from_top=np.isfinite(value))
    if below.stages is not None and problem.lossless:
        found = pipeline_value(problem, below.stages)
        if found < value:
            stages, value = below.stages, found
    return stages, value, min(below.bound, value)


def _gap_notes(problem: PipelineProblem, value: float, bound: float, equal: float) -> tuple[str, ...]:
    """Return a note on the bound if it leaves a gap and devices are in levels.

    Parameters
    ----------
    problem, value, bound
        The problem, the value of its best pipeline and the bound.
    equal
        The bound on equal links, from before the search over levels.
    """
    if not len(problem.pipeline.slowdown) or meets(bound, value):
        return ()
    return (OVER_LEVELS if bound > equal else EQUAL_LINKS,)
