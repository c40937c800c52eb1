"""The exact dynamic program and the one over linear orders for chains with two passes (paper, Appendix D).

With the forward loads f_j and the backward loads b_j of stages j the value of a chain is

    max f_j + max b_j

Three lower bounds rise: F on the largest forward load, B on the largest backward load, and S on the largest
f_j + b_j of one stage, that a chain better than the incumbent V must have. A table says whether there is a
chain with at most a threshold for one of them, among the chains whose other loads are small enough for a
better one: f_j < V - B, b_j < V - F and f_j + b_j < V. If there is none, the bound rises to the threshold;
else it rises to the least load of such chains, or one of them is a better incumbent. The search ends when S
or F + B meets V. Each bound is a bracket of its own; the search only chooses whose turn it is.

For three nodes in a row with the forward times 1, 2 and 3 and backward times that are twice as long, on two
devices, S = 9: the stages {1, 2} and {3} have f = 3 and b = 6, and V = 9.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.methods.dp._gpipe_core import SUM
from partitioner.methods.dp.bracket import EFFORT, UNLIMITED, Stopped, TableBracket
from partitioner.methods.dp.gpipe_tables import LimitedTables, PassTables
from partitioner.methods.dp.improvement import ChainImprovement
from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.dp.linear import ChainModel, LinearSearch, best_linear, lattice_within, too_many
from partitioner.methods.dp.pipeline_tables import state_bytes
from partitioner.methods.loads import value_of
from partitioner.methods.method import ROUNDING, Outcome, Part, Progress, Settings, meets, no_split
from partitioner.methods.rules import is_hopeless
from partitioner.problem.problem import Problem
from partitioner.problem.variants import ChainProblem


def relax_by_pass(problem: Problem) -> Relaxation:
    """Return the relaxation, with those of the forward and of the backward pass alone in `passes`.

    Its bound holds for the largest forward load plus the largest backward load: no device has a larger sum of
    both, and each is at least the bound of its own pass.
    """
    together = relax(problem)
    alone = tuple(relax(replace(problem, time=_only(problem, w))) for w in (0, 1))
    bound = max(together.bound, sum(each.bound for each in alone))
    return replace(together, bound=bound, passes=alone)


def _only(problem: Problem, pass_: int) -> np.ndarray:
    """Return the times without those of the other pass, shape (K, 2, n)."""
    time = np.zeros_like(problem.time)
    time[:, pass_] = problem.time[:, pass_]
    return time


@dataclass(eq=False)
class PassSearch:
    """The search for the best chain of a lattice, which minimises one load after the other.

    Parameters
    ----------
    tables, settings, bound, value, stages, steps
        As for :class:`partitioner.methods.dp.bracket.TableBracket`.

    Attributes
    ----------
    least
        The largest load that a chain better than the incumbent must have at least: forward, backward, and
        both together.
    complete
        Whether the search ended without reaching a limit.
    """

    tables: PassTables
    settings: Settings
    bound: float
    value: float = np.inf
    stages: list[Part] | None = None
    steps: int = 0
    least: list[float] = field(default_factory=list, init=False)
    complete: bool = field(default=False, init=False)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best chain; `from_top` is for the search for the least sum of a stage's loads."""
        self.least = [relaxation.bound for relaxation in self.tables.relaxations]
        try:
            self._minimise_sum(from_top and bool(np.isfinite(self.value)))
            self._rise_in_turn()
            self.complete = True
        except Stopped:
            if np.isinf(self.value):
                self._search(SUM).narrow()

    @property
    def closed(self) -> bool:
        """Whether the bound meets the value within the requested gap, or there is no chain."""
        return bool(np.isinf(self.bound)) or meets(self.bound, self.value, self.settings.gap)

    def offer(self, stages: list[Part]) -> None:
        """Make a chain the incumbent if it is better."""
        forward, backward, _ = self.tables.largest_loads(stages)
        if forward + backward < self.value:
            self.value, self.stages = forward + backward, stages

    def most(self, load: int) -> float:
        """Return the largest load of that number that a better chain may have."""
        return self.value if load == SUM else self.value - self.least[1 - load]

    def raised(self, least: float, load: int) -> float:
        """Return the bound that follows if better chains have at least this largest load of that number."""
        total = least if load == SUM else least + self.least[1 - load]
        return max(self.bound, min(total, self.value))

    def _minimise_sum(self, from_top: bool) -> None:
        search = self._search(SUM)
        search.narrow(from_top)
        self._learn(search)
        if not search.complete:
            raise Stopped

    def _rise_in_turn(self) -> None:
        """Raise the bound of the pass that took fewer steps so far, until the search is closed."""
        step = [EFFORT.first_step * load for load in self.least]
        highest, spent = [EFFORT.highest * load for load in self.least], [0, 0]
        while not self.closed:
            before, steps, pass_ = (*self.least, self.value), self.steps, int(np.argmin(spent))
            search = self._search(pass_)
            try:
                search.rise(step[pass_])
            finally:
                self._learn(search)
            if before == (*self.least, self.value):
                return  # only rounding errors are between bound and value
            spent[pass_] += self.steps - steps
            step[pass_] = 2 * step[pass_] if step[pass_] < highest[pass_] else 0.0

    def _search(self, load: int) -> _LeastLoad:
        """Return the search for the least load of a number, among the chains that may be better."""
        limits = [min(self.most(other) * (1 - ROUNDING), UNLIMITED) for other in (0, 1, SUM)]
        return _LeastLoad(
            self.tables.limited(load, limits), self._reporting(), self.least[load], self.most(load),
            steps=self.steps, whole=self, load=load,
        )  # fmt: skip

    def _learn(self, search: _LeastLoad) -> None:
        """Keep what a step of the search has found."""
        self.steps, self.bound = search.steps, self.raised(search.bound, search.load)
        self.least[search.load] = max(self.least[search.load], search.bound)

    def _reporting(self) -> Settings:
        """Return the settings, with reports of progress that have value and bound of the whole search."""
        report = self.settings.report
        if report is None:
            return self.settings

        def relay(progress: Progress) -> None:
            report(replace(progress, value=self.value, bound=self.bound))

        return replace(self.settings, report=relay)


@dataclass(eq=False)
class _LeastLoad(TableBracket):
    """The search for the least largest load of a number, among chains that may be better than the incumbent.

    Parameters
    ----------
    whole, load
        The search that this one is a step of, and the number of the load.
    """

    tables: LimitedTables
    whole: PassSearch = field(kw_only=True)
    load: int = field(kw_only=True)

    @property
    def closed(self) -> bool:
        """Whether there is no better chain, or the bound closes the gap of the whole search."""
        whole = self.whole
        done = np.isinf(self.bound) or meets(self.bound, self.value)
        return bool(done) or meets(whole.raised(self.bound, self.load), whole.value, self.settings.gap)

    def rise(self, step: float) -> None:
        """Raise the bound by a step or half of the way, or to the least load if a chain is found there."""
        bound, value = self.bound, self.whole.value
        if step > 0 and bound + 2 * step < self.value:
            self.ask(bound + step)
        elif np.isinf(self.value):
            self.ask(UNLIMITED)
        elif self.value - bound > EFFORT.narrow * self.value:
            self.ask((bound + self.value) / 2)
        if self.bound == bound and self.whole.value == value:
            self.settle()

    def _fill(self, threshold: float, floor: float, limit: int | None) -> tuple[float, list[Part]] | None:
        found = super()._fill(threshold, floor, limit)
        if found is None:
            return None
        self.whole.offer(found[1])
        return min(found[0], self.whole.most(self.load)), found[1]

    def _hurry(self) -> None:
        super()._hurry()
        if self.stages is not None:
            self.whole.offer(self.stages)


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
        below = _narrowed(linear, problem.relaxed, lattice, search.value)
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
