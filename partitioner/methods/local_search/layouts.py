"""What the devices of a search stand for: the parts of a convex or free split, or the stages of a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from partitioner.methods.local_search.arrays import PlacementModel
from partitioner.methods.local_search.contiguity import leaves_and_returns
from partitioner.methods.local_search.model import model_of
from partitioner.methods.method import Part, part_numbers
from partitioner.methods.places import device_kinds, places_of
from partitioner.problem.arrays import Ints
from partitioner.problem.orders import random_order
from partitioner.problem.problem import Problem
from partitioner.problem.variants import ChainProblem, PartsProblem


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
