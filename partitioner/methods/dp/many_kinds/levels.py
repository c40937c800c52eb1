"""One search for a chain within a threshold: partial chains of ever more supernodes, the best ones kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.bracket import Decision, Stopped
from partitioner.methods.dp.many_kinds.arrays import (
    BITS,
    REST,
    SPARE,
    Network,
    PartialChains,
    Threshold,
    empty_chains,
)
from partitioner.methods.dp.many_kinds.kernel import enter, expand, fill_weights, improve_prices
from partitioner.methods.dp.table import growth_of
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Bools, Floats
from partitioner.problem.problem import Problem
from partitioner.problem.variants import ChainProblem
from partitioner.workload.devices import COMMUNICATION_MODELS

MOST_ENTRIES = 20_000_000  # sets x kinds x supernodes; above that there is one row of prices for all sets
ROUNDS, FURTHER_ROUNDS = 150, 40
EFFORT, FURTHER_EFFORT = 60_000_000, 16_000_000  # entries x rounds
FIRST_STEP, LAST_STEP = 0.3, 0.01


class SetPrices(NamedTuple):
    """The prices for each set of kinds, the set of kinds in bits: R sets, or one row for every set.

    Parameters
    ----------
    present
        Shape (R, K): whether each kind is in the set.
    time, memory
        Shape (R, K): the prices.
    weight
        Shape (R, n): the least cost of each supernode on any kind of the set, infinity if none may run it.
    """

    present: Bools
    time: Floats
    memory: Floats
    weight: Floats

    @property
    def by_set(self) -> bool:
        """Whether every set of kinds has a row."""
        return len(self.time) > 1


def prices_of(problem: Problem, relaxation: Relaxation) -> SetPrices:
    """Return prices for every set of kinds; one row, those of the relaxation, if the sets are too many."""
    kinds, work = len(problem.count), problem.work()
    present = np.ones((1, kinds), dtype=bool)
    if kinds <= 16 and kinds * problem.n << kinds <= MOST_ENTRIES:
        present = (np.arange(1 << kinds)[:, None] >> np.arange(kinds)) & 1 == 1
    time = np.tile(relaxation.time_price, (len(present), 1))
    memory = np.tile(relaxation.memory_price, (len(present), 1))
    rounds = min(ROUNDS, EFFORT // (len(present) * work.size))
    return _priced(problem, work, present, time, memory, rounds)


def prices_within(problem: Problem, prices: SetPrices, load: float) -> SetPrices:
    """Return prices for stages of at most this load: kinds on which a supernode takes more do not count."""
    work = problem.work()
    fits = np.where(work <= load, work, np.inf)
    if (fits == work).all():
        return prices
    rounds = min(FURTHER_ROUNDS, FURTHER_EFFORT // (len(prices.present) * work.size))
    return _priced(problem, fits, prices.present, prices.time, prices.memory, rounds)


def _priced(
    problem: Problem, work: Floats, present: Bools, time: Floats, memory: Floats, rounds: int
) -> SetPrices:
    """Return the prices with the weights that follow, improved where time alone has prices."""
    work = np.ascontiguousarray(work)
    if len(present) > 1 and not memory.any():
        best, steps = time.copy(), np.geomspace(FIRST_STEP, LAST_STEP, rounds)
        improve_prices(time.copy(), best, work, problem.count, present, steps)
        time = best
    weight = np.empty((len(present), problem.n))
    fill_weights(time, memory, work, problem.size, present, weight)
    return SetPrices(present, time, memory, weight)


SLICE = 2_000_000  # extensions that may be made between two readings of the clock
MOST_KNOWN = 8  # thresholds whose prices are kept
MOST_CHAINS = 6_000_000  # partial chains that are extended in all searches of a run without a time limit


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
    chains
        Partial chains extended so far.
    """

    problem: ChainProblem
    relaxation: Relaxation
    settings: Settings
    chains: int = 0
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
        return counted and self.chains > MOST_CHAINS

    def _threshold(self, load: float) -> Threshold:
        """Return the arrays of a threshold; its prices know which supernodes no longer fit a kind."""
        if load not in self.known:
            if len(self.known) == MOST_KNOWN:
                self.known.clear()
            self.known[load] = prices_within(self.problem, self.prices, load)
        return _threshold(self.problem, self.known[load], load)

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
            end = min(at + SLICE // least + 1, old.room)
            reached, count = expand(self.network, bar, old, at, end, new, count, slots, closed, last)
            self.chains += reached - at
            at = reached
            if at < end:
                if count > max(2 * self.widest, 4 * least):
                    new, count, complete = new.best(count, self.widest), self.widest, False
                new = new.grown()
                slots = np.full(_table_size(new.room), -1, np.int32)
                enter(new.key, count, slots)
        return new.best(count, width), complete and count <= width


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
    )
