"""A bound on the makespan of pipelines with several stages on some number of devices.

The linear program over the paths and the stages known so far.

The search for the least makespan that no weighted path through the schedule refutes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
from ortools.linear_solver import pywraplp

from partitioner.methods.method import Settings
from partitioner.methods.solvers.backends.backend import apart
from partitioner.methods.virtual_stages.bound_arcs import ArcLists, Dealing, is_decided
from partitioner.methods.virtual_stages.bound_nets import JointNets, with_sure_transfers
from partitioner.methods.virtual_stages.bound_walk import EFFORT as WALK
from partitioner.methods.virtual_stages.bound_walk import ChainWalk
from partitioner.methods.virtual_stages.kernel import path_ends
from partitioner.methods.virtual_stages.pass_graph import PassGraph
from partitioner.problem.arrays import Floats, Ints


class TimedChain(NamedTuple):
    """A pipeline that the search has come to: the length of its longest path, and its cuts, (stages + 1,)."""

    length: float
    borders: Ints


class PathMaster:
    """The weights of paths with which the cheapest of the known stages cost the most.

    The length of a path is linear in the times of the passes, which are the same for all samples:

        max z  with  sum over paths of weight x length >= z  for all known stages, and weights that sum to 1.

    Parameters
    ----------
    paths
        How often each path has the passes of every stage and kind, shape (stages, 3) each.
    """

    def __init__(self, paths: Sequence[Floats]) -> None:
        self.model = pywraplp.Solver.CreateSolver("CLP")
        self.value = self.model.NumVar(-np.inf, np.inf, "")
        self.total = self.model.Constraint(1.0, 1.0)
        self.model.Maximize(self.value)
        self.chains: dict[bytes, Ints] = {}
        self.paths: list[Floats] = []
        self.times: list[Floats] = []
        self.weights: list[pywraplp.Variable] = []
        self.rows: list[pywraplp.Constraint] = []
        for path in paths:
            self.add_path(path)

    def add_path(self, path: Floats) -> None:
        """Add a path."""
        weight = self.model.NumVar(0.0, np.inf, "")
        self.total.SetCoefficient(weight, 1.0)
        for row, length in zip(self.rows, _lengths(self.times, path), strict=True):
            row.SetCoefficient(weight, length)
        self.paths.append(path)
        self.weights.append(weight)

    def add_chain(self, borders: Ints, times: Floats) -> None:
        """Add stages by their cuts, shape (stages + 1,), and the times of their passes, shape (stages, 3)."""
        row = self.model.Constraint(0.0, np.inf)
        row.SetCoefficient(self.value, -1.0)
        for weight, length in zip(self.weights, _lengths(self.paths, times), strict=True):
            row.SetCoefficient(weight, length)
        self.chains[borders.tobytes()] = borders
        self.times.append(times)
        self.rows.append(row)

    def solve(self) -> tuple[Floats, Floats] | None:
        """Return the weighted path and the mixture of the known stages' times; None if the solver fails.

        Both have shape (stages, 3).
        """
        answer = apart(self._solved)
        if answer is None:
            return None
        weights, shares = answer
        weights, shares = np.maximum(weights, 0.0), np.abs(shares)
        if not weights.sum() > 0 or not shares.sum() > 0:
            return None
        path = np.tensordot(weights / weights.sum(), np.stack(self.paths), 1)
        return path, np.tensordot(shares / shares.sum(), np.stack(self.times), 1)

    def _solved(self) -> tuple[Floats, Floats] | None:
        if self.model.Solve() != pywraplp.Solver.OPTIMAL:
            return None
        weights = np.array([weight.solution_value() for weight in self.weights])
        return weights, np.array([row.dual_value() for row in self.rows])


def _lengths(many: list[Floats], one: Floats) -> list[float]:
    """Return the sum of the products of each of some arrays with one, all of shape (stages, 3)."""
    found = np.stack(many).reshape(len(many), -1) @ one.ravel() if many else np.empty(0)
    return cast(list[float], found.tolist())


@dataclass(frozen=True)
class PathBoundEffort:
    """How close the bound on paths comes to the value, and what it tries for that.

    Not varied one by one. Measured together on training on four devices (``interleaved_1f1b``, 60 s), by the
    stages of each device: the bound is 0.2 to 1.2 % below the makespan of gnmt with 2, 3 and 4, and 0 to
    1.2 % below that of bert24.

    Parameters
    ----------
    narrow, unsure
        The distance of bound and value at which the search ends, as a fraction of the value, and if walks
        have been given up.
    below
        How far below the value all is to be refuted first, as a fraction of the value.
    ahead
        The steps by which the pipelines whose stages all wait are searched before others.
    close
        The distance at which prices count as the best ones, as a fraction of the value.
    prices
        The weighted paths that are tried for a set of stages.
    rounds, little
        The times that stages are closed at one makespan; it ends early if more than the fraction `little` of
        the stages is left.
    paths, known
        The paths that are kept for the linear program, and for new sets of stages.
    aside
        The length that the passes of other devices have in the path along one device.
    further, patience
        The factors for the steps of walks: each time that one is given up, and at most.
    passes, choices
        The most passes of a pipeline, and the most choices of the stages that do not wait.
    few
        The searches for a number of devices up to which walks have all their steps.
    cuts
        The most cuts.
    exact
        The most cuts between which times take eight bytes: with four BERT-12 (``zbv``) has 4.8 % for 5.2 %
        in 60 s, and small graphs lose proofs of optimality.
    listing, second, memory
        The part of the time in which all stages should be listed, and what each may take, in seconds and
        bytes, half of them where times take four: cuts are fewer than `cuts` where that is not enough.
    walked
        Steps after which no walk that was given up is done again.
    halved
        The most distances of a bound and the makespan.
    left_out, cuts_left
        Where cuts are too many, the parts of the work that are left out, the first with which they are at
        most `cuts_left`. Inception-v3 has 1,079 with 0.2: its bound (60 s) is 18.8 % below the makespan under
        ``interleaved_1f1b`` and 19.2 % under ``zbv``, without any 33 % and 24 %.
    light, fewer, roughly
        The parts of the work that light supernodes take at most, by how much classes are fewer than smaller
        ones or single cuts, and the distance at which a search between classes ends. BERT-6
        (``interleaved_1f1b``, 60 s): 10.6 %; 13.8 with 0.04 and 0.01, 26.6 with 0.01 alone, 37.5 without.
    """

    narrow: float = 5e-4
    unsure: float = 0.005
    below: float = 0.03
    ahead: int = 2_000_000
    close: float = 1e-4
    prices: int = 120
    rounds: int = 6
    little: float = 0.98
    paths: int = 400
    known: int = 400
    aside: float = 1e-3
    further: int = 8
    patience: int = 64
    passes: int = 150_000
    choices: int = 4000
    few: int = 100
    cuts: int = 4000
    exact: int = 1000
    listing: float = 0.35
    second: float = 9e-8
    memory: int = 56
    walked: int = 500_000_000
    halved: int = 10_000
    left_out: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4)
    cuts_left: int = 1200
    light: tuple[float, ...] = (0.02, 0.005)
    fewer: float = 0.6
    roughly: float = 0.005


EFFORT = PathBoundEffort()
ROUNDING = 1e-9


@dataclass(eq=False)
class PathBound:
    """A lower bound on the makespan of the pipelines on some number of devices, and good ones.

    Parameters
    ----------
    graph
        The passes of a batch.
    ranks
        Shape (stages,): the device of every stage.
    dealing
        For each device the kinds of which it may be.
    apart
        The numbers of the stages that do not wait for others.
    open_lists
        Returns the stages that there may be, with the transfers that they surely pay.
    nets
        The nets that are not in the times of stages.
    times_of
        Returns the times of the passes of a chain, shape (stages, 3), by its cuts, shape (stages + 1,).
    settings
        Say when the run must end.
    bound, high
        A lower bound on the makespan of these pipelines, and up to where it may rise.
    narrow
        The distance of both at which the search ends, as a fraction.
    first_steps, most_steps
        The steps after which the first walk is given up, and further ones.
    """

    graph: PassGraph
    ranks: Ints
    dealing: Dealing
    apart: frozenset[int]
    open_lists: Callable[[], ArcLists]
    nets: JointNets
    times_of: Callable[[Ints], Floats]
    settings: Settings
    bound: float
    high: float
    narrow: float = EFFORT.narrow
    first_steps: int = WALK.first
    most_steps: int = WALK.steps
    paths: list[Floats] = field(default_factory=list)
    known: dict[bytes, Ints] = field(default_factory=dict)
    found: float = np.inf
    tried: bool = False
    weighted: list[Floats] = field(default_factory=list)
    kept: list[Floats] = field(default_factory=list)
    given_up: bool = False
    walked: int = 0

    def __post_init__(self) -> None:
        self.rows = self._along_devices()
        self.paths += self.rows

    @property
    def decided(self) -> bool:
        """Whether every device is of one kind."""
        return is_decided(self.dealing)

    @property
    def closed(self) -> bool:
        """Whether the search has ended."""
        return self.high - self.bound <= (EFFORT.unsure if self.given_up else self.narrow) * self.high

    def share_steps(self, searches: int) -> None:
        """Let walks be shorter where there are many searches."""
        self.first_steps = WALK.first * EFFORT.few // max(searches, EFFORT.few)

    def go_on_from(self, other: PathBound) -> None:
        """Begin with the paths of another search in the same schedule."""
        self.paths, self.weighted, self.kept = [*other.paths], [*other.weighted], [*other.kept]
        self.first_steps = other.first_steps

    def go_on(self, high: float) -> bool:
        """Open the search up to a makespan again, for longer walks; return whether there may be any."""
        if not self.given_up or self.most_steps >= WALK.steps * EFFORT.patience:
            return False
        self.high, self.given_up, self.most_steps = high, False, self.most_steps * EFFORT.further
        return True

    def begin(self, limit: float, refuting: bool = False) -> Iterator[TimedChain]:
        """Raise the bound to the best prices of paths, or to a limit; yield pipelines as :meth:`halve`.

        If the limit is to be refuted, the bound is not raised where prices alone cannot do that.
        """
        low = yield from self._priced(self.open_lists(), limit, refuting)
        self.bound = max(self.bound, low if np.isinf(low) else min(low, limit))

    def halve(self) -> Iterator[TimedChain]:
        """Halve the distance between the bound and the makespan below which it is sought.

        The first time a short walk is to refute all up to a little below that makespan.

        Yields
        ------
        TimedChain
            A pipeline, which may be a good one.
        """
        below = self.high * (1 - EFFORT.below)
        first, self.tried = not self.tried and below > self.bound, True
        limit, steps = (below, self.first_steps) if first else ((self.bound + self.high) / 2, self.most_steps)
        if (yield from self._refuted(limit, steps, first)):
            self.bound = limit
        elif not self.settings.expired:
            self.high = min(self.high if first else limit, self.found)

    def _refuted(self, limit: float, steps: int, priced: bool) -> Generator[TimedChain, None, bool]:
        """Return whether no pipeline has a makespan of at most `limit`; yield pipelines found on the way.

        `priced` says that prices for all stages have been sought before.
        """
        lists, most = self.open_lists(), limit * (1 + ROUNDING)
        for round_ in range(EFFORT.rounds):
            if round_ or not priced:
                low = yield from self._priced(lists, limit, True)
                if low > most:
                    return True
            count = len(lists.items)
            lists = lists.up_to(self.weighted[-1:], most).up_to(self.rows, most)
            lists = with_sure_transfers(lists, self.nets)
            if len(lists.items) > EFFORT.little * count or self.settings.expired:
                break
        return (yield from self._walked(lists, most, steps))

    def _walked(self, lists: ArcLists, most: float, steps: int) -> Generator[TimedChain, None, bool]:
        """Return whether a walk over the chains of open stages finds none up to `most`; yield good ones."""
        paths = [*self.rows, *self.weighted[-WALK.weighted :], *self.kept]
        walk = ChainWalk(lists, self.nets, paths, most, self.settings, steps)
        while not (walk.ended or walk.given_up):
            borders = walk.following()
            if borders is None:
                yield from self._shorten(walk)
                continue
            times = self.times_of(borders)
            path = self._path(times)
            length = float((path * times).sum())
            if length < self.found:
                self.found = length
                yield TimedChain(length, borders)
            if length <= most:
                break
            walk.compare(path)
        self.kept = walk.paths[: WALK.kept]
        self.walked += walk.steps
        self.given_up |= walk.given_up
        return walk.ended

    def _shorten(self, walk: ChainWalk) -> Iterator[TimedChain]:
        """Compare weighted paths that exclude as short a beginning of the walk's chain as is found."""
        low, high, excluded = walk.same, walk.stages, 0
        stages = high
        while not walk.given_up:
            if (yield from self._excluded(walk, stages)):
                high, excluded = stages, stages
            else:
                low = stages + 1
            if low >= high:
                break
            stages = (low + high) // 2
        walk.skip(excluded)

    def _excluded(self, walk: ChainWalk, stages: int) -> Generator[TimedChain, None, bool]:
        """Compare the path that excludes the first stages of the walk's chain best; return if it does."""
        master, lists = PathMaster(walk.paths), with_sure_transfers(walk.beginning(stages), self.nets)
        low, paths = yield from self._raised(lists, walk.limit, master, True)
        walk.steps += WALK.priced
        for path in paths[-1:]:
            walk.compare(path)
        return low > walk.limit * (1 + ROUNDING)

    def _priced(
        self, lists: ArcLists, limit: float, refuting: bool = False
    ) -> Generator[TimedChain, None, float]:
        """Return a lower bound for pipelines of open stages, see :meth:`_raised`; keep what it has found."""
        master = PathMaster(self.paths[-EFFORT.paths :])
        self._add_known(lists, master)
        low, paths = yield from self._raised(lists, limit, master, refuting)
        self.paths, self.known = master.paths, self.known | master.chains
        self.weighted += paths
        return low

    def _raised(
        self, lists: ArcLists, limit: float, master: PathMaster, refuting: bool
    ) -> Generator[TimedChain, None, tuple[float, list[Floats]]]:
        """Return a lower bound for pipelines of open stages; it is raised until it exceeds a limit.

        With it come the weighted paths that have raised it, the best one last. If the limit is to be refuted,
        the bound is not raised where that cannot succeed.
        """
        low, high, found = -np.inf, np.inf, list[Floats]()
        for _ in range(EFFORT.prices):
            mixed = master.solve() if master.chains else None
            path = self._first_path(master) if mixed is None else mixed[0]
            value, best = lists.least(path)
            if self.settings.expired:
                break
            if value > low:
                low = value
                found.append(path)
            if best is None or low > limit * (1 + ROUNDING):
                break
            if mixed is not None:
                high = min(high, self._longest(mixed[1], master))
                if high - low <= EFFORT.close * limit or (refuting and high < limit):
                    break
            times, borders = lists.surely_of(best), np.append(0, lists.items[best])
            if borders.tobytes() not in master.chains:
                master.add_chain(borders, times)
                yield TimedChain(self._length(self.times_of(borders)), borders)
            self._longest(times, master)
        return low, found

    def _first_path(self, master: PathMaster) -> Floats:
        """Return the weighted path to begin with, shape (stages, 3)."""
        return self.weighted[-1] if self.weighted else np.asarray(np.mean(master.paths, axis=0))

    def _add_known(self, lists: ArcLists, master: PathMaster) -> None:
        """Add the known pipelines of open stages to the master."""
        known = list(self.known.values())[-EFFORT.known :]
        places = lists.places(np.stack(known)) if known else np.empty((0, 1))
        for i in np.flatnonzero((places >= 0).all(axis=1)):
            master.add_chain(known[i], lists.surely_of(places[i]))

    def _longest(self, times: Floats, master: PathMaster) -> float:
        """Return the length of the longest path at given times of passes, and add it to the master."""
        path = self._path(times)
        master.add_path(path)
        return float((path * times).sum())

    def _length(self, times: Floats) -> float:
        """Return the length of the longest path at given times of passes."""
        return float((self._path(times) * times).sum())

    def _path(self, times: Floats) -> Floats:
        """Return how many passes of each stage and kind the longest path has, shape (stages, 3)."""
        graph, nothing = self.graph, np.zeros_like(times)
        end, via = np.empty(len(graph.stage)), np.empty(len(graph.stage), dtype=np.int64)
        last = path_ends(graph, times, nothing, nothing, end, via)
        return _count_passes(graph, via, last)

    def _along_devices(self) -> list[Floats]:
        """Return for each device a path with all its passes, and others before and after them."""
        own = self.ranks[None, :] == np.arange(self.ranks.max() + 1)[:, None]
        return [self._path(np.repeat(np.where(each, 1.0, EFFORT.aside)[:, None], 3, axis=1)) for each in own]


def _count_passes(graph: PassGraph, via: Ints, last: int) -> Floats:
    """Return how many passes of each stage and kind are on a path, shape (stages, 3)."""
    path = []
    while last >= 0:
        path.append(last)
        last = int(via[last])
    found = np.zeros((graph.stages, 3))
    np.add.at(found, (graph.stage[path], graph.direction[path]), 1.0)
    return found
