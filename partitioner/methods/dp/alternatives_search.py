"""The least largest load by a search over limits, each of which is decided exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp._alternatives_core import ChosenStage, stage_load, stage_of
from partitioner.methods.dp.alternatives_pairs import Pairs
from partitioner.methods.dp.alternatives_stages import ChoiceModel
from partitioner.methods.dp.lattice import Ints32, Lattice
from partitioner.methods.method import OutOfTimeError, Settings, meets
from partitioner.problem.arrays import Floats

FAR = np.int32(2**31 - 1)  # more copies than there are
ROUNDING = 1e-6  # of sums of work, in devices


@njit(cache=True, nogil=True)
def spread(  # type: ignore[no-untyped-def]
    lattice, pairs, choices, shapes, memory, greedy, limit, most_copies, work, first_ideal, end_ideal,
    copies, before, by, good, bad,
):  # fmt: skip
    """Extend the labels of some ideals by all stages with a load of at most `limit`.

    Parameters
    ----------
    lattice, pairs, choices, shapes, memory, greedy
        The model, see :mod:`partitioner.methods.dp.alternatives_stages`, and the rule for ways.
    limit
        Of every load.
    most_copies
        How many copies all stages may have.
    work
        Shape (ideals,): the least time of all devices together for the supernodes outside of each ideal.
    first_ideal, end_ideal
        The ideals whose labels are extended; those of smaller ideals are complete.
    copies, before, by
        Shape (ideals, devices + 1): the least number of copies for a number of devices, the ideal from which
        it is reached, and the shape of the stage between.
    good, bad
        Shape (stages, D): for how many samples in flight a stage is known to have ways within the limit, and
        for how many it is known to have none.
    """
    n, devices = len(lattice.rank), copies.shape[1] - 1
    used, held = np.empty(devices + 1, np.int64), np.empty(devices + 1, np.int64)
    inside, below = np.zeros((2, n), np.bool_)
    fixed = np.full(len(choices.start) - 1, -1)
    way = fixed.copy()
    for ideal in range(first_ideal, end_ideal):
        labels, least = 0, FAR
        for p in range(devices + 1):
            if copies[ideal, p] < least:
                least = copies[ideal, p]
                used[labels], held[labels] = p, least
                labels += 1
        if not labels:
            continue
        mark_members(ideal, lattice, below, True)
        for pair in range(pairs.start[ideal], pairs.start[ideal + 1]):
            target, ready = pairs.to[pair], False
            members = held[:0]
            needed = work[target] / limit
            for first in range(len(shapes.copies)):
                degree = shapes.degree[first]
                if first and degree == shapes.degree[first - 1]:
                    continue
                able = first  # the shape of the fewest copies whose load can be within the limit
                while able < len(shapes.copies) and pairs.least[pair, able] > limit:
                    able += 1
                for k in range(labels):
                    for d in range(able, len(shapes.copies)):
                        p, total = used[k] + degree * shapes.copies[d], held[k] + shapes.copies[d]
                        if shapes.degree[d] != degree or p + needed > devices + ROUNDING:
                            break
                        if total > most_copies or copies[target, p] <= total:
                            break
                        y = shapes.in_flight[d, held[k]]
                        if pairs.least[pair, d] > limit or y >= bad[pair, d]:
                            continue
                        if y > good[pair, d]:
                            if not ready:
                                members = stage_members(target, lattice, below, inside)
                                ready = True
                            load = stage_load(
                                members, inside, d, y, pairs.cut[pair], limit, choices, shapes, memory,
                                greedy, fixed, way,
                            )  # fmt: skip
                            if load > limit:
                                bad[pair, d] = y
                                continue
                            good[pair, d] = y
                        copies[target, p], before[target, p], by[target, p] = total, ideal, d
                        break  # more copies would take more devices, too
            if ready:
                inside[:] = False
        mark_members(ideal, lattice, below, False)


@njit(cache=True)
def mark_members(ideal, lattice, flags, value):  # type: ignore[no-untyped-def]
    """Set the flags of the supernodes of an ideal to a value."""
    while ideal > 0:
        flags[lattice.added[ideal]] = value
        ideal = lattice.parent[ideal]


@njit(cache=True)
def stage_members(ideal, lattice, below, inside):  # type: ignore[no-untyped-def]
    """Return the supernodes of an ideal that are not `below`, by descending rank; mark them in `inside`."""
    found, count = np.empty(len(lattice.rank), np.int64), 0
    while ideal > 0:
        v = lattice.added[ideal]
        if not below[v]:
            found[count] = v
            inside[v] = True
            count += 1
        ideal = lattice.parent[ideal]
    return found[:count]


ANY = 1e200  # a limit that no load exceeds
CLOSE, JUST_BELOW = 1 + 1e-5, 1 - 1.5e-12
SLICE = 200_000  # stages of one shape between two checks whether the run should end


@dataclass(eq=False)
class LoadSearch:
    """The search for the stages with the least largest load among the ideals of a lattice.

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
            if self.stages is None and np.isinf(self.value) and not self.decide(ANY):
                self.bound = np.inf
            while not meets(self.bound, self.value, self.settings.gap):
                self.decide(self._next_limit())
                if self.value <= self.bound:
                    self.bound = self.value
                done = self.decided
                self.settings.report_progress("limits", done, 0, self.value, min(self.bound, self.value))
        except OutOfTimeError:
            return False
        return True

    def _next_limit(self) -> float:
        if self.value > 2 * self.bound:
            return float(np.sqrt(self.value * max(self.bound, self.value * 1e-6)))
        if self.value > CLOSE * self.bound:
            return (self.bound + self.value) / 2
        return self.value * JUST_BELOW

    def decide(self, limit: float) -> bool:
        """Return whether there are stages with loads of at most `limit`; keep them, or raise the bound.

        Raises
        ------
        OutOfTimeError
            If the run should end.
        """
        model, lattice = self.model, self.lattice
        shape = lattice.size, model.devices + 1
        copies, before, by = np.full(shape, FAR), np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        copies[0, 0] = 0
        good, bad = self.good.copy(), self.bad.copy()
        for first, end in self.settings.watched(pairwise(self._borders())):
            spread(
                lattice, self.pairs, model.choices, model.shapes, model.memory, self.greedy, limit,
                model.copies, self.work, first, end, copies, before, by, good, bad,
            )  # fmt: skip
        self.decided += 1
        if copies[-1].min() == FAR:
            self.good, self.bound = good, max(self.bound, limit)
            return False
        self.bad = bad
        self.stages = self._stages(copies, before, by)
        self.value = max(stage.load for stage in self.stages)
        return True

    def _borders(self) -> list[int]:
        """Return the ideals at which a decision looks whether the run should end, from 0 to their number."""
        done = self.pairs.start * self.pairs.least.shape[1]
        marks = np.searchsorted(done, np.arange(0, done[-1], SLICE))
        return sorted({0, *marks.tolist(), self.lattice.size})

    def _stages(self, copies: Ints32, before: Ints32, by: Ints32) -> list[ChosenStage]:
        """Return the stages of a label of the full ideal, from first to last."""
        shapes, found = self.model.shapes, []
        ideal, p = self.lattice.size - 1, int(np.argmax(copies[-1] < FAR))
        while ideal:
            smaller, d = int(before[ideal, p]), int(by[ideal, p])
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


def least_work(model: ChoiceModel) -> Floats:
    """Return the least time of all devices together for each supernode, shape (n,)."""
    choices, problem = model.choices, model.problem
    one = np.flatnonzero(model.shapes.copies == 1)
    time = np.full(len(choices.degree), np.inf)
    for d in one.tolist():
        at = choices.degree == model.shapes.degree[d]
        time[at] = choices.value[d, at] * model.shapes.degree[d]
    least = np.minimum.reduceat(time, choices.start[:-1])
    found = np.zeros(problem.n)
    np.add.at(found, np.repeat(np.arange(problem.n), np.diff(choices.of_node)), least)
    return found


def least_load(model: ChoiceModel) -> float:
    """Return a lower bound: all work shared by all devices, or the largest least load of a choice."""
    choices = model.choices
    by_way = np.full(len(choices.degree), np.inf)
    for d, degree in enumerate(model.shapes.degree.tolist()):
        at = choices.degree == degree
        by_way[at] = np.minimum(by_way[at], choices.value[d, at])
    alone = np.minimum.reduceat(by_way, choices.start[:-1]).max()
    return float(max(alone, least_work(model).sum() / model.devices))
