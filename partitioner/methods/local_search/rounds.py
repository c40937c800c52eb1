"""Annealing in rounds, from random placements and from the best one so far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

from partitioner.methods.loads import value_of
from partitioner.methods.local_search.arrays import VIOLATION, AnnealingControl
from partitioner.methods.local_search.kernel import anneal
from partitioner.methods.local_search.layouts import Layout
from partitioner.methods.local_search.lengths import Length
from partitioner.methods.local_search.model import new_state
from partitioner.methods.method import Part
from partitioner.methods.places import parts_on
from partitioner.methods.rules import obeys
from partitioner.problem.arrays import Ints

SHIFTS_PER_NODE = 10_000
CHUNKS = 50
CHUNK = 400_000
MIXES = np.cumsum(
    [[0.3, 0.2, 0.05, 0.3, 0.148], [0.2, 0.15, 0.05, 0.5, 0.098], [0.2, 0.4, 0.05, 0.25, 0.098]], axis=1
)
HOT, COLD = 0.03, 0.00003
WARM = (0.003, 0.01, 0.03)
TIES = (0.001, 0.003, 0.01, 0.03)
DOUBLINGS = (4, 5, 6)
STRICT = 0.3
POLISH = 2
LARGE = 20_000


class LocalSearch:
    """A local search in progress.

    Parameters
    ----------
    layout
        The problem, and what its devices stand for.
    seed
        Seed of everything random.

    Attributes
    ----------
    value, parts
        The best value and parts that obey the limits; infinity and None if there are none yet.
    shifts, rounds
        The number of moves of one supernode, and of rounds, so far.
    """

    def __init__(self, layout: Layout, seed: int) -> None:
        problem = layout.problem
        self.layout, self.problem, self.random = layout, problem, np.random.default_rng(seed)
        self.model = layout.model
        self.state = new_state(self.model)
        self.bits = self.random.integers(1, 2**63, 1, dtype=np.uint64)
        self.value: float = np.inf
        self.parts: list[Part] | None = None
        self.start: Ints | None = None
        self.shifts = self.rounds = 0
        self._best = np.full(problem.n + 1, np.inf)
        self._length = Length(SHIFTS_PER_NODE * problem.n)
        effort = 4 + len(self.model.net) / problem.n + len(self.model.room) / 4
        self._chunk = max(1, min(self._length.moves // CHUNKS, int(CHUNK / effort)))

    def offer(self, parts: Sequence[Part]) -> None:
        """Start later rounds from these parts, and keep them if they are feasible and the best so far."""
        kinds = np.bincount([part.kind for part in parts], minlength=len(self.problem.count))
        if (kinds > self.problem.count).any():
            return
        place = self.layout.place_of(parts)
        self.keep(place)
        if self.layout.has_shape(place):
            self.start = place

    def run(self, go_on: Callable[[], bool], limit: int | None = None) -> None:
        """Run rounds while `go_on` returns True, up to a limit on the shifts."""
        for first in np.unique(np.cumsum(self.problem.count) - self.problem.count).tolist():
            self.keep(np.full(self.problem.n, min(first, len(self.model.room) - 1)))
        if len(self.model.room) < 2:
            return
        limit = sys.maxsize if limit is None else limit
        while self.shifts < limit and go_on():
            fresh = self._begin()
            length = (1 if fresh else POLISH) * self._length.moves
            warm = HOT if fresh else float(self.random.choice(WARM))
            before = self.value
            self._round(warm, length, limit, go_on)
            self.rounds += 1
            self._length.learn(self.value < before)

    def _begin(self) -> bool:
        """Choose the placement from which the next round starts; return whether it is a random one."""
        again = self.start if self.parts is None else self._best[:-1]
        fresh = self.rounds % 2 == 0 if self.start is None else self.rounds % 3 == 2
        again = None if fresh else again
        self.state.place[:] = self.layout.random_place(self.random) if again is None else again
        self.keep(self.state.place)
        return again is None

    def _round(self, warm: float, length: int, limit: int, go_on: Callable[[], bool]) -> None:
        """Anneal from `warm` to `COLD` in `length` shifts, with a random energy and mix of moves."""
        begin, end = self.shifts, min(self.shifts + length, limit)
        tie, doublings = float(self.random.choice(TIES)), int(self.random.choice(DOUBLINGS))
        mix, strict = self.random.choice(MIXES), STRICT
        while self.shifts < end and go_on():
            temperature = warm * (COLD / warm) ** ((self.shifts - begin) / length)
            control = AnnealingControl(temperature, strict, tie, doublings)
            budget = min(self._chunk, end - self.shifts)
            self.shifts += anneal(self.model, self.state, control, mix, self.bits, self._best, budget)
            if self.problem.n * len(self.model.room) < LARGE:
                self._keep_best()
            violated = self.state.ledger[:, VIOLATION].max() > 0
            strict = min(strict * 1.3, 1e6) if violated else max(strict * 0.9, STRICT)
        self._keep_best()

    def _keep_best(self) -> None:
        if self._best[-1] < self.value:
            self.keep(self._best[:-1].astype(np.int64))

    def keep(self, place: Ints) -> None:
        """Keep a placement, shape (n,), if it obeys the limits and is better than the best one."""
        parts = parts_on(self.layout.kind, place)
        value = value_of(self.problem, parts)
        if value < self.value and obeys(self.problem, parts):
            self.value, self.parts = value, parts
            self._best[:-1] = place
        self._best[-1] = self.value
