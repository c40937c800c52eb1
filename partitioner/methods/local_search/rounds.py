"""Annealing in rounds: from random placements, from the best one so far, and of two placements recombined.

Two placements recombined: what both of them keep together becomes one supernode of a smaller search.

Memetic search of this kind is known from hypergraph partitioning (Andre, Schlag and Schulz, 2018).

Without recombination free splits of the layers of ResNet-50 are 0.5 % worse after as many moves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import networkx as nx
import numpy as np

from partitioner.methods.loads import part_numbers, value_of
from partitioner.methods.local_search.kernel import anneal
from partitioner.methods.local_search.model import (
    AHEAD,
    BEHIND,
    VIOLATION,
    AnnealingControl,
    PlacementModel,
    PlacementState,
    leaves_and_returns,
    model_of,
    new_state,
)
from partitioner.methods.method import Part
from partitioner.methods.places import device_kinds, parts_on, places_of
from partitioner.methods.rules import obeys
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.orders import random_order
from partitioner.problem.problem import Problem
from partitioner.problem.variants import ChainProblem, PartsProblem


@dataclass(frozen=True)
class PlacementAnnealingEffort:
    """How long a round of annealing is, how it begins and ends, and when placements are recombined.

    Measured at half and at twice each value on four inference workloads of `instances/` (bert3_operator,
    gnmt_operator, inceptionv3_operator, moe_mixtral), convex splits, one seed and a million shifts each. The
    mean of the values is worse with half the `shifts` (0.4 %), twice the `chunks` (0.4), half and twice the
    `chunk` (0.4 and 0.5), half of `hot` (0.1), twice the `ties` (0.1), half the `doublings` (0.1) and a
    penalty that never grows (5.0); it is never better by 0.01 %. `rounds`, `population`, `fresh` and `idle`
    do not come into play in a million shifts.

    Parameters
    ----------
    rounds
        Rounds of a run without a time limit.
    shifts, cluster_shifts
        Shifts for each supernode in the first rounds, and for each cluster where two placements are
        recombined.
    patience, longer
        Rounds without better parts before rounds become longer, and the factor.
    chunks, chunk
        The temperatures of a round at least, and shifts at one temperature at most, less on large graphs.
    hot, cold
        The first temperature of a round from random parts, and the last of any round, as fractions of the
        largest load.
    warm
        The first temperatures of rounds from the best parts, of which one is drawn.
    ties
        The weights of the sum of the loads, of which one is drawn.
    doublings
        The exponents of two in the power mean of the loads, of which one is drawn.
    strict, stricter, laxer
        The least penalty for violations, and its factor after moves that end with one, and after others.
    polish
        The length of a round from known parts over that from random ones.
    large
        Supernodes times devices from which the best parts are looked at once a round, not once a temperature.
    population
        Placements of a population.
    fresh
        Of this number of rounds of a full population, one does not recombine.
    idle
        Recombinations that improve nothing before another population begins.
    mixes
        Shape (3, 5): cumulated shares of the kinds of moves, of which one row is drawn.
    """

    rounds: int = 15
    shifts: int = 10_000
    cluster_shifts: int = 10_000
    patience: int = 6
    longer: int = 2
    chunks: int = 50
    chunk: int = 400_000
    hot: float = 0.03
    cold: float = 0.00003
    warm: tuple[float, ...] = (0.003, 0.01, 0.03)
    ties: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03)
    doublings: tuple[int, ...] = (4, 5, 6)
    strict: float = 0.3
    stricter: float = 1.3
    laxer: float = 0.9
    polish: int = 2
    large: int = 20_000
    population: int = 12
    fresh: int = 25
    idle: int = 200
    mixes: Floats = field(
        default_factory=lambda: np.cumsum(
            [[0.3, 0.2, 0.05, 0.3, 0.148], [0.2, 0.15, 0.05, 0.5, 0.098], [0.2, 0.4, 0.05, 0.25, 0.098]],
            axis=1,
        )
    )


EFFORT = PlacementAnnealingEffort()


class Length:
    """The number of moves in a round, which grows when several rounds find nothing better.

    Parameters
    ----------
    moves
        The moves of the first rounds.

    Examples
    --------
    >>> length = Length(10)
    >>> for better in [True] + EFFORT.patience * [False]:
    ...     length.learn(better)
    >>> length.moves
    20
    """

    def __init__(self, moves: int) -> None:
        self.moves, self._idle = moves, 0

    def learn(self, better: bool) -> None:
        """Update the length by whether the last round has found something better."""
        self._idle = 0 if better else self._idle + 1
        if self._idle == EFFORT.patience:
            self._idle, self.moves = 0, EFFORT.longer * self.moves


class Layout(Protocol):
    """The devices of a search, and what it starts from."""

    @property
    def problem(self) -> Problem:
        """The problem."""
        ...

    @property
    def kind(self) -> Ints:
        """Shape (D,): the kind of each device."""
        ...

    @property
    def model(self) -> PlacementModel:
        """The arrays for the compiled search."""
        ...

    def random_place(self, random: np.random.Generator) -> Ints:
        """Return random devices of all supernodes, shape (n,), which have the shape of the split."""
        ...

    def place_of(self, parts: Sequence[Part]) -> Ints:
        """Return the devices of given parts, shape (n,)."""
        ...

    def has_shape(self, place: Ints) -> bool:
        """Whether these devices have the shape of the split."""
        ...


class PartLayout:
    """The parts of a convex or free split; devices are numbered kind by kind."""

    def __init__(self, problem: PartsProblem) -> None:
        self.problem, self.kind = problem, device_kinds(problem)
        self.model = model_of(problem, self.kind)

    def random_place(self, random: np.random.Generator) -> Ints:
        """Return random devices, (n,); for a convex split runs of a topological order, or a single device."""
        devices, n = len(self.kind), self.problem.n
        if not self.problem.regions:
            return np.asarray((random.random((devices, n)) * self.model.allowed.T).argmax(axis=0))
        chain = self.problem.chain
        rank = np.full(n, chain.n)
        np.minimum.at(rank, self.problem.member, chain.member)
        cuts = np.sort(random.integers(0, chain.n + 1, devices - 1))
        place = random.permutation(devices)[np.searchsorted(cuts, rank, side="right")]
        return place if self.has_shape(place) else np.full_like(place, random.integers(devices))

    def place_of(self, parts: Sequence[Part]) -> Ints:
        """Return the devices of given parts, shape (n,)."""
        return places_of(self.problem, parts)

    def has_shape(self, place: Ints) -> bool:
        """Whether the share of each device is contiguous where it must be."""
        model, devices = self.model, len(self.kind)
        away = np.zeros(len(model.owner), dtype=bool)
        return not leaves_and_returns(
            0, np.zeros(devices, dtype=np.int64), model.contiguous, place, model.owner,
            model.before_start, model.before, away,
        )  # fmt: skip


class StageLayout:
    """The stages of a chain: device d runs stage d, on a device of kind ``kind[d]``."""

    def __init__(self, problem: ChainProblem, kind: Ints) -> None:
        self.problem, self.kind = problem, kind
        self.model = model_of(problem, kind)

    def random_place(self, random: np.random.Generator) -> Ints:
        """Return the stages of a random linear order, shape (n,), which is cut into equal shares of work."""
        order = random_order(self.problem.successors, self.problem.predecessors, random)
        time = self.model.time.sum(axis=2)
        speed = 1 / np.maximum(time.mean(axis=0), 1e-300)
        done = np.cumsum(time.min(axis=1)[order])
        ends = np.cumsum(speed) / speed.sum() * done[-1]
        place = np.empty(self.problem.n, dtype=np.int64)
        place[order] = np.minimum(np.searchsorted(ends, done), len(ends) - 1)
        return place

    def place_of(self, parts: Sequence[Part]) -> Ints:
        """Return the number of each supernode's stage, shape (n,)."""
        return part_numbers(parts, self.problem.n)

    def has_shape(self, place: Ints) -> bool:
        """Whether no edge leads to an earlier stage."""
        after = self.problem.successors
        return bool((place[after.owners()] <= place[after.items]).all())


SAME = 1e-9  # relative difference of values below which placements count as equal


class Population:
    """The best placements of rounds of a search, no two of the same value.

    Examples
    --------
    >>> population = Population(2)
    >>> for value in (3.0, 2.0, 2.0, 1.0, 4.0):
    ...     population.add(value, np.zeros(1, dtype=np.int64))
    >>> [value for value, _ in population.members]
    [1.0, 2.0]
    """

    def __init__(self, size: int = EFFORT.population) -> None:
        self.size = size
        self.members: list[tuple[float, Ints]] = []

    @property
    def is_full(self) -> bool:
        """Whether it has as many placements as it may have."""
        return len(self.members) == self.size

    def add(self, value: float, place: Ints) -> None:
        """Keep a feasible placement, shape (n,), if it is among the best and its value is new."""
        known = any(abs(value - other) <= SAME * other for other, _ in self.members)
        if np.isfinite(value) and not known:
            self.members.append((value, place))
            self.members.sort(key=lambda member: member[0])
            del self.members[self.size :]

    def draw(self, random: np.random.Generator) -> tuple[Ints, Ints]:
        """Return two different placements of a full population."""
        first, second = random.choice(self.size, 2, replace=False)
        return self.members[first][1], self.members[second][1]


def common_clusters(model: PlacementModel, first: Ints, second: Ints) -> Ints:
    """Return the cluster of every supernode, shape (n,).

    Supernodes that share a net are in one cluster if both placements have them on one device.

    Parameters
    ----------
    model
        The costs of placements.
    first, second
        Shape (n,) each: the device of every supernode.
    """
    pair = first * len(model.room) + second
    net = np.repeat(np.arange(len(model.cost)), np.diff(model.pin_start))
    order = np.lexsort((pair[model.pin], net))
    pin, net = model.pin[order], net[order]
    linked = (net[1:] == net[:-1]) & (pair[pin[1:]] == pair[pin[:-1]])
    graph: nx.Graph[int] = nx.empty_graph(len(pair))
    graph.add_edges_from(zip(pin[:-1][linked].tolist(), pin[1:][linked].tolist(), strict=True))
    cluster = np.empty(len(pair), dtype=np.int64)
    for i, members in enumerate(nx.connected_components(graph)):
        cluster[list(members)] = i
    return cluster


def merged(model: PlacementModel, cluster: Ints) -> PlacementModel:
    """Return the costs of the placements that keep every cluster on one device.

    Parameters
    ----------
    model
        The costs of all placements.
    cluster
        Shape (n,): the cluster of every supernode, from 0 to m - 1 for m clusters.
    """
    count = int(cluster.max()) + 1
    pins, nets, read = _pins(model, cluster)
    by_pin = np.argsort(pins, kind="stable")
    source = cluster[model.made[:, 1]]
    ahead, behind = (
        _rows_between(Rows(model.near_start[side], model.near[side]), cluster, count)
        for side in (AHEAD, BEHIND)
    )
    pin_rows = rows_of(nets, pins, len(model.cost))
    allowed = np.ones((count, len(model.room)), dtype=bool)
    np.logical_and.at(allowed, cluster, model.allowed)
    return model._replace(
        time=_sums(model.time, cluster, count),
        size=_sums(model.size, cluster, count),
        allowed=allowed,
        net_start=rows_of(pins, nets, count).start,
        net=np.stack((nets[by_pin], read[by_pin]), axis=1),
        pin_start=pin_rows.start,
        pin=pin_rows.items,
        made=np.stack((np.diff(pin_rows.start), source, model.made[:, 2]), axis=1),
        owner=cluster[model.owner],
        near_start=np.stack((ahead.start, behind.start)),
        near=np.stack((ahead.items, behind.items)),
    )


def _pins(model: PlacementModel, cluster: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the clusters and nets of all pins, net by net, and the pass in which each first reads."""
    owner = np.repeat(np.arange(len(cluster)), np.diff(model.net_start))
    rows = np.stack((model.net[:, 0], cluster[owner], model.net[:, 1]), axis=1)
    rows = rows[np.lexsort(rows.T[::-1])]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
    nets, pins, read = rows[first].T
    return pins, nets, read


def _rows_between(rows: Rows, cluster: Ints, count: int) -> Rows:
    """Return rows over supernodes as rows over clusters; none at all stays none at all."""
    if len(rows.start) < 2:
        return rows
    pairs = np.stack((cluster[rows.owners()], cluster[rows.items]), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return rows_of(pairs[:, 0], pairs[:, 1], count)


def _sums(values: Floats, cluster: Ints, count: int) -> Floats:
    """Return the sums of the values of supernodes over their clusters."""
    sums = np.zeros((count, *values.shape[1:]))
    np.add.at(sums, cluster, values)
    return sums


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
        self._best: Ints | None = None
        self._population, self._idle = Population(), 0
        self._length = Length(EFFORT.shifts * problem.n)
        effort = 4 + len(self.model.net) / problem.n + len(self.model.room) / 4
        self._chunk = max(1, min(self._length.moves // EFFORT.chunks, int(EFFORT.chunk / effort)))

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
            if self._population.is_full and self.rounds % EFFORT.fresh:
                self._recombine(limit, go_on)
            else:
                self._anneal_anew(limit, go_on)
            self.rounds += 1

    def _anneal_anew(self, limit: int, go_on: Callable[[], bool]) -> None:
        """Run a round from a random placement or from the best one."""
        fresh = self._begin()
        length = (1 if fresh else EFFORT.polish) * self._length.moves
        warm = EFFORT.hot if fresh else float(self.random.choice(EFFORT.warm))
        before = self.value
        best = np.append(self.state.place, np.inf)
        self._round(self.model, self.state, best, warm, min(self.shifts + length, limit), go_on)
        self._population.add(best[-1], best[:-1].astype(np.int64))
        self._length.learn(self.value < before)

    def _begin(self) -> bool:
        """Choose the placement from which the next round starts; return whether it is a random one."""
        again = self.start if self._best is None else self._best
        fresh = self.rounds % 2 == 0 if self.start is None else self.rounds % 3 == 2
        again = None if fresh else again
        self.state.place[:] = self.layout.random_place(self.random) if again is None else again
        self.keep(self.state.place)
        return again is None

    def _recombine(self, limit: int, go_on: Callable[[], bool]) -> None:
        """Run a round over what two placements do not agree on, from the first of them."""
        first, second = self._population.draw(self.random)
        cluster = common_clusters(self.model, first, second)
        model, before = merged(self.model, cluster), self.value
        state = new_state(model)
        state.place[cluster] = first
        best = np.append(state.place, np.inf)
        length = EFFORT.cluster_shifts * len(model.size)
        self._round(model, state, best, EFFORT.hot, min(self.shifts + length, limit), go_on, cluster)
        self._population.add(best[-1], best[:-1].astype(np.int64)[cluster])
        self._idle = 0 if self.value < before else self._idle + 1
        if self._idle == EFFORT.idle:
            self._population, self._idle = Population(), 0

    def _round(
        self,
        model: PlacementModel,
        state: PlacementState,
        best: Floats,
        warm: float,
        end: int,
        go_on: Callable[[], bool],
        cluster: Ints | slice = slice(None),
    ) -> None:
        """Anneal from `warm` to `EFFORT.cold` until `end` shifts, with a random energy and mix of moves.

        The best devices of the round and their value are written to `best`, shape (m + 1,); supernode v has
        the device of entry ``cluster[v]``.
        """
        begin, strict, seen = self.shifts, EFFORT.strict, np.inf
        tie, doublings = float(self.random.choice(EFFORT.ties)), int(self.random.choice(EFFORT.doublings))
        mix = self.random.choice(EFFORT.mixes)
        while self.shifts < end and go_on():
            temperature = warm * (EFFORT.cold / warm) ** ((self.shifts - begin) / (end - begin))
            control = AnnealingControl(temperature, strict, tie, doublings)
            budget = min(self._chunk, end - self.shifts)
            self.shifts += anneal(model, state, control, mix, self.bits, best, budget)
            if len(model.size) * len(model.room) < EFFORT.large:
                seen = self._offer(best, cluster, seen)
            violated = state.ledger[:, VIOLATION].max() > 0
            strict = min(strict * EFFORT.stricter, 1e6) if violated else strict * EFFORT.laxer
            strict = max(strict, EFFORT.strict)
        self._offer(best, cluster, seen)

    def _offer(self, best: Floats, cluster: Ints | slice, seen: float) -> float:
        """Keep the best devices of a round if their value is below the best one and `seen`; return it."""
        if best[-1] < min(self.value, seen):
            self.keep(best[:-1].astype(np.int64)[cluster])
        return float(best[-1])

    def keep(self, place: Ints) -> None:
        """Keep a placement, shape (n,), if it obeys the limits and is better than the best one."""
        parts = parts_on(self.layout.kind, place)
        value = value_of(self.problem, parts)
        if value < self.value and obeys(self.problem, parts):
            self.value, self.parts = value, parts
            self._best = np.array(place)
