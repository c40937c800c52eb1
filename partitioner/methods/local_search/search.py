"""Annealing in rounds, from fresh starts and from the best places so far, within limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from partitioner.methods.loads import value_of
from partitioner.methods.local_search.arrays import DEBT, Control
from partitioner.methods.local_search.contiguity import leaves_and_returns
from partitioner.methods.local_search.kernel import anneal
from partitioner.methods.local_search.model import model_of, new_state, parts_at, places_of
from partitioner.methods.method import Part, Settings
from partitioner.methods.rules import obeys
from partitioner.preprocess.problem import Ints, Problem

SHIFTS_PER_NODE = 10_000
CHUNK = 400_000
MIX = np.cumsum([0.35, 0.1, 0.1, 0.3, 0.15])
HOT, MILD, COLD = 0.03, 0.01, 0.0001
TIE = 0.001
DOUBLINGS = 5
STRICT = 0.3


def improve(
    problem: Problem,
    start: Sequence[Part] | None,
    settings: Settings,
    seconds: float,
    seed: int = 0,
    *,
    floor: float = 0.0,
    moves: int | None = None,
) -> tuple[float, list[Part]] | None:
    """Search for better parts, from given ones or from nothing.

    Parameters
    ----------
    problem
        For a free or a convex split.
    start
        Parts to start from; they may break the limits. None: start at random.
    settings
        Says when to stop; nothing else of it matters.
    seconds
        Wall time after which to stop.
    seed
        The same seed and `moves` give the same parts.
    floor
        Stop once the value is no larger.
    moves
        Stop after that many moves of one supernode; None for no limit.

    Returns
    -------
    tuple or None
        The value and the parts, never worse than a feasible start; None if none were found that obey
        the limits.
    """
    search = Search(problem, seed)
    if start is not None:
        search.offer(start)
    end = time.perf_counter() + seconds

    def go_on() -> bool:
        late = time.perf_counter() >= end or settings.expired
        return not late and search.value > floor and (moves is None or search.shifts < moves)

    search.run(go_on)
    return None if search.parts is None else (search.value, search.parts)


class Search:
    """A search in progress.

    Parameters
    ----------
    problem
        For a free or a convex split.
    seed
        Of everything random.

    Attributes
    ----------
    value, parts
        The best that obeys the limits.
    shifts
        Moves of one supernode so far.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.random = problem, np.random.default_rng(seed)
        self.model = model_of(problem)
        self.state = new_state(self.model)
        self.bits = self.random.integers(1, 2**63, 1, dtype=np.uint64)
        self.best = np.zeros(problem.n + 1)
        self.best[-1] = np.inf
        self.value, self.parts = np.inf, None
        self.start: Ints | None = None
        self.shifts = 0
        pins, devices = len(self.model.net) / problem.n, len(self.model.room)
        self.chunk = int(CHUNK / (4 + pins + devices / 4))

    value: float
    parts: list[Part] | None

    def offer(self, parts: Sequence[Part]) -> None:
        """Start from these parts, and keep them if they are feasible and best so far."""
        kinds = np.bincount([part.kind for part in parts], minlength=len(self.problem.count))
        if (kinds > self.problem.count).any():
            return
        place = places_of(self.problem, parts)
        self.keep(place)
        if self._is_contiguous(place):
            self.start = place

    def run(self, go_on: Callable[[], bool]) -> None:
        """Round after round while `go_on` says so."""
        if len(self.model.room) < 2 or self.problem.n == 0:
            self.keep(np.zeros(self.problem.n, dtype=np.int64))
            return
        length = SHIFTS_PER_NODE * self.problem.n
        number = 0
        while go_on():
            again = self.start if number == 0 or self.parts is None else self.best[:-1]
            fresh = again is None or (self.start is None and number % 2 == 0)
            self.state.place[:] = self.fresh_place() if fresh or again is None else again
            self._round(HOT if fresh else MILD, length, go_on)
            number += 1

    def _round(self, warm: float, length: int, go_on: Callable[[], bool]) -> None:
        """Cool down from `warm` to `COLD` within `length` shifts."""
        end, strict = self.shifts + length, STRICT
        temperature = warm
        while self.shifts < end and go_on():
            left = end - self.shifts
            below = temperature * (COLD / temperature) ** min(1.0, self.chunk / left)
            control = Control(temperature, strict, TIE, DOUBLINGS)
            before = self.best[-1]
            self.shifts += anneal(
                self.model, self.state, control, MIX, self.bits, self.best, min(self.chunk, left)
            )
            if self.best[-1] < before:
                self.keep(self.best[:-1].astype(np.int64))
            kept = self.state.ledger[:, DEBT].max() <= 0
            strict *= 0.9 if kept else 1.3
            strict = min(max(strict, STRICT), 1e6)
            temperature = below

    def keep(self, place: Ints) -> None:
        """Take note of places that obey the limits and are better than any before."""
        parts = parts_at(self.problem, place)
        value = value_of(self.problem, parts)
        if value < self.value and obeys(self.problem, parts):
            self.value, self.parts = value, parts
            self.best[:-1] = place
        self.best[-1] = self.value

    def fresh_place(self) -> Ints:
        """Places at random; for a convex split runs of a topological order, or all on one device."""
        devices = len(self.model.room)
        if not self.problem.regions:
            lots = self.random.random((devices, self.problem.n))
            return np.asarray((lots * self.model.allowed.T).argmax(axis=0))
        chain = self.problem.chain
        assert chain is not None
        rank = np.full(self.problem.n, chain.n)
        np.minimum.at(rank, self.problem.member, chain.member)
        cuts = np.sort(self.random.integers(0, chain.n + 1, devices - 1))
        place = self.random.permutation(devices)[np.searchsorted(cuts, rank, side="right")]
        return place if self._is_contiguous(place) else np.full_like(place, self.random.integers(devices))

    def _is_contiguous(self, place: Ints) -> bool:
        devices = len(self.model.room)
        away = np.zeros(len(self.model.owner), dtype=bool)
        return not leaves_and_returns(
            0, np.zeros(devices, dtype=np.int64), self.model.contiguous, place, self.model.owner,
            self.model.before_start, self.model.before, away,
        )  # fmt: skip
