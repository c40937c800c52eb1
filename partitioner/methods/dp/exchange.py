"""Better chains over many kinds of devices by exchanges of kinds, where transfers cost nothing.

With D stages in a row, some of them empty, the excess of a chain at threshold t is

    sum over stages s of max(0, load(s) / t - 1) + max(0, memory(s) / room(s) - 1)

and a chain with no excess is within the threshold. The kinds of two or three stages are exchanged, then
annealing moves supernodes between stages; the chain is kept if its excess is no larger. Three nodes in a row
of 1, 2 and 3 on a fast device and one that takes twice as long: {1, 2} on the fast device and {3} on the slow
one have an excess of 1/5 at threshold 5; exchanged kinds have 1/5 as well, and {1} and {2, 3} have none.

A search that begins with the first stage decides about the kinds of early stages before it knows what is left
for the others; this one changes them later. On 32 random assignments of 70 and 75 tasks to 10 to 19 workers,
it has better values in 20 s than the search by levels alone on 18, by up to 23 %, and a worse one on 1, by
1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.methods.dp._exchange_core import ExchangeModel, Heat, Stages, exchange
from partitioner.methods.loads import part_numbers, value_of
from partitioner.methods.method import Part
from partitioner.methods.places import parts_on
from partitioner.methods.rules import obeys
from partitioner.problem.arrays import Ints
from partitioner.problem.orders import random_order
from partitioner.problem.variants import ChainProblem


@dataclass(frozen=True)
class ExchangeEffort:
    """How long chains are changed, and how much worse a change may be.

    The figures were compared on seven assignments of 70 to 75 tasks to 10 to 19 workers, 6 s each.

    Parameters
    ----------
    moves_each
        Moves after an exchange of kinds, for each supernode; a third and three times as many are no better.
    attempt
        Moves of an attempt, between two readings of the clock.
    first, last, kinds
        Temperatures of moves at the beginning and at the end, and of exchanges, as parts of the mean time of
        a supernode; double and two fifths of the first are worse on four of the seven.
    fresh, fresh_moves
        The temperature at which a new chain is annealed, and its moves for each supernode.
    patience
        Attempts from one chain without a better value before a new one begins; a quarter is worse on two of
        the seven and better on one.
    moves_a_chain, few
        Moves for each partial chain of the search by levels, which take about as long with a `few` kinds;
        with more, the time of a partial chain grows with the square of their number, and so do the moves.
        Without that growth 19 kinds leave the exchanges a sixth of the time.
    later
        The moves less than that before the first exchange, as fewer partial chains prove the optimum of most
        assignments of 25 to 28 tasks.
    """

    moves_each: int = 40
    attempt: int = 300_000
    first: float = 0.05
    last: float = 0.01
    kinds: float = 0.02
    fresh: float = 0.3
    fresh_moves: int = 3_000
    patience: int = 60
    moves_a_chain: int = 45
    few: int = 10
    later: int = 13_500_000


EFFORT = ExchangeEffort()


class KindExchange:
    """A search by exchanges of kinds in progress.

    Parameters
    ----------
    problem
        The problem, whose transfers cost nothing.
    seed
        Seed of everything random.

    Attributes
    ----------
    moves
        Moves of supernodes so far.
    """

    def __init__(self, problem: ChainProblem, seed: int) -> None:
        self.problem, self.moves = problem, 0
        self._random = np.random.default_rng(seed)
        self._bits = self._random.integers(1, 2**63, 1, dtype=np.uint64)
        self._work = problem.work()
        self._mean = float(self._work[np.isfinite(self._work)].mean())
        self._each = min(EFFORT.moves_each * problem.n, EFFORT.attempt)
        self._kinds = np.repeat(np.arange(len(problem.count)), problem.count)
        self._stages: Stages | None = None
        self._known, self._idle = np.inf, 0

    def due(self, chains: int) -> bool:
        """Whether it has made fewer moves than are due after some partial chains of the search by levels."""
        longer = max(1.0, (len(self.problem.count) / EFFORT.few) ** 2)
        return self.moves < EFFORT.moves_a_chain * longer * chains - EFFORT.later

    def attempt(self, stages: Sequence[Part], threshold: float) -> tuple[float, list[Part]] | None:
        """Look for a chain within a threshold, for a limited number of moves.

        Parameters
        ----------
        stages
            The best chain known, from which the first attempts start.
        threshold
            The largest load that is allowed, above 0.

        Returns
        -------
        tuple or None
            The value and the stages of a chain that obeys all rules.
        """
        model = self._model(threshold)
        now = self._start(stages, threshold, model)
        rounds = max(1, EFFORT.attempt // self._each)
        self.moves += rounds * self._each
        excess = exchange(model, now, threshold, self._heat(threshold), rounds, self._each, self._bits)
        self._idle += 1
        if excess > 1e-9:
            return None
        parts = parts_on(now.kind, now.place)
        return (value_of(self.problem, parts), parts) if obeys(self.problem, parts) else None

    def _start(self, stages: Sequence[Part], threshold: float, model: ExchangeModel) -> Stages:
        """Return the stages to change: first the given ones, then those of the last attempt or new ones."""
        if threshold < self._known:
            self._known, self._idle = threshold, 0
        if self._stages is None:
            self._stages = self._padded(stages)
        elif self._idle >= EFFORT.patience:
            self._idle, self._stages = 0, self._fresh()
            moves = EFFORT.fresh_moves * self.problem.n
            exchange(
                model, self._stages, threshold, self._heat(threshold, EFFORT.fresh), 1, moves, self._bits
            )
            self.moves += moves
        return self._stages

    def _padded(self, stages: Sequence[Part]) -> Stages:
        """Return stages with the unused devices behind them as empty ones."""
        used = np.array([stage.kind for stage in stages], dtype=np.int64)
        left = self.problem.count - np.bincount(used, minlength=len(self.problem.count))
        kind = np.concatenate((used, np.repeat(np.arange(len(left)), left)))
        return self._placed(part_numbers(stages, self.problem.n), kind)

    def _fresh(self) -> Stages:
        """Return a random linear order cut into equal numbers of supernodes, and kinds in random order."""
        n, devices = self.problem.n, len(self._kinds)
        order = random_order(self.problem.successors, self.problem.predecessors, self._random)
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n) * devices // n
        return self._placed(place, self._random.permutation(self._kinds))

    def _placed(self, place: Ints, kind: Ints) -> Stages:
        devices = len(kind)
        return Stages(place.astype(np.int64), kind.astype(np.int64), np.zeros(devices), np.zeros(devices))

    def _heat(self, threshold: float, first: float = EFFORT.first) -> Heat:
        """Return the temperatures as parts of the threshold."""
        part = self._mean / threshold
        return Heat(first * part, EFFORT.last * part, EFFORT.kinds * part)

    def _model(self, threshold: float) -> ExchangeModel:
        """Return the costs of stages; what may not run on a kind takes four times the threshold there."""
        before, after = self.problem.predecessors, self.problem.successors
        return ExchangeModel(
            np.ascontiguousarray(np.minimum(self._work, 4 * threshold).T), self.problem.size,
            self.problem.memory, before.start, before.items, after.start, after.items,
        )  # fmt: skip
