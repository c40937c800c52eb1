"""The best pipeline of stages that choose among alternatives: methods ``alternatives`` and ``piper``.

The program runs over ideals I of the turned graph, devices p and copies c: with a limit t on loads

    copies[J, p + degree * r] = min over I of copies[I, p] + r    of the stages J - I with a load of <= t

says whether there are stages within t; the limit is bracketed until value and bound meet. For three nodes in
a row that take 1, 2 and 3, or half of it on two devices, and four devices, t = 1.5 is met by {1, 2} of degree
2 and {3} of degree 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from partitioner.methods.dp._alternatives_core import FAR, KnownAnswers, LabelTable, LoadLimit, spread
from partitioner.methods.dp.alternatives_batch import BatchSearch, batch_value, samples, table_bytes
from partitioner.methods.dp.alternatives_stages import (
    ChoiceModel,
    ChosenStage,
    Pairs,
    least_load,
    least_work,
    model_of,
    names_of,
    pairs_within,
    parts_of,
    stage_of,
)
from partitioner.methods.dp.bracket import UNLIMITED, Bracket, Decision
from partitioner.methods.dp.equal_replicas import EqualReplicas
from partitioner.methods.dp.forms import with_replicas
from partitioner.methods.dp.lattice import Ints32, Lattice, chain_lattice, ideal_lattice
from partitioner.methods.method import Outcome, OutOfTimeError, Settings, no_split
from partitioner.problem.arrays import Floats
from partitioner.problem.measure import Measure
from partitioner.problem.variants import AlternativesProblem

BYTES_AN_IDEAL, BYTES_A_LABEL = 150, 12
COVERS_PER_IDEAL = 12
TOO_MANY = "the ideals do not fit the time or the memory budget: only one order was searched"
NO_TABLE = "the sums of loads do not fit the time or the memory budget: this is the least largest load"
GREEDY = "the ways of a stage are chosen by Piper's rule, which may miss the best ones"


@dataclass(frozen=True)
class LoadEffort:
    """How limits are chosen, and how often the clock is read.

    Parameters
    ----------
    lowest
        The least bound as a fraction of the value that the mean in ratio counts with.
    narrow
        A bracket of less than this fraction of the bound is not halved any more: the next limit is just below
        the value.
    slice
        Stages of one shape between two checks whether the run should end; changes no result.
    """

    lowest: float = 1e-6
    narrow: float = 1e-5
    slice: int = 200_000


EFFORT = LoadEffort()
JUST_BELOW = 1 - 1.5e-12


@dataclass(eq=False)
class LoadSearch(Bracket[None]):
    """The search for the stages with the least largest load among the ideals of a lattice.

    A question is answered by a table of the least copies on each number of devices, without an effort: it is
    found or refuted.

    Parameters
    ----------
    model, lattice, pairs
        The problem, its ideals, and the stages between them, all turned.
    settings
        Limits of the run.
    greedy
        Whether ways are chosen by Piper's rule.
    bound
        A lower bound of the load; it rises.
    value, stages
        The best value known, and its stages from first to last; None if none are known.
    decided
        How many limits were decided.
    """

    model: ChoiceModel
    lattice: Lattice
    pairs: Pairs
    settings: Settings
    greedy: bool
    bound: float
    value: float = np.inf
    stages: Sequence[ChosenStage] | None = None
    decided: int = 0
    good: Ints32 = field(init=False)
    bad: Ints32 = field(init=False)
    work: Floats = field(init=False)

    def __post_init__(self) -> None:
        shape = self.pairs.least.shape
        self.good, self.bad = np.zeros(shape, np.int32), np.full(shape, FAR, np.int32)
        self.work = _work(self.model, self.lattice)

    def narrow(self) -> bool:
        """Raise the bound and lower the value until they meet; return whether that was done in time.

        Without a value it is first decided whether there are any stages.
        """
        try:
            if np.isinf(self.value):
                self.ask(UNLIMITED, None)
            self.ask_by(lambda _: self._next_limit(), None)
        except OutOfTimeError:
            return False
        return True

    def _next_limit(self) -> float:
        """Return the limit to ask for: halfway in ratio while value and bound are far apart, then in size."""
        if self.value > 2 * self.bound:
            return float(np.sqrt(self.value * max(self.bound, self.value * EFFORT.lowest)))
        if self.value > (1 + EFFORT.narrow) * self.bound:
            return (self.bound + self.value) / 2
        return self.value * JUST_BELOW

    def ask(self, threshold: float, effort: None) -> Decision:
        """Narrow the bracket by one table, and report it."""
        answer = super().ask(threshold, effort)
        self.settings.report_progress("limits", self.decided, 0, self.value, min(self.bound, self.value))
        return answer

    def decide(self, threshold: float, effort: None) -> Decision:
        """Return whether there are stages with loads of at most a threshold.

        Raises
        ------
        OutOfTimeError
            If the run should end.
        """
        model, lattice = self.model, self.lattice
        shape = lattice.size, model.devices + 1
        table = LabelTable(np.full(shape, FAR), np.zeros(shape, np.int32), np.zeros(shape, np.int32))
        table.least[0, 0] = 0
        known = KnownAnswers(self.good.copy(), self.bad.copy())
        limit = LoadLimit(threshold, model.copies, self.work, self.greedy)
        for first, end in self.settings.watched(pairwise(self._borders())):
            spread(lattice, self.pairs, model.terms, limit, first, end, table, known)
        self.decided += 1
        if table.least[-1].min() == FAR:
            self.good = known.good
            return Decision(complete=True)
        self.bad = known.bad
        stages = self._stages(table)
        return Decision(stages, max(stage.load for stage in stages), complete=True)

    def _borders(self) -> list[int]:
        """Return the ideals at which a decision looks whether the run should end, from 0 to their number."""
        done = self.pairs.start * self.pairs.least.shape[1]
        marks = np.searchsorted(done, np.arange(0, done[-1], EFFORT.slice))
        return sorted({0, *marks.tolist(), self.lattice.size})

    def _stages(self, table: LabelTable) -> list[ChosenStage]:
        """Return the stages of a label of the full ideal, from first to last."""
        copies, shapes, found = table.least, self.model.shapes, []
        ideal, p = self.lattice.size - 1, int(np.argmax(copies[-1] < FAR))
        while ideal:
            smaller, d = int(table.before[ideal, p]), int(table.by[ideal, p])
            p -= int(shapes.degree[d] * shapes.copies[d])
            members = self.lattice.difference(ideal, smaller)[::-1]
            found.append(stage_of(self.model, members, d, int(copies[smaller, p]), self.greedy))
            ideal = smaller
        return found


def _work(model: ChoiceModel, lattice: Lattice) -> Floats:
    """Return the least time of all devices together for what is outside of each ideal, shape (ideals,)."""
    inside = np.zeros(lattice.size)
    least = least_work(model)
    for ideal in range(1, lattice.size):
        inside[ideal] = inside[lattice.parent[ideal]] + least[lattice.added[ideal]]
    return np.asarray(np.maximum(least.sum() - inside, 0.0))


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
    :func:`partitioner.methods.dp._alternatives_stages_core.least_sum`).
    """
    return _solve(problem, settings, "piper", greedy=True)


def _solve(problem: AlternativesProblem, settings: Settings, name: str, greedy: bool) -> Outcome:
    search = partial(_best, name=name, greedy=greedy)
    if not problem.limits.equal:
        return search(problem, settings)
    return EqualReplicas(search, partial(_bound, name=name)).best(problem, _shaped(problem), settings)


def _shaped(problem: AlternativesProblem) -> Iterator[AlternativesProblem]:
    """Yield the problems in which all stages have one degree and one number of copies."""
    devices, most = int(problem.count.sum()), int(problem.copies.max())
    for degree in np.unique(problem.ways.degree).tolist():
        for copies in range(1, min(most, devices // degree) + 1):
            yield replace(with_replicas(problem, copies), degree=degree)


def _bound(problem: AlternativesProblem, name: str) -> float:
    """Return a lower bound on the value of a problem; infinity if no copies divide its batch."""
    model = model_of(problem, name)
    each = least_load(model) if len(model.shapes.copies) else np.inf
    return each * (samples(model) if problem.measure is Measure.BATCH else 1)


def _best(problem: AlternativesProblem, settings: Settings, name: str, greedy: bool) -> Outcome:
    """Return the best pipeline whose stages are of the shapes of a problem."""
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
    turned = model.problem.turned()
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
