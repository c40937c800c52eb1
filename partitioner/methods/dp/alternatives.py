"""The best pipeline of stages that choose among alternatives: methods ``alternatives`` and ``piper``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.dp._alternatives_core import ChosenStage, names_of, parts_of
from partitioner.methods.dp.alternatives_batch import BatchSearch, batch_value, samples, table_bytes
from partitioner.methods.dp.alternatives_pairs import pairs_within
from partitioner.methods.dp.alternatives_search import LoadSearch, least_load
from partitioner.methods.dp.alternatives_stages import ChoiceModel, model_of
from partitioner.methods.dp.lattice import Lattice, chain_lattice, ideal_lattice
from partitioner.methods.dp.turned import turned_chain
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.problem.measure import Measure
from partitioner.problem.variants import AlternativesProblem

BYTES_AN_IDEAL, BYTES_A_LABEL = 150, 12
COVERS_PER_IDEAL = 12
TOO_MANY = "the ideals do not fit the time or the memory budget: only one order was searched"
NO_TABLE = "the sums of loads do not fit the time or the memory budget: this is the least largest load"
GREEDY = "the ways of a stage are chosen by Piper's rule, which may miss the best ones"


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of a search: value, stages, bound, whether it is complete, and its figures."""

    value: float
    stages: Sequence[ChosenStage] | None
    bound: float
    complete: bool
    note: str = ""
    ideals: int = 0
    limits: int = 0
    pairs: int = 0


def solve_alternatives(problem: AlternativesProblem, settings: Settings) -> Outcome:
    """Find the best pipeline whose nodes run in the best of their ways: method ``alternatives``.

    Stages, degrees, copies and ways are all optimal if the ideals fit in memory; else the result is the best
    pipeline of one linear order, with a bound. For batches the table of all devices and copies must fit, too.
    """
    return _solve(problem, settings, "alternatives", greedy=False)


def solve_piper(problem: AlternativesProblem, settings: Settings) -> Outcome:
    """Find the pipeline that Piper's program finds: method ``piper``.

    It is the same dynamic program, with the ways of a stage chosen by the program's rule (see
    :mod:`partitioner.methods.dp._alternatives_core`).
    """
    return _solve(problem, settings, "piper", greedy=True)


def _solve(problem: AlternativesProblem, settings: Settings, name: str, greedy: bool) -> Outcome:
    model = model_of(problem, name)
    if not problem.allowed[model.kind].all():
        return no_split(problem)
    low = least_load(model)
    if np.isinf(low):
        return no_split(problem)
    found = _searched(model, settings, low, greedy)
    if found.stages is None and found.complete:
        return no_split(problem)
    if found.stages is not None and problem.measure is Measure.BATCH:
        found = _for_batches(model, settings, found, found.stages, max(low, found.bound))
    bound = min(max(low, found.bound if not greedy else low), found.value)
    stages = found.stages
    return Outcome(
        problem,
        None if stages is None else parts_of(model, stages),
        found.value,
        bound,
        settings.ended(bound, found.value),
        notes=(found.note,) * bool(found.note) + (GREEDY,) * greedy,
        statistics={"ideals": found.ideals, "stages": found.pairs, "limits": found.limits},
        alternatives={} if stages is None else names_of(problem, stages),
    )


def _searched(model: ChoiceModel, settings: Settings, low: float, greedy: bool) -> SearchResult:
    """Return the best pipeline of a linear order, and then of all ideals."""
    order = np.arange(model.problem.n)
    linear = _search(model, chain_lattice(order), settings, low, greedy, None)
    if settings.expired or (linear.stages is not None and linear.bound <= low and linear.value <= low):
        return _only(linear, low, "")
    lattice = _ideals(model, settings)
    if lattice is None:
        return _only(linear, low, TOO_MANY)
    if lattice.linear:
        return linear
    return _search(model, lattice, settings, low, greedy, linear)


def _ideals(model: ChoiceModel, settings: Settings) -> Lattice | None:
    """Return all ideals of the turned problem; None if they do not fit the time or a part of the budget."""
    each = BYTES_AN_IDEAL + BYTES_A_LABEL * (model.devices + 1)
    most = min(settings.memory_budget // 4 // each, 2**31 // COVERS_PER_IDEAL - 1)
    turned = turned_chain(model.problem)
    return ideal_lattice(turned, most, COVERS_PER_IDEAL * most, lambda: settings.expired)


def _for_batches(
    model: ChoiceModel,
    settings: Settings,
    found: SearchResult,
    stages: Sequence[ChosenStage],
    least: float,
) -> SearchResult:
    """Return the best pipeline for batches, from the stages of the least largest load found.

    `least` is a lower bound of the largest load: each sample of a batch takes at least as long.
    """
    value, bound = batch_value(model, stages), samples(model) * least
    first = replace(found, value=value, bound=bound, complete=False)
    lattice = _ideals(model, settings)
    used = chain_lattice(np.arange(model.problem.n)) if lattice is None else lattice
    budget = settings.memory_budget // 4
    pairs = pairs_within(model, used, value / samples(model), budget, lambda: settings.expired)
    if pairs is None or table_bytes(model, used, pairs) > 2 * budget:
        return replace(first, note=NO_TABLE)
    search = BatchSearch(model, used, pairs, settings, bound, value, stages)
    complete = search.narrow(least) and lattice is not None
    return replace(
        first,
        value=search.value,
        stages=search.stages,
        bound=search.bound if lattice is not None else bound,
        complete=complete,
        note=TOO_MANY if lattice is None else "",
        limits=found.limits + search.decided,
    )


def _only(linear: SearchResult, low: float, note: str) -> SearchResult:
    """Return the result of a linear order, whose bound holds for that order only."""
    return SearchResult(
        linear.value, linear.stages, low, False, note, linear.ideals, linear.limits, linear.pairs
    )


def _search(
    model: ChoiceModel,
    lattice: Lattice,
    settings: Settings,
    low: float,
    greedy: bool,
    known: SearchResult | None,
) -> SearchResult:
    """Return the best pipeline over the ideals of a lattice; `known` is a pipeline to start from."""
    value = np.inf if known is None else known.value
    pairs = pairs_within(model, lattice, value, settings.memory_budget * 3 // 4, lambda: settings.expired)
    if pairs is None:
        note = "the stages do not fit the time or the memory budget: only one order was searched"
        nothing = SearchResult(np.inf, None, low, False)
        return _only(nothing if known is None else known, low, note)
    stages = None if known is None else known.stages
    search = LoadSearch(model, lattice, pairs, settings, greedy, low, value, stages)
    complete = search.narrow()
    limits = search.decided + (0 if known is None else known.limits)
    return SearchResult(
        search.value, search.stages, search.bound, complete, "", lattice.size, limits, len(pairs.to)
    )
