"""The exact dynamic program and the one over linear orders for chains with two passes (paper, Appendix D)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.improvement import ChainImprovement
from partitioner.methods.dp.lattice_limits import lattice_within, too_many
from partitioner.methods.dp.linear import ChainModel, LinearSearch, best_linear
from partitioner.methods.dp.passes.bounds import relax_by_pass
from partitioner.methods.dp.passes.search import PassSearch
from partitioner.methods.dp.passes.tables import PassTables
from partitioner.methods.dp.pipeline.states import state_bytes
from partitioner.methods.limits import is_hopeless
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Settings, meets, no_split
from partitioner.problem.variants import ChainProblem

BY_PASS: ChainModel[ChainProblem] = ChainModel(
    tables=PassTables,
    bracket=PassSearch,
    value=value_of,
    bound=lambda _, relaxation: relaxation.bound,
    state_bytes=state_bytes,
)


def solve_passes(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain by the exact dynamic program if the ideals fit in memory.

    Else the best chain over linear orders is improved (:mod:`partitioner.methods.dp.improvement`).
    """
    linear = _linear(problem, settings)
    if linear is None:
        return no_split(problem)
    if linear.closed or settings.expired:
        return linear.outcome()
    lattice = lattice_within(problem, settings, BY_PASS)
    if lattice is not None:
        return _search(linear, lattice)
    if problem.coarser is not None:
        coarse = solve_passes(problem.coarser, replace(settings, incumbent=None))
        if coarse.parts is not None or coarse.infeasible:
            return coarse
    note = too_many(problem, settings, BY_PASS)
    ChainImprovement(linear).run_on()
    return linear.outcome(note)


def solve_passes_linear(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain over linear orders, with a bound that holds for every split."""
    linear = _linear(problem, settings)
    return no_split(problem) if linear is None else linear.outcome()


def _linear(problem: ChainProblem, settings: Settings) -> LinearSearch[ChainProblem] | None:
    """Return the search over linear orders; None if it is proven that there is no split."""
    if is_hopeless(problem):
        return None
    relaxation = relax_by_pass(problem)
    return None if np.isinf(relaxation.bound) else best_linear(problem, relaxation, settings, BY_PASS)


def _search(linear: LinearSearch[ChainProblem], lattice: Lattice) -> Outcome:
    """Return the best chain of the lattice of all ideals, with the best linear one as incumbent."""
    problem, settings = linear.problem, linear.settings
    search = _narrowed(linear, problem, lattice, linear.value)
    stages = search.stages or linear.stages
    bound, infeasible = search.bound, search.complete and stages is None
    if not problem.lossless:
        below = _narrowed(linear, problem.relaxed(), lattice, search.value)
        bound, infeasible = below.bound, infeasible and np.isinf(below.bound)
    return Outcome(
        problem,
        stages,
        search.value,
        min(bound, search.value),
        settings.ended(bound, search.value),
        infeasible=infeasible,
        notes=_notes(search, bound),
        statistics={
            "ideals": lattice.size,
            "steps": search.steps,
            "table_bytes": lattice.nbytes + lattice.size * state_bytes(problem),
            "orders": linear.orders,
            "linear_value": linear.value,
        },
    )


def _narrowed(
    linear: LinearSearch[ChainProblem], problem: ChainProblem, lattice: Lattice, value: float
) -> PassSearch:
    """Return the search through a lattice for a chain of less than this value, after it has ended."""
    tables = PassTables(problem, linear.relaxation, lattice)
    search = PassSearch(tables, linear.settings, linear.bound, value)
    search.narrow()
    return search


def _notes(search: PassSearch, bound: float) -> tuple[str, ...]:
    notes = []
    if not search.complete and search.steps > search.settings.step_limit:
        notes.append(f"the exact search was stopped by its limit after {search.steps:,} steps")
    if not search.tables.problem.lossless and not meets(bound, search.value):
        notes.append("free nodes were merged, which keeps the ideals few but may lose the optimum")
    return tuple(notes)
