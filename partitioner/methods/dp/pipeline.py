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

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.methods.dp.bracket import ChainSearch, TableBracket
from partitioner.methods.dp.forms import Form, Turned
from partitioner.methods.dp.improvement import ChainImprovement
from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.dp.levels import LevelsTables, group_bytes
from partitioner.methods.dp.linear import ChainModel, LinearSearch, best_linear, lattice_within, too_many
from partitioner.methods.dp.pipeline_loads import best_of, least_value, pipeline_value
from partitioner.methods.dp.pipeline_tables import (
    BatchBracket,
    GroupTables,
    LowerBatchBracket,
    LowerGroupTables,
    PipelineTables,
    group_state_bytes,
    state_bytes,
)
from partitioner.methods.dp.sparse import SparseBracket, ThoroughSparseBracket
from partitioner.methods.dp.sparse_tables import (
    LIMITS,
    LowerSparseTables,
    SparseTables,
    ideal_bytes,
)
from partitioner.methods.method import ANY_DEVICES, Outcome, Settings, meets, no_split
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
    most_states
        A table of more states of devices, times pairs of groups, is not filled if stages can be listed.
    """

    near: float = 1.15
    flat_share: float = 0.3
    orders_saved: int = 4
    most_states: int = 20_000


EFFORT = PipelineEffort()


def best_in_form(
    form: Form[PipelineProblem], settings: Settings, goes_on: bool = True, known: float = 0.0
) -> Outcome:
    """Return the best pipeline of a form of a problem, as one of the problem.

    Parameters
    ----------
    form
        The form. Bound and proof hold for its pipelines.
    settings
        The settings of the run, whose incumbent is one of the problem as it is.
    goes_on, known
        As for :func:`best_pipeline`.
    """
    if form.problem is not form.given:
        settings = replace(settings, incumbent=None)
    found = best_pipeline(form.problem, settings, goes_on, known)
    return form.outcome(found)


def bounded(form: Form[PipelineProblem]) -> Outcome:
    """Return a lower bound on the pipelines of a form that takes no search, as one of the problem."""
    bound = least_value(form.problem, relax(form.problem))
    if np.isinf(bound):
        return no_split(form.given)
    return form.outcome(Outcome(form.problem, None, np.inf, bound, "heuristic"))


def least_value_of(problem: PipelineProblem) -> float:
    """Return a lower bound on the value of every pipeline that takes no search."""
    return least_value(problem, relax(problem.lightest))


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
    coarse = None
    if problem.coarser is not None:
        coarse = best_pipeline(problem.coarser, replace(settings, incumbent=None), False, known)
        if coarse.stop_reason == "optimal":
            return coarse
        if coarse.infeasible or coarse.stop_reason != "heuristic":
            return replace(coarse, notes=(*coarse.notes, MERGED))
        start = best_of(problem, settings.incumbent, coarse.refined(problem))
        settings = replace(settings, incumbent=start)
    fine = _solved(problem, settings, goes_on, known)
    return fine if coarse is None else _with_bound_of(coarse, fine, settings)


def _with_bound_of(coarse: Outcome, fine: Outcome, settings: Settings) -> Outcome:
    """Return the outcome of a problem with the better bound of it and of what it is contracted to."""
    bound = min(max(coarse.bound, fine.bound), fine.value)
    if fine.stop_reason == "heuristic":
        fine = replace(fine, stop_reason=settings.ended(bound, fine.value))
    wide = [each.statistics[ANY_DEVICES] for each in (coarse, fine) if ANY_DEVICES in each.statistics]
    figures = {**fine.statistics, ANY_DEVICES: max(wide)} if wide else fine.statistics
    return replace(fine, bound=bound, statistics=figures)


def _solved(problem: PipelineProblem, settings: Settings, goes_on: bool, known: float) -> Outcome:
    """Return the best pipeline of the given problem, which is turned if memory depends on devices behind."""
    if not problem.pipeline.behind_matters:
        return _walked(problem, settings, goes_on, known)
    form = Turned(problem, problem.turned())
    start = settings.incumbent and form.stages(settings.incumbent)
    return form.outcome(_walked(form.problem, replace(settings, incumbent=start), goes_on, known))


def _walked(problem: PipelineProblem, settings: Settings, goes_on: bool, known: float) -> Outcome:
    """Return the best pipeline over linear orders and then over all ideals."""
    model, relaxation = model_for(problem, known), relax(problem.lightest)
    if np.isinf(relaxation.bound):
        return no_split(problem)
    if problem.measure is Measure.BATCH:
        settings = _with_start(problem, relaxation, settings)
    linear = best_linear(problem, relaxation, settings, model)
    if linear.closed or settings.expired:
        return linear.outcome()
    lattice = lattice_within(problem, settings, model)
    if lattice is None:
        note = too_many(problem, settings, model)
        if goes_on:
            ChainImprovement(linear).run_on()
        return linear.outcome(note)
    return _search(linear, lattice)


def _with_start(problem: PipelineProblem, relaxation: Relaxation, settings: Settings) -> Settings:
    """Return the settings with a pipeline of small largest load as incumbent, unless theirs is better."""
    largest = replace(problem, measure=Measure.LARGEST_LOAD)
    model = model_for(largest)
    if not model.large:
        return settings
    early = replace(settings.for_share(EFFORT.flat_share), incumbent=None)
    found = best_linear(largest, relaxation, early, model).stages
    return replace(settings, incumbent=best_of(problem, settings.incumbent, found))


def model_for(problem: PipelineProblem, known: float = 0.0) -> ChainModel[PipelineProblem]:
    """Return the cost model and search of pipelines for the problem's measure, levels and groups."""
    levels, groups = len(problem.pipeline.slowdown) > 0, len(problem.pipeline.link) > 0
    least = partial(_least_value, known)
    listed = _can_be_listed(problem)
    if listed and has_many_states(problem):
        return ChainModel(
            SparseTables, SparseBracket, pipeline_value, least, ideal_bytes, listed=True, large=True
        )
    return ChainModel(
        tables=LevelsTables if levels else GroupTables if groups else PipelineTables,
        bracket=BatchBracket if problem.measure is Measure.BATCH else TableBracket,
        value=pipeline_value,
        bound=least,
        state_bytes=group_bytes if levels else group_state_bytes if groups else state_bytes,
        longer=EFFORT.orders_saved if levels else 1,
        loose=(EQUAL_LINKS,) if levels else (),
        listed=listed,
    )


def has_many_states(problem: PipelineProblem) -> bool:
    """Whether a table of all sets of devices, and of pairs of groups, is too large."""
    return problem.states * max(1, len(problem.pipeline.link)) ** 2 > EFFORT.most_states


def _can_be_listed(problem: PipelineProblem) -> bool:
    """Whether there is a search that lists stages, without a table of all sets of devices."""
    pipeline = problem.pipeline
    tables = len(pipeline.slowdown) > 0 or len(pipeline.link) > LIMITS.most_groups or len(pipeline.spans) > 0
    return problem.measure is not Measure.BATCH and not tables


def _least_value(known: float, problem: PipelineProblem, relaxation: Relaxation) -> float:
    return max(known, least_value(problem, relaxation))


def _search(linear: LinearSearch[PipelineProblem], lattice: Lattice) -> Outcome:
    """Return the best pipeline of the lattice of all ideals, with the best linear one as incumbent.

    Where tables hold upper bounds, or the problem is contracted at a risk, a further search raises the bound.
    """
    problem, settings, model = linear.problem, linear.settings, linear.model
    upper = len(problem.pipeline.link) > 0 and not is_exact(problem, lattice)
    if model.large or (upper and model.listed):
        model = replace(model, tables=SparseTables, bracket=ThoroughSparseBracket)
    low, value = linear.bound, linear.value
    if len(problem.pipeline.slowdown):
        flat = problem.relaxed.without_levels
        low = max(low, _narrowed(linear, lattice, model_for(flat), flat, value).bound)
    far = np.isfinite(value) and value > EFFORT.near * linear.bound and low == linear.bound
    bracket = _narrowed(linear, lattice, model, problem, value, low, from_top=bool(far))
    stages, value, bound = bracket.stages or linear.stages, bracket.value, bracket.bound
    infeasible = bracket.complete and stages is None
    if upper or not problem.lossless:
        lower, top = _lower(model, problem) if upper else model, bool(np.isfinite(value))
        below = _narrowed(linear, lattice, lower, problem.relaxed, value, from_top=top)
        infeasible = infeasible and (problem.lossless or bool(np.isinf(below.bound)))
        if upper and problem.lossless and below.stages is not None:
            found = model.value(problem, below.stages)
            stages, value = (below.stages, found) if found < value else (stages, value)
        bound = below.bound
    notes = () if bracket.complete or meets(bound, value) else model.loose
    notes = (OVER_LEVELS,) if notes and bound > low else notes
    if not bracket.complete and bracket.steps > settings.step_limit:
        notes = (f"the exact search was stopped by its limit after {bracket.steps:,} steps", *notes)
    bound = min(bound, value)
    statistics = {
        "ideals": lattice.size,
        "steps": bracket.steps,
        "table_bytes": lattice.nbytes + lattice.size * model.state_bytes(problem),
        "orders": linear.orders,
        "linear_value": linear.value,
        **({ANY_DEVICES: low} if len(problem.pipeline.slowdown) else {}),
    }
    ended = settings.ended(bound, value)
    return Outcome(problem, stages, value, bound, ended, infeasible, notes, statistics)


def _narrowed(
    linear: LinearSearch[PipelineProblem],
    lattice: Lattice,
    model: ChainModel[PipelineProblem],
    problem: PipelineProblem,
    value: float,
    low: float | None = None,
    from_top: bool = False,
) -> ChainSearch:
    """Return the search for pipelines of a lattice that are better than a value, after it has ended.

    Parameters
    ----------
    linear, lattice
        The search over linear orders, whose relaxation and bound hold for the problem, and the lattice.
    model, problem
        The tables and the search, and the problem that they are for: that of `linear` or a weaker one.
    value, low
        The value, and a lower bound; None for that of `linear`.
    from_top
        Whether the first threshold is just below the value.
    """
    tables = model.tables(problem, linear.relaxation, lattice)
    bracket = model.bracket(tables, linear.settings, linear.bound if low is None else low, value)
    bracket.narrow(from_top=from_top)
    return bracket


def _lower(model: ChainModel[PipelineProblem], problem: PipelineProblem) -> ChainModel[PipelineProblem]:
    """Return the model whose tables are lower bounds on the values of all pipelines."""
    batch = problem.measure is Measure.BATCH
    return replace(
        model,
        tables=LowerSparseTables if model.listed else LowerGroupTables,
        bracket=LowerBatchBracket if batch else model.bracket,
    )


def is_exact(problem: PipelineProblem, lattice: Lattice) -> bool:
    """Whether the values of tables are those of the pipelines, neither more nor less.

    That is so if no group has links of two sorts, if no tensor takes time to move, or if every one that does
    passes between two supernodes that follow each other in a linear lattice.
    """
    least, most = problem.pipeline.unknown_links
    pins, paid = problem.nets.pins, problem.nets.cost > 0
    if (least == most).all() or not paid.any():
        return True
    if not lattice.linear or (np.diff(pins.start)[paid] != 2).any():
        return False
    ranks = lattice.rank[pins.items[paid[pins.owners()]]].reshape(-1, 2)
    return bool((abs(np.diff(ranks, axis=1)) == 1).all())
