"""The search for the best chain over many kinds of devices: ever wider searches, forwards and backwards.

Level m holds partial chains of m supernodes, whose last stage may still grow. One is kept if what is left
may still fit the devices that are left, at prices p of their time at threshold t,

    sum over v outside of min over k of p[k] * time[k, v]  <=  sum over k of p[k] * t * left[k]

and of more than `width` those whose rest takes the least part of that capacity. Each search decides about one
threshold. A chain that it finds is the new incumbent. If it left out no partial chain and found nothing, the
threshold is a better bound, so that the optimum is proven in the end. Where transfers are free, the covering
bound follows the first searches, and the weights w that it finds leave out more partial chains: those with

    sum over v outside of w[v]  >  sum over k of held(k, t) * left[k] + held(open kind, t) - w(open stage)

where a stage on kind k holds at most the weight held(k, t). Three nodes in a row of 1, 2 and 3 on a fast
device and one that takes twice as long: the slow one runs {1} in 2 and the fast one {2, 3} in 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.registry import imported
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp import exchange
from partitioner.methods.dp._many_kinds_core import (
    BITS,
    FIGURES,
    OUTSIDE,
    REST,
    SPARE,
    Network,
    PartialChains,
    Threshold,
    expand,
)
from partitioner.methods.dp._sparse_core import enter_rows
from partitioner.methods.dp.bracket import UNKNOWN, UNLIMITED, Asked, Decision, Stopped, ThresholdRule
from partitioner.methods.dp.chain import growth_of
from partitioner.methods.dp.forms import turned_stages
from partitioner.methods.dp.linear import LinearBracket, LinearSearch
from partitioner.methods.dp.many_kinds_prices import SetPrices, prices_of, prices_within
from partitioner.methods.loads import value_of
from partitioner.methods.method import ROUNDING, Part, Settings
from partitioner.methods.units import load_unit
from partitioner.problem.arrays import Bools
from partitioner.problem.variants import ChainProblem
from partitioner.workload.devices import COMMUNICATION_MODELS

if TYPE_CHECKING:
    from partitioner.methods.bounds.cover import Covering
COVERING = "partitioner.methods.bounds.cover:covering_of"  # imported when it is needed: it loads a solver


@dataclass(frozen=True)
class ManyKindsEffort:
    """How wide searches are, and how many prices are tried.

    Parameters
    ----------
    first_width, wider
        Partial chains of each level in the first searches, and the factor for the next ones.
    fine, wide, later
        Fractions of the value: the least step below it where loads have no unit; intervals that are halved;
        and how far below the value searches look after the first ones.
    trials
        The searches of one width and direction that aim at a better bound.
    unit_slack
        The fraction of a unit of loads by which a bound may exceed a multiple of it through rounding.
    before_cover, cover_share
        The partial chains that are extended before the covering bound is raised, times the square of kinds x
        supernodes, so that runs that end in a second do without it; and the share of the time left for it.
    most_chains
        The partial chains that are extended in all searches of a run without a time limit.
    slice, most_known
        Extensions between two readings of the clock, and thresholds whose prices are kept; neither changes a
        result.
    """

    first_width: int = 100
    wider: int = 5
    fine: float = 0.001
    wide: float = 0.02
    later: float = 0.1
    trials: int = 3
    unit_slack: float = 1e-6
    before_cover: float = 3e10
    cover_share: float = 0.4
    most_chains: int = 6_000_000
    slice: int = 2_000_000
    most_known: int = 8


EFFORT = ManyKindsEffort()


class LevelTrace(NamedTuple):
    """What is kept of a level to trace chains back: fields as in ``PartialChains``."""

    parent: NDArray[np.int32]
    node: NDArray[np.int32]
    kind: NDArray[np.int16]
    opened: Bools


@dataclass(eq=False)
class LevelSearch:
    """The search in one direction.

    Parameters
    ----------
    problem, relaxation
        A problem, and its relaxation.
    settings
        Say when to end and how much memory may be taken.
    backwards
        Whether the problem is a turned one.
    chains
        Partial chains extended so far.
    cover
        The covering bound of the problem that is not turned; None before it was raised.
    """

    problem: ChainProblem
    relaxation: Relaxation
    settings: Settings
    backwards: bool = False
    chains: int = 0
    cover: Covering | None = None
    prices: SetPrices = field(init=False)
    network: Network = field(init=False)
    known: dict[float, SetPrices] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.prices = prices_of(self.problem, self.relaxation)
        self.network = _network(self.problem)

    @property
    def words(self) -> int:
        """How many words hold a set of supernodes."""
        return -(-self.problem.n // BITS)

    @property
    def widest(self) -> int:
        """How many partial chains of a level the memory budget holds, while the next level is made."""
        row = 24 * self.words + 2 * len(self.problem.count) + 120
        return max(1, self.settings.memory_budget // (4 * row + 12 * self.problem.n))

    def find(self, load: float, width: int, exact: bool = False) -> Decision:
        """Look for a chain in which no load exceeds `load`; each level keeps at most `width` partial chains.

        With `exact` the search ends where a level has more. The answer names no value.

        Raises
        ------
        Stopped
            If a limit of the settings is reached.
        """
        bar, n = self._threshold(load), self.problem.n
        labels, complete = _root(self.problem, bar, self.words), True
        history: list[LevelTrace] = []
        for level in range(n):
            labels, all_kept = self._next(bar, labels, width, level == n - 1)
            complete = complete and all_kept
            history.append(LevelTrace(labels.parent, labels.node, labels.kind, labels.opened))
            if not labels.room or (exact and not complete):
                return Decision(complete=complete)
        return Decision(_stages(history), complete=complete)

    @property
    def _exhausted(self) -> bool:
        """Whether the chains are too many for a run that counts them."""
        counted = self.settings.deadline is None or self.settings.deterministic
        return counted and self.chains > EFFORT.most_chains

    def _threshold(self, load: float) -> Threshold:
        """Return the arrays of a threshold; its prices know which supernodes no longer fit a kind."""
        if load not in self.known:
            if len(self.known) == EFFORT.most_known:
                self.known.clear()
            self.known[load] = prices_within(self.problem, self.prices, load)
        bar = _threshold(self.problem, self.known[load], load)
        held = None if self.cover is None else self.cover.held(load)
        if held is None:
            return bar
        share = held[0][::-1] if self.backwards else held[0]
        return bar._replace(share=np.ascontiguousarray(share), most_share=held[1])

    def _next(self, bar: Threshold, old: PartialChains, width: int, last: bool) -> tuple[PartialChains, bool]:
        """Return the partial chains of the next level, and whether these are all."""
        closed, complete = np.full(_table_size(old.room), -1, np.int32), True
        least = self.problem.n * (len(self.problem.count) + 1)
        new = empty_chains(2 * (old.room + least), self.words, len(self.problem.count))
        slots = np.full(_table_size(new.room), -1, np.int32)
        at = count = 0
        while at < old.room:
            if self.settings.expired or self._exhausted:
                raise Stopped
            end = min(at + EFFORT.slice // least + 1, old.room)
            reached, count = expand(self.network, bar, old, (at, end), new, count, (slots, closed), last)
            self.chains += reached - at
            at = reached
            if at < end:
                if count > max(2 * self.widest, 4 * least):
                    new, count, complete = new.best(count, self.widest), self.widest, False
                new = new.grown()
                slots = np.full(_table_size(new.room), -1, np.int32)
                enter_rows(new.key[:count, 2].copy(), slots)
        return new.best(count, width), complete and count <= width


def empty_chains(room: int, words: int, kinds: int) -> PartialChains:
    """Return arrays for `room` partial chains, not filled."""
    return PartialChains(
        held=np.empty((room, 3 * words), np.int64),
        used=np.empty((room, kinds), np.int16),
        kind=np.empty(room, np.int16),
        real=np.empty((room, FIGURES), np.float64),
        key=np.empty((room, 3), np.int64),
        score=np.empty(room, np.float64),
        parent=np.empty(room, np.int32),
        node=np.empty(room, np.int32),
        opened=np.empty(room, np.bool_),
    )


def _table_size(rows: int) -> int:
    """Return the least power of two that is at least twice the number of rows."""
    return 1 << int(2 * rows).bit_length()


def _root(problem: ChainProblem, bar: Threshold, words: int) -> PartialChains:
    """Return the empty chain as the only row."""
    root = empty_chains(1, words, len(problem.count))
    for array in root:
        array[:] = 0
    root.kind[:] = root.node[:] = -1
    for v in np.flatnonzero(np.diff(problem.predecessors.start) == 0).tolist():
        root.held[0, words + v // BITS] |= 1 << (v % BITS)
    row = -1 if bar.rows else 0
    root.real[0, REST] = bar.weight[row].sum()
    root.real[0, OUTSIDE] = bar.share.sum()
    root.real[0, SPARE] = problem.count @ bar.capacity[row]
    return root


def _stages(history: list[LevelTrace]) -> list[Part]:
    """Return the stages of the first chain of the last level."""
    found: list[tuple[int, list[int]]] = []
    row, nodes = 0, []
    for level in history[::-1]:
        nodes.append(int(level.node[row]))
        if level.opened[row]:
            found.append((int(level.kind[row]), nodes))
            nodes = []
        row = int(level.parent[row])
    return [Part(kind, np.sort(np.array(nodes, dtype=np.int64))) for kind, nodes in found[::-1]]


def _network(problem: ChainProblem) -> Network:
    before, after, nets = problem.predecessors, problem.successors, problem.nets
    rng = np.random.default_rng(problem.n)
    return Network(
        work=np.ascontiguousarray(problem.work()),
        size=problem.size,
        memory=np.where(problem.memory >= problem.size.sum(), np.inf, problem.memory),
        transfer_factor=problem.transfer_factor,
        communication=COMMUNICATION_MODELS.index(problem.communication),
        most=problem.count,
        before_start=before.start,
        before=before.items,
        after_start=after.start,
        after=after.items,
        net_start=nets.of_node.start,
        net=nets.of_node.items,
        pin_start=nets.pins.start,
        pin=nets.pins.items,
        source=nets.source,
        growth=np.ascontiguousarray(growth_of(problem)),
        code=rng.integers(-(2**63), 2**63 - 1, problem.n),
    )


def _threshold(problem: ChainProblem, prices: SetPrices, load: float) -> Threshold:
    """Return the arrays of a threshold; the kinds that are not in a set are not counted there."""
    priced = prices.memory > 0
    room = np.where(priced, problem.memory, 0.0) * prices.memory
    cheapest = problem.transfer_factor[problem.pays].min(initial=1.0)
    return Threshold(
        load=float(load),
        cost=np.minimum(problem.nets.cost, 2 * load / cheapest),
        rows=prices.by_set,
        time_price=prices.time,
        memory_price=prices.memory,
        capacity=prices.time * load + room,
        weight=prices.weight,
        share=np.zeros(problem.n),
        most_share=np.zeros(len(problem.count)),
    )


class LevelEffort(NamedTuple):
    """The effort of one search.

    Parameters
    ----------
    backwards
        Whether it begins with the last stage.
    width, exact
        See :meth:`partitioner.methods.dp.many_kinds.LevelSearch.find`.
    """

    backwards: bool
    width: int
    exact: bool = False


class ManyKindsSearch(LinearBracket[LevelEffort]):
    """The bracket of the best chain, which searches of both directions narrow.

    Parameters
    ----------
    linear
        The best chain so far and its bound; improved by :meth:`run`.
    relaxation
        The relaxation of its problem.
    settings
        Say when to end.
    """

    def __init__(
        self, linear: LinearSearch[ChainProblem], relaxation: Relaxation, settings: Settings
    ) -> None:
        super().__init__(linear, settings)
        problem = _plain(linear.problem)
        unit = load_unit(problem)
        self.unit = unit if unit.is_integer() else 0.0  # sums of whole numbers are exact
        if self.unit and np.isfinite(self.bound):
            self.bound = float(np.ceil(self.bound / self.unit - EFFORT.unit_slack) * self.unit)
        forwards = LevelSearch(problem, relaxation, settings)
        backwards = LevelSearch(problem.turned(), relaxation, settings, backwards=True)
        self.ways = [forwards, backwards]
        self.before_cover = EFFORT.before_cover / (problem.n * len(problem.count)) ** 2
        free = not pays_for_nets(problem) and int(problem.count.sum()) > 1
        self.exchange = exchange.KindExchange(problem, settings.seed) if free else None

    @property
    def chains(self) -> int:
        """Partial chains extended so far."""
        return sum(way.chains for way in self.ways)

    def run(self) -> None:
        """Search with ever wider levels until the bracket is closed or a limit is reached."""
        width, widest = EFFORT.first_width, min(way.widest for way in self.ways)
        try:
            while not self.over:
                most = min(width, widest)
                for backwards in (False, True):
                    self.ask_by(self._descending(width > EFFORT.first_width), LevelEffort(backwards, most))
                for backwards in (False, True):
                    self.ask_by(self._raising(), LevelEffort(backwards, most, exact=True))
                if width >= widest:
                    return
                if self.ways[0].cover is None and self.chains >= self.before_cover:
                    self.cover()
                width *= EFFORT.wider
        except Stopped:
            return

    def cover(self) -> None:
        """Raise the bound by the covering bound, whose weights also leave out partial chains."""
        problem, settings, share = self.linear.problem, self.settings, EFFORT.cover_share
        if pays_for_nets(problem) or np.isinf(self.value):
            return
        limited = settings if settings.deterministic else settings.within(share * settings.clock.left)
        relaxation = replace(self.linear.relaxation, bound=self.bound)
        covering: Covering = imported(COVERING)(problem, relaxation, settings, self.unit)
        covering.rise(self.value, settings.gap, lambda: limited.expired, lambda _: None)
        self.bound = min(covering.bound, self.value)
        for way in self.ways:
            way.cover = covering

    def _exchange(self) -> None:
        """Exchange kinds of the best chain for about as long as the levels have taken."""
        search = self.exchange
        while search is not None and self.stages is not None and not self.over:
            threshold = self._below(0)
            if threshold <= 0 or not search.due(self.chains):
                return
            if self.settings.expired:
                raise Stopped
            found = search.attempt(self.stages, threshold)
            if found is not None:
                self.linear.offer(*found)

    def decide(self, threshold: float, effort: LevelEffort) -> Decision:
        """Return a chain within a threshold; unknown if it is no better than the best one by rounding."""
        answer = self.ways[effort.backwards].find(threshold, effort.width, effort.exact)
        if answer.stages is None:
            return answer
        problem, stages = self.linear.problem, answer.stages
        stages = turned_stages(stages, problem.n) if effort.backwards else stages
        value = value_of(problem, stages)
        return UNKNOWN if value >= self.value else Decision(stages, value, answer.complete)

    def ask(self, threshold: float, effort: LevelEffort) -> Decision:
        """Narrow the bracket by one search, report the progress, and exchange kinds."""
        answer = super().ask(threshold, effort)
        self.settings.report_progress("partial chains", self.chains, 0, self.value, self.bound)
        self._exchange()
        return answer

    def _descending(self, later: bool) -> ThresholdRule:
        """Return the rule that looks for better chains until a search that aims just below the value fails.

        While the interval from :attr:`low` up to the value is wide, it is halved: in the first searches
        always, in `later` ones after a chain was found.
        """
        step, last = 0, 0.0

        def rule(asked: Asked | None) -> float | None:
            nonlocal step, last
            if asked is None:
                self.low = max(self.low, (1 - EFFORT.later) * self.value) if later else self.low
            elif not asked.improved and not asked.decision.complete and asked.threshold >= last:
                return None
            else:
                step = step + 1 if asked.improved else 0
                self.low = self.bound if asked.decision.complete else self.low
            value, last = self.value, self._below(0)
            halved = EFFORT.wide * value < value - self.low < np.inf and (step or not later)
            load = self._whole(self.middle()) if halved else self._below(step)
            return load if load > self.low else last

        return rule

    def _raising(self) -> ThresholdRule:
        """Return the rule that halves the interval from the bound to a threshold that was not refuted."""
        high, left = self.value, EFFORT.trials

        def rule(asked: Asked | None) -> float | None:
            nonlocal high, left
            if asked is not None:
                high = self.value if asked.decision.complete else asked.threshold
            left -= 1
            load = self._whole((self.bound + high) / 2)
            return None if left < 0 or np.isinf(high) or load <= self.bound else load

        return rule

    def _below(self, step: int) -> float:
        """Return a threshold below the value by a step; for 0 the largest one that proves the value."""
        value = self.value
        if np.isinf(value):
            return UNLIMITED
        if step == 0:
            return self._whole(value - self.unit / 2) if self.unit else value * (1 - ROUNDING)
        return max(self._whole(value - max(self.unit, EFFORT.fine * value) * 2.0**step), self.bound)

    def _whole(self, load: float) -> float:
        """Return the largest load up to the given one that stages can have."""
        return float(np.floor(load / self.unit) * self.unit) if self.unit else load

    def refute(self, threshold: float, _: LevelEffort) -> None:
        """Raise the bound: no chain has a load of at most the threshold, and loads may have a unit."""
        if threshold == UNLIMITED:
            self.bound = np.inf
        elif threshold >= self._below(0):
            self.bound = self.value
        else:
            self.bound = max(self.bound, threshold + self.unit)


def pays_for_nets(problem: ChainProblem) -> bool:
    """Return whether some present kind pays for transfers, and some net has a cost."""
    return bool(problem.pays[problem.count > 0].any() and problem.nets.cost.any())


def _plain(problem: ChainProblem) -> ChainProblem:
    """Return the problem without transfer factors if no stage pays."""
    free = np.zeros_like(problem.transfer_factor)
    return problem if pays_for_nets(problem) else replace(problem, transfer_factor=free)


def improve(linear: LinearSearch[ChainProblem], relaxation: Relaxation, settings: Settings) -> None:
    """Improve the chain and the bound of `linear`; an infinite bound says that there is no chain.

    The bound stays as it is if free nodes were merged at the risk of losing the optimum.
    """
    known = linear.bound
    ManyKindsSearch(linear, relaxation, settings).run()
    linear.affordable = linear.problem  # this search leaves out no device
    if not linear.problem.lossless:
        linear.bound = known
