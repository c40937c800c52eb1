"""The search for pipelines where a table of all sets of devices is too large to fill in time.

It lists the stages within a threshold, gives every kind of device a price, and computes

    need[I] = min over stages from I to J on r devices of kind k of r * price[k] + need[J],  need[all] = 0

If need[{}] exceeds the price of all devices, no pipeline keeps to the threshold. Else the pipelines of each
ideal that leave most after their need are extended, ever more of them. Three nodes of 4 on two devices at
threshold 5 are stages of their own, so need[{}] = 3 > 2 at a price of 1: the bound is above 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK
from partitioner.methods.dp._sparse_core import (
    COUNT,
    CUT,
    DONE,
    FULL,
    DevicePrices,
    extend,
    follow_prices,
    least_prices,
    list_within,
)
from partitioner.methods.dp._stages_core import StageDemand
from partitioner.methods.dp.bracket import UNKNOWN, Asked, Bracket, Decision, Stopped, ThresholdRule
from partitioner.methods.dp.pipeline_loads import pipeline_value
from partitioner.methods.dp.sparse_tables import (
    PartialPool,
    SparseTables,
    StageList,
    empty_pool,
    empty_stages,
    enter_root,
)
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints


@dataclass(frozen=True)
class SparseEffort:
    """How many prices are tried and how many pipelines are kept.

    Parameters
    ----------
    quick, widths
        The pipelines that each ideal keeps, in one round after another: for one linear order, and for all
        ideals.
    untimed
        The rounds for all ideals in a run without a limit of time.
    close
        A bracket of less than this fraction of the value is not halved again in the same round.
    rounds, first_step, last_step, steepest
        How often prices change; by which factor for a kind that is needed twice as often as there are
        devices, at first and at last; and the largest such excess that counts.
    least_price
        The least first price, as a fraction of the mean one.
    listed, tried
        Steps of the list and pipelines between two readings of the clock; they change no result without one.
    room, most_stages, most_partial
        Stages and pipelines that arrays hold at first, and that they hold at most.
    """

    quick: tuple[int, ...] = (60,)
    widths: tuple[int, ...] = (60, 400, 2_500, 15_000)
    untimed: int = 3
    close: float = 1e-4
    rounds: int = 25
    first_step: float = 0.5
    last_step: float = 0.02
    steepest: float = 3.0
    least_price: float = 1e-3
    listed: int = 200_000
    tried: int = 400_000
    room: int = 1 << 14
    most_stages: int = 1 << 23
    most_partial: int = 1 << 22


EFFORT = SparseEffort()


class SparseDecider:
    """Decides whether pipelines exist over one lattice.

    Parameters
    ----------
    tables
        The problem and the lattice.
    settings
        Say when to end, and after how many steps.

    Attributes
    ----------
    tried
        Stages listed and pipelines extended so far.
    """

    def __init__(self, tables: SparseTables, settings: Settings) -> None:
        self.tables, self.settings = tables, settings
        self.tried = 0

    @property
    def problem_count(self) -> Ints:
        """Shape (K,): the devices of each kind."""
        return self.tables.problem.count

    def decide(self, threshold: float, width: int) -> Decision:
        """Search for a pipeline within a threshold; each ideal keeps about `width` partial ones.

        The answer names no value.

        Raises
        ------
        Stopped
            If the run should end.
        """
        stages = self._listed(threshold)
        if stages is None:
            return UNKNOWN
        least = np.empty((self.tables.lattice.size, *self.tables.model.ends.link.shape))
        price, answer = self._priced(stages, threshold, least)
        return answer or self._searched(stages, price, least, width)

    def _listed(self, threshold: float) -> StageList | None:
        """Return all stages within the threshold; None if they are too many."""
        tables, lattice = self.tables, self.tables.lattice
        each = self._shares(threshold)
        target = float(self.problem_count @ each - each[self.problem_count > 0].min())
        target += SLACK * (tables.relaxation.weight.sum() + target)
        model = tables.model._replace(costs=tables.clipped(threshold))
        demand = StageDemand(
            threshold, tables.widest, tables.lightest, tables.remaining, tables.above, tables.open
        )
        found, at = empty_stages(lattice.size, len(tables.model.ends.link), EFFORT.room), 0
        while at < lattice.size - 1:
            self._look()
            at, full = list_within(lattice, model, demand, target, found, at, lattice.size - 1, EFFORT.listed)
            if full and len(found.to) >= EFFORT.most_stages:
                return None
            found = found.grown() if full else found
        self.tried += int(found.first[-2])
        return found

    def _shares(self, threshold: float) -> Floats:
        """Return what a device of each kind can take of the weights at the threshold, shape (K,)."""
        kinds = len(self.problem_count)
        return self.tables.relaxation.capacity(threshold, np.eye(kinds), self.tables.problem.memory)  # type: ignore[arg-type]

    def _priced(self, stages: StageList, threshold: float, least: Floats) -> tuple[Floats, Decision | None]:
        """Return prices of the devices for which what all stages need comes nearest to all devices.

        Any prices give a proof if a pipeline needs more than all devices cost; the answer is then that
        there is none. It is a pipeline if a cheapest one happens to use no device twice; else None.
        """
        count = self.problem_count
        price, best, near = self._first_prices(threshold), None, -1.0
        for step in np.geomspace(EFFORT.first_step, EFFORT.last_step, EFFORT.rounds):
            self._look()
            least_prices(stages, price, least)
            need = float(least[0, 0].min()) / float(price @ count)
            if need > 1 + SLACK:
                return price, Decision(complete=True)
            if need > near:
                best, near = price.copy(), need
            chosen = self._cheapest(stages, price, least)
            used = self._used(stages, chosen)
            if self._is_sound(stages, chosen, used):
                return price, Decision(self._stages(stages, chosen.tolist()))
            excess = np.divide(used, count, out=np.zeros(len(count)), where=count > 0) - 1
            price = price * np.exp(step * np.clip(excess, -1.0, EFFORT.steepest))
        assert best is not None
        least_prices(stages, best, least)
        return best, None

    def _first_prices(self, threshold: float) -> Floats:
        price = self._shares(threshold)
        mean = float(price[self.problem_count > 0].mean())
        price = np.ones_like(price) if mean <= 0 or not np.isfinite(mean) else price / mean
        return np.maximum(price, EFFORT.least_price)

    def _cheapest(self, stages: StageList, price: Floats, least: Floats) -> Ints:
        chosen = np.empty(self.tables.problem.n, np.int64)
        return chosen[: follow_prices(stages, price, least, chosen)]

    def _used(self, stages: StageList, chosen: Ints) -> Floats:
        """Return how many devices of each kind stages use, shape (K,)."""
        kinds = len(self.problem_count)
        return np.bincount(stages.kind[chosen], stages.copies[chosen], kinds).astype(np.float64)

    def _is_sound(self, stages: StageList, chosen: Ints, used: Floats) -> bool:
        """Whether stages use devices that there are, and fit their memory with the devices behind them."""
        limits, count = self.tables.problem.limits, self.problem_count
        copies = stages.copies[chosen]
        behind = np.cumsum(copies) - copies
        right = (used == count).all() if limits.all_devices else (used <= count).all()
        return bool(right and (behind <= stages.behind[chosen]).all() and limits.stages in (0, len(chosen)))

    def _searched(self, stages: StageList, price: Floats, least: Floats, width: int) -> Decision:
        """Extend the best pipelines of each ideal."""
        tables, ideals = self.tables, self.tables.lattice.size
        prices = DevicePrices(price, float(price @ self.problem_count), least)
        pool = empty_pool(ideals, len(tables.counts.guard), EFFORT.room, width)
        enter_root(pool, prices.total, (1 << len(tables.model.ends.link)) - 1)
        at, state = np.zeros(3, np.int64), -1
        at[COUNT] = 1
        while state != DONE:
            self._look()
            state = extend(stages, tables.counts, prices, pool, at, width, EFFORT.tried)
            if state == FULL:
                if len(pool.mask) >= EFFORT.most_partial:
                    return UNKNOWN
                pool = pool.grown()
                pool.enter(int(at[COUNT]))
        self.tried += int(at[COUNT])
        last = self._complete(pool, stages)
        if last is None:
            return Decision(complete=not at[CUT])
        return Decision(self._stages(stages, last))

    def _complete(self, pool: PartialPool, stages: StageList) -> list[int] | None:
        """Return the stages of a pipeline that holds all and uses what it must; None if there is none."""
        at = int(pool.head[-1])
        while at >= 0:
            chosen, row = [], at
            while pool.parent[row] >= 0:
                chosen.append(int(pool.stage[row]))
                row = int(pool.parent[row])
            given = np.array(chosen[::-1], dtype=np.int64)
            if self._is_sound(stages, given, self._used(stages, given)):
                return chosen[::-1]
            at = int(pool.other[at])
        return None

    def _stages(self, stages: StageList, chosen: list[int]) -> list[Part]:
        """Return listed stages as parts."""
        found, before = [], 0
        for e in chosen:
            ideal = int(stages.to[e])
            nodes = self.tables.lattice.difference(ideal, before)
            found.append(Part(int(stages.kind[e]), nodes, int(stages.copies[e])))
            before = ideal
        return found

    def _look(self) -> None:
        if self.settings.expired or self.tried > self.settings.step_limit:
            raise Stopped


@dataclass(eq=False)
class SparseBracket(Bracket[int]):
    """A bracket of the best pipeline of a lattice, searched with little effort.

    Parameters
    ----------
    tables
        The problem and the lattice.
    settings
        Say when to end and whom to report to.
    bound, value
        A lower bound on the value of the pipelines of the lattice, and the value of the incumbent.

    Attributes
    ----------
    stages, steps, complete
        The best pipeline found, if any; how much was tried; and whether bound and value meet.
    """

    tables: SparseTables
    settings: Settings
    bound: float
    value: float = np.inf
    stages: list[Part] | None = None
    steps: int = 0
    complete: bool = field(default=False, init=False)
    widths: tuple[int, ...] = field(default=EFFORT.quick, init=False)

    def __post_init__(self) -> None:
        self.decider = SparseDecider(self.tables, self.settings)
        self.least = self.value  # of all pipelines found, whatever the tables take their loads for

    def narrow(self, from_top: bool = False) -> None:
        """Find the best pipeline; with `from_top` only if there is one better than the incumbent."""
        try:
            for width in self.widths:
                self.ask_by(self._halving(from_top), width)
                from_top = False
                if self.closed:
                    break
        except Stopped:
            pass
        self.complete = self.closed

    def decide(self, threshold: float, effort: int) -> Decision:
        """Return a pipeline within the threshold; its value is the threshold if loads are lower bounds."""
        answer = self.decider.decide(threshold, effort)
        self.steps = self.decider.tried
        if answer.stages is None:
            return answer
        value = pipeline_value(self.tables.problem, answer.stages) if self.tables.upper else threshold
        return replace(answer, value=value)

    def take(self, answer: Decision) -> None:
        """Lower the value, and keep the pipeline if it is the best one whatever the tables take it for."""
        found = answer.value
        if not self.tables.upper and answer.stages is not None:
            found = pipeline_value(self.tables.problem, answer.stages)
        if found < self.least:
            self.least, self.stages = found, answer.stages
        self.value = min(self.value, answer.value)

    def ask(self, threshold: float, effort: int) -> Decision:
        """Narrow the bracket by one question, and report the progress."""
        answer = super().ask(threshold, effort)
        self.settings.report_progress("thresholds", self.steps, 0, self.value, self.bound)
        return answer

    def _halving(self, from_top: bool) -> ThresholdRule:
        """Return the rule that halves the bracket above :attr:`low` and ends with a threshold at the top."""
        at_top = near = False

        def rule(asked: Asked | None) -> float | None:
            nonlocal from_top, at_top, near
            if asked is not None and asked.improved:
                if near and not self.tables.upper:
                    return None  # its value is a threshold
                from_top = False
            elif at_top:
                return None
            near = self.value - self.low <= EFFORT.close * self.value
            at_top = from_top or near or bool(np.isinf(self.value))
            return self.just_below() if at_top else self.middle()

        return rule


class ThoroughSparseBracket(SparseBracket):
    """The same, searched with ever more effort until the bracket is closed or the run must end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        timed = self.settings.deadline is not None and not self.settings.deterministic
        self.widths = EFFORT.widths if timed else EFFORT.widths[: EFFORT.untimed]
