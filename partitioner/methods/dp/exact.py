"""The exact dynamic program (paper, Section 5.1.1), whose first incumbent is the best linear chain.

Kinds of devices that differ in their names only, as one kind: tables and searches have fewer states.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.anytime import solve_beyond
from partitioner.methods.dp.bracket import TableBracket
from partitioner.methods.dp.identical_kinds import with_merged_kinds
from partitioner.methods.dp.improvement import patient
from partitioner.methods.dp.lattice import Lattice, ideal_lattice
from partitioner.methods.dp.linear import (
    COVERS_PER_IDEAL,
    LinearSearch,
    best_linear,
    lattice_within,
    solve_linear,
    too_many,
)
from partitioner.methods.dp.many_kinds import improve, pays_for_nets
from partitioner.methods.dp.passes.solve import solve_passes, solve_passes_linear
from partitioner.methods.dp.table import ChainTables, state_bytes, state_count
from partitioner.methods.method import Outcome, Settings, meets, no_split
from partitioner.problem.variants import ChainProblem


def solve_dp(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain by the exact dynamic program if the ideals fit in memory: method ``dp``."""
    return (solve_exact if problem.measure.passes == 1 else solve_passes)(problem, settings)


def solve_dpl(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain over linear orders, with a bound that holds for every split: method ``dpl``."""
    return (solve_linear if problem.measure.passes == 1 else solve_passes_linear)(problem, settings)


NEAR = 1.15
MANY_KINDS, FEW_IDEALS, SMALL_TABLE = 3, 2_000, 200_000
FEW = 200_000  # ideals that are enumerated at once
EARLY_ROUNDS, EARLY_SHARE, EARLY_SECONDS = 3, 0.3, 10.0  # of the search before more ideals are enumerated
LATTICE_SHARE = 0.6  # of the time left, for an enumeration of many ideals, and again for their search
UNFINISHED = "the search of all ideals was ended early to leave time for the search without them"
QUICK_ORDERS = 2  # of the first chains where the search over many kinds of devices follows


def solve_exact(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain by the exact dynamic program if the ideals fit in memory: method ``dp``.

    Else the best linear chain (:mod:`partitioner.methods.dp.linear`) is where the anytime search
    (:mod:`partitioner.methods.dp.anytime`) starts, which goes on until the time limit.
    With many kinds of devices the search of :mod:`partitioner.methods.dp.many_kinds` comes first.
    """
    return with_merged_kinds(_solve_kinds, problem, settings)


def _solve_kinds(problem: ChainProblem, settings: Settings) -> Outcome:
    """Return the best chain where no two kinds are identical."""
    relaxation = relax(problem)
    if np.isinf(relaxation.bound):
        return no_split(problem)
    many, paid = has_many_kinds(problem, settings), pays_for_nets(problem)
    quick = replace(settings, orders=min(settings.orders, QUICK_ORDERS))
    linear = best_linear(problem, relaxation, quick if many and not paid else settings)
    if linear.closed or settings.expired:
        return linear.outcome()
    if many and not paid:
        improve(linear, relaxation, settings)
        if _decided(linear) or settings.expired:
            return _outcome(linear)
    lattice = lattice_within(problem, settings, most=FEW)
    if lattice is not None and not (many and paid):
        return _search(problem, lattice, linear, settings)
    if not many and problem.coarser is None:
        early = solve_beyond(linear, _at_first(settings), "", EARLY_ROUNDS)
        if _ended(early, settings):
            return early
    lattice = lattice or lattice_within(problem, _most(settings))
    if lattice is None:
        return _without_lattice(linear, settings, many and paid, too_many(problem, settings))
    outcome = _search(problem, lattice, linear, _most(settings))
    if _ended(outcome, settings) or settings.deadline is None:
        return outcome
    linear.stages, linear.value, linear.bound = outcome.parts, outcome.value, outcome.bound
    return _without_lattice(linear, settings, many and paid, UNFINISHED)


def _without_lattice(
    linear: LinearSearch[ChainProblem], settings: Settings, by_levels: bool, note: str
) -> Outcome:
    """Return the best chain found where a note says why not all ideals are searched.

    It is looked for `by_levels` first where kinds are many.
    """
    problem, relaxation = linear.problem, linear.relaxation
    settings, coarse = patient(settings), None
    if problem.coarser is not None:
        coarse = _solve_kinds(problem.coarser, replace(settings, incumbent=None))
        if coarse.infeasible or meets(coarse.bound, coarse.value, settings.gap):
            return coarse
        linear.bound = max(linear.bound, coarse.bound)
    if by_levels:
        improve(linear, relaxation, _half(settings))
        if _decided(linear):
            return _outcome(linear)
    fine = solve_beyond(linear, settings, note)
    return fine if coarse is None or fine.value <= coarse.value else replace(coarse, bound=fine.bound)


def _decided(linear: LinearSearch[ChainProblem]) -> bool:
    """Whether the gap is closed, or it is proven that there is no chain."""
    return linear.closed or bool(np.isinf(linear.bound))


def _outcome(linear: LinearSearch[ChainProblem]) -> Outcome:
    """Return the outcome of a search that ends here."""
    return no_split(linear.problem) if np.isinf(linear.bound) else linear.outcome()


def _ended(outcome: Outcome, settings: Settings) -> bool:
    """Whether the outcome is final, or no time is left for a better one."""
    return outcome.infeasible or outcome.stop_reason in ("optimal", "gap") or settings.expired


def _at_first(settings: Settings) -> Settings:
    """Return the settings of the search that comes before an enumeration of many ideals."""
    if settings.deterministic:
        return settings
    return settings.within(min(EARLY_SHARE * settings.clock.left, EARLY_SECONDS))


def _most(settings: Settings) -> Settings:
    """Return the settings with most of the time that is left."""
    left = settings.seconds_left
    return settings if left is None else settings.within(LATTICE_SHARE * left)


def _half(settings: Settings) -> Settings:
    """Return the settings with half of the time that is left."""
    left = settings.seconds_left
    return settings if left is None else settings.within(left / 2)


def _search(
    problem: ChainProblem, lattice: Lattice, linear: LinearSearch[ChainProblem], settings: Settings
) -> Outcome:
    relaxation = replace(linear.relaxation, bound=linear.bound)
    bracket = TableBracket(
        ChainTables(problem, relaxation, lattice), settings, relaxation.bound, linear.value
    )
    near = linear.value <= NEAR * relaxation.bound
    bracket.narrow(from_top=np.isfinite(linear.value) and not near)
    stages = bracket.stages or linear.stages
    bound, infeasible = bracket.bound, bracket.complete and stages is None
    if not problem.lossless:
        tables = ChainTables(problem.relaxed(), relaxation, lattice)
        below = TableBracket(tables, settings, relaxation.bound, bracket.value)
        below.narrow(from_top=True)
        bound, infeasible = below.bound, infeasible and np.isinf(below.bound)
    return Outcome(
        problem,
        stages,
        bracket.value,
        min(bound, bracket.value),
        _stop_reason(meets(bound, bracket.value), bracket),
        infeasible=infeasible,
        notes=_notes(problem, bracket, bound),
        statistics={
            "ideals": lattice.size,
            "steps": bracket.steps,
            "table_bytes": lattice.nbytes + lattice.size * state_bytes(problem),
            "orders": linear.orders,
            "linear_value": linear.value,
        },
    )


def has_many_kinds(problem: ChainProblem, settings: Settings) -> bool:
    """Whether there are three kinds of devices or more, and a table over all ideals is not small."""
    if (problem.count > 0).sum() < MANY_KINDS:
        return False
    limit = min(FEW_IDEALS, SMALL_TABLE // state_count(problem))
    return ideal_lattice(problem, limit, COVERS_PER_IDEAL * limit, lambda: settings.expired) is None


def _stop_reason(proven: bool, bracket: TableBracket) -> str:
    if proven:
        return "optimal"
    return "gap" if bracket.closed else bracket.settings.stop_reason


def _notes(problem: ChainProblem, bracket: TableBracket, bound: float) -> tuple[str, ...]:
    notes = []
    if not bracket.complete and bracket.steps > bracket.settings.step_limit:
        notes.append(f"the exact search was stopped by its limit after {bracket.steps:,} steps")
    if not problem.lossless and not meets(bound, bracket.value):
        notes.append("free nodes were merged, which keeps the ideals few but may lose the optimum")
    return tuple(notes)
