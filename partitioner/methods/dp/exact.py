"""The exact dynamic program for chains, and the ladder of searches around it: method ``dp``.

With c the devices in use by kind, the least largest load of a chain that holds ideal J is (Section 5.1.1)

    value[J, c + one of k] = min over I in J of max(value[I, c], load(J - I, k)),  value[{}, 0] = 0

where the load of a stage is its time on kind k with the transfers over its borders. Three nodes in a row take
1, 2 and 3, and two devices are alike: value[{1}, 1] = 1, value[{1, 2}, 1] = 3, value[{1, 2, 3}, 2] =
min(max(1, 2 + 3), max(3, 3)) = 3.

The table has a row for each ideal, and there may be too many. So :data:`LADDER` lists the searches that are
tried one after another, from what is quick to what goes on until the time limit; each begins with the bound
and the chain of those before. Kinds of devices that differ in their names only are one kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from partitioner.base.registry import imported
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.bounds.star import star_bound
from partitioner.methods.dp.anytime import solve_beyond
from partitioner.methods.dp.bracket import TableBracket
from partitioner.methods.dp.chain import ChainTables, state_bytes
from partitioner.methods.dp.forms import with_merged_kinds
from partitioner.methods.dp.gpipe import solve_passes, solve_passes_linear
from partitioner.methods.dp.improvement import patient
from partitioner.methods.dp.lattice import Lattice, ideal_lattice
from partitioner.methods.dp.linear import EFFORT as ORDERS
from partitioner.methods.dp.linear import (
    LinearSearch,
    best_linear,
    lattice_within,
    solve_linear,
    too_many,
)
from partitioner.methods.dp.many_kinds import COVERING, improve, pays_for_nets
from partitioner.methods.dp.reduced import can_be_reduced, reduced
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Settings, meets, no_split
from partitioner.problem.variants import ChainProblem


def solve_dp(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain by the exact dynamic program if the ideals fit in memory: method ``dp``."""
    return (solve_exact if problem.measure.passes == 1 else solve_passes)(problem, settings)


def solve_dpl(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain over linear orders, with a bound that holds for every split: method ``dpl``."""
    return (solve_linear if problem.measure.passes == 1 else solve_passes_linear)(problem, settings)


@dataclass(frozen=True)
class LadderEffort:
    """When each search of the ladder is tried, and how long.

    Parameters
    ----------
    near
        A value within this factor of the bound lets thresholds rise from the bound, else the first one is
        just below the value.
    many_kinds, few_ideals, small_table
        Kinds count as many if there are `many_kinds` of them or more, and more than `few_ideals` ideals, or
        more than `small_table` entries of a table.
    few
        Ideals that are enumerated and searched at once.
    early_rounds, early_share, early_seconds
        Of the anytime search before more ideals are enumerated: its rounds, its share of the time left and
        the most seconds.
    lattice_share
        The share of the time left for an enumeration of many ideals, and again for their search.
    quick_orders
        The linear orders that are tried where the search over many kinds of devices follows.
    most_reduced, reduced_ideals, reduced_share
        The most supernodes of a problem that is reduced, the most ideals that are searched then, and the
        share of the time left. Which supernodes lead to which takes the square of their number.
    covering_share, covering_gaps
        The share of the time left for the covering bound, and the gaps to which it is raised one after
        another: weights that refute a threshold are near those for the next.
    left_out
        What the supernodes that are left out take together at most, as fractions of the value, one after
        another. T5 in training, 291 supernodes on 4 devices: 0.2 leaves 40,000 ideals, and proves 99 % of the
        value in 0.3 s; 0.02 leaves 820,000, and proves 99.98 %.
    """

    near: float = 1.15
    many_kinds: int = 3
    few_ideals: int = 2_000
    small_table: int = 200_000
    few: int = 200_000
    early_rounds: int = 3
    early_share: float = 0.3
    early_seconds: float = 10.0
    lattice_share: float = 0.6
    quick_orders: int = 2
    most_reduced: int = 3_000
    reduced_ideals: int = 1_500_000
    reduced_share: float = 0.6
    covering_share: float = 0.5
    covering_gaps: tuple[float, ...] = (0.05, 0.045, 0.04, 0.03, 0.02, 0.01, 0.0)
    left_out: tuple[float, ...] = (0.2, 0.05, 0.02, 0.0)


EFFORT = LadderEffort()
if TYPE_CHECKING:
    from partitioner.methods.bounds.cover import Covering
NOT_SEARCHED = "not all ideals were searched"
UNFINISHED = "the search of all ideals was ended early to leave time for the search without them"


@dataclass(eq=False)
class Climb:
    """What the searches of the ladder have found so far.

    Parameters
    ----------
    linear
        The search over linear orders, which holds the bound and the best chain.
    settings
        The settings of the run.
    many, paid
        Whether kinds of devices are many, and whether some kind pays for transfers.
    lattice
        The ideals, if they are few; None if they are not known to be.
    note
        Says why not all ideals were searched.
    coarse
        The outcome of the problem contracted further.
    """

    linear: LinearSearch[ChainProblem]
    settings: Settings
    many: bool
    paid: bool
    lattice: Lattice | None = None
    note: str = NOT_SEARCHED
    coarse: Outcome | None = field(default=None, init=False)

    @property
    def problem(self) -> ChainProblem:
        """The problem."""
        return self.linear.problem

    @property
    def is_decided(self) -> bool:
        """Whether the gap is closed, or it is proven that there is no chain."""
        return self.linear.closed or bool(np.isinf(self.linear.bound))

    @property
    def outcome(self) -> Outcome:
        """The outcome of a ladder that ends here."""
        return no_split(self.problem) if np.isinf(self.linear.bound) else self.linear.outcome()


def solve_exact(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain by the searches of :data:`LADDER`, one after another."""
    return with_merged_kinds(_climb, problem, settings)


def _climb(problem: ChainProblem, settings: Settings) -> Outcome:
    """Return the best chain where no two kinds are identical."""
    relaxation = relax(problem)
    if np.isinf(relaxation.bound):
        return no_split(problem)
    relaxation = replace(relaxation, bound=star_bound(problem, relaxation))
    many, paid = has_many_kinds(problem, settings), pays_for_nets(problem)
    climb = Climb(LinearSearch(problem, relaxation, settings), settings, many, paid)
    for rung in LADDER:
        outcome = rung.search(climb) if rung.applies(climb) else None
        if outcome is not None:
            return outcome
    return climb.outcome


def _orders(climb: Climb) -> Outcome | None:
    """Try linear orders; if the search over many kinds follows, only the first ones."""
    settings = climb.settings
    if climb.many and not climb.paid:
        settings = replace(settings, orders=min(settings.orders, EFFORT.quick_orders))
    climb.linear = best_linear(climb.problem, climb.linear.relaxation, settings)
    return climb.linear.outcome() if climb.linear.closed or settings.expired else None


def _many_kinds(climb: Climb) -> Outcome | None:
    """Search level by level; the time is limited by the settings alone."""
    improve(climb.linear, climb.linear.relaxation, climb.settings)
    return climb.outcome if climb.is_decided or climb.settings.expired else None


def _few_ideals(climb: Climb) -> Outcome | None:
    """Enumerate ideals up to a number, and search them unless another search comes before."""
    climb.lattice = lattice_within(climb.problem, climb.settings, most=EFFORT.few)
    if climb.lattice is None or (climb.many and climb.paid):
        return None
    return _search(climb.problem, climb.lattice, climb.linear, climb.settings)


def _early(climb: Climb) -> Outcome | None:
    """Search without the ideals for a while."""
    settings = climb.settings
    if not settings.deterministic:
        settings = settings.within(min(EFFORT.early_share * settings.clock.left, EFFORT.early_seconds))
    outcome = solve_beyond(climb.linear, settings, "", EFFORT.early_rounds)
    return outcome if _ended(outcome, climb.settings) else None


def _reduced(climb: Climb) -> Outcome | None:
    """Search all ideals of smaller problems, with ever less left out: their bounds hold here."""
    linear, settings = climb.linear, climb.settings.for_share(EFFORT.reduced_share)
    for share in EFFORT.left_out:
        smaller = reduced(climb.problem, share * linear.value)
        lattice = lattice_within(smaller.problem, settings, most=EFFORT.reduced_ideals)
        if lattice is None:  # with less left out there are more
            break
        tables = ChainTables(smaller.problem, relax(smaller.problem), lattice)
        bracket = TableBracket(tables, settings, linear.bound, linear.value)
        bracket.narrow()
        linear.bound = max(linear.bound, min(bracket.bound, linear.value))
        if bracket.stages is not None:
            stages = smaller.stages_of(bracket.stages)
            linear.offer(value_of(climb.problem, stages), stages)
        if climb.is_decided or settings.expired:
            break
    return climb.outcome if climb.is_decided or climb.settings.expired else None


def _has_chain(climb: Climb) -> bool:
    """Whether there is a chain whose value is to be proven."""
    return bool(np.isfinite(climb.linear.value))


def _can_be_reduced(climb: Climb) -> bool:
    """Whether smaller problems are searched."""
    problem = climb.problem
    return problem.n <= EFFORT.most_reduced and _has_chain(climb) and can_be_reduced(problem)


def _covering(climb: Climb) -> Outcome | None:
    """Raise the bound to the load at which the devices can hold all supernodes."""
    linear, whole = climb.linear, climb.settings
    limited = whole.for_share(EFFORT.covering_share)
    relaxation = replace(linear.relaxation, bound=linear.bound)
    covering: Covering = imported(COVERING)(climb.problem.relaxed, relaxation, whole)
    for gap in EFFORT.covering_gaps:
        covering.rise(linear.value, max(gap, whole.gap), lambda: limited.expired, lambda _: None)
        if covering.bound < (1 - gap) * linear.value:  # nothing higher is refuted either
            break
    linear.bound = max(linear.bound, min(covering.bound, linear.value))
    return climb.outcome if climb.is_decided or whole.expired else None


def _all_ideals(climb: Climb) -> Outcome | None:
    """Enumerate all ideals that fit in memory and search them; if that fails, the run has a time limit."""
    problem, linear, settings = climb.problem, climb.linear, climb.settings
    lattice = climb.lattice or lattice_within(problem, climb.settings.for_share(EFFORT.lattice_share))
    if lattice is None:
        climb.note = too_many(problem, settings)
    else:
        outcome = _search(problem, lattice, linear, climb.settings.for_share(EFFORT.lattice_share))
        if _ended(outcome, settings) or settings.deadline is None:
            return outcome
        linear.stages, linear.value, linear.bound = outcome.parts, outcome.value, outcome.bound
        climb.note = UNFINISHED
    climb.settings = patient(settings)
    return None


def _coarser(climb: Climb) -> Outcome | None:
    """Climb the ladder of the problem contracted further, whose bound and chain hold here."""
    coarser, settings = climb.problem.coarser, climb.settings
    assert coarser is not None
    coarse = climb.coarse = _climb(coarser, replace(settings, incumbent=None))
    climb.linear.bound = max(climb.linear.bound, coarse.bound)
    return coarse if coarse.infeasible or meets(coarse.bound, coarse.value, settings.gap) else None


def _by_levels(climb: Climb) -> Outcome | None:
    """Search level by level for half of the time."""
    improve(climb.linear, climb.linear.relaxation, climb.settings.for_share(0.5))
    return climb.outcome if climb.is_decided else None


def _beyond(climb: Climb) -> Outcome:
    """Search without the ideals until the run must end."""
    fine, coarse = solve_beyond(climb.linear, climb.settings, climb.note), climb.coarse
    return fine if coarse is None or fine.value <= coarse.value else replace(coarse, bound=fine.bound)


@dataclass(frozen=True)
class Rung:
    """One search of the ladder.

    Parameters
    ----------
    name
        What is searched.
    applies
        Whether the search is tried.
    search
        Improves the bound and the chain; returns the outcome if the ladder ends there.
    effort
        How long it takes.
    won
        On how many of the workloads where it was tried something is lost without it, and what: a value, a
        bound or three times the seconds. Measured by ``scripts/ladder_rungs.py`` under 10 s on the published
        workloads, those in ``instances/``, wide branchings, every 16th line balancing and assignment of
        workers, and pools of unlike devices.
    """

    name: str
    applies: Callable[[Climb], bool]
    search: Callable[[Climb], Outcome | None]
    effort: str
    won: str


LADDER: tuple[Rung, ...] = (
    Rung(
        "linear orders",
        lambda _: True,
        _orders,
        effort="12 orders and refinements; 2 before many kinds",
        won="11 of 74: better values, of operator graphs and NASNet 1 to 11 %",
    ),
    Rung(
        "many kinds, free transfers",
        lambda climb: climb.many and not climb.paid,
        _many_kinds,
        effort="ever wider, until it proves the optimum or the run must end",
        won="5 of 5 assignments of workers: the proof, or the same one 5 to 20 times sooner",
    ),
    Rung(
        "few ideals",
        lambda _: True,
        _few_ideals,
        effort="up to 200,000 ideals",
        won="35 of 69: 31 proofs in 0.1 to 2.4 s that otherwise take 0.8 to 105 s",
    ),
    Rung(
        "anytime search, first rounds",
        lambda climb: not climb.many and climb.problem.coarser is None,
        _early,
        effort="3 rounds, 30 % of the time, at most 10 s",
        won="12 of 20: better values on line balancings and NASNet, 6 proofs ten times sooner",
    ),
    Rung(
        "smaller problems",
        lambda climb: climb.settings.deadline is not None and _can_be_reduced(climb),
        _reduced,
        effort="60 % of the time left, up to 1.5 million ideals each",
        won="T5 in training on 4 devices, 474 nodes: a gap of 0.0 % for 8.9 % in 30 s",
    ),
    Rung(
        "covering bound",
        lambda climb: climb.settings.deadline is not None and climb.paid and _has_chain(climb),
        _covering,
        effort="half of the time left, up to 4 million states a kind",
        won="4 of 9 in 120 s: on NASNet mobile gaps of 0.0, 3.8, 1.0 and 1.0 % for 15.5, 10.0, 1.9 and 1.8 %",
    ),
    Rung(
        "all ideals",
        lambda _: True,
        _all_ideals,
        effort="as many as the memory budget holds, 60 % of the time left",
        won="4 of 18: the proof on the experts of MoE on 8 kinds, higher bounds on Inception-v3",
    ),
    Rung(
        "coarser problem",
        lambda climb: climb.problem.coarser is not None,
        _coarser,
        effort="a ladder of its own",
        won="1 of 1: on the operator graph of GNMT the bound 44.9 for 26.8",
    ),
    Rung(
        "many kinds, paid transfers",
        lambda climb: climb.many and climb.paid,
        _by_levels,
        effort="half of the time left",
        won="1 of 4: on Inception-v3 with 8 kinds the bound 6.26 for 3.92",
    ),
    Rung(
        "anytime search",
        lambda _: True,
        _beyond,
        effort="until the run must end",
        won="7 of 14: better values or bounds on NASNet, ARC111, MUKHERJE, Inception-v3 with 8 kinds",
    ),
)


def _ended(outcome: Outcome, settings: Settings) -> bool:
    """Whether the outcome is final, or no time is left for a better one."""
    return outcome.infeasible or outcome.stop_reason in ("optimal", "gap") or settings.expired


def _search(
    problem: ChainProblem, lattice: Lattice, linear: LinearSearch[ChainProblem], settings: Settings
) -> Outcome:
    relaxation = replace(linear.relaxation, bound=linear.bound)
    bracket = TableBracket(
        ChainTables(problem, relaxation, lattice), settings, relaxation.bound, linear.value
    )
    near = linear.value <= EFFORT.near * relaxation.bound
    bracket.narrow(from_top=np.isfinite(linear.value) and not near)
    stages = bracket.stages or linear.stages
    bound, infeasible = bracket.bound, bracket.complete and stages is None
    if not problem.lossless:
        tables = ChainTables(problem.relaxed, relaxation, lattice)
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
    if (problem.count > 0).sum() < EFFORT.many_kinds:
        return False
    limit = min(EFFORT.few_ideals, EFFORT.small_table // problem.states)
    return ideal_lattice(problem, limit, ORDERS.covers_per_ideal * limit, lambda: settings.expired) is None


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
