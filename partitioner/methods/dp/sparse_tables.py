"""The data that all searches over one lattice share, where a table of all sets of devices is too large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp._sparse_core import enter_rows, hash_of
from partitioner.methods.dp.lattice import Ints32, Lattice, remaining_weights, weights_above
from partitioner.methods.dp.pipeline_loads import largest_copies
from partitioner.methods.dp.pipeline_tables import clipped
from partitioner.methods.dp.stages import (
    DeviceStates,
    Ints16,
    StageCosts,
    StageTerms,
    TensorEnds,
    costs_of,
    memory_model_of,
    one_group,
    stage_limits_of,
)
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PipelineProblem


class StageList(NamedTuple):
    """The stages whose load may keep to a threshold; those that begin at one ideal follow one another.

    Parameters
    ----------
    first
        Shape (I + 1,): the first stage that begins at an ideal.
    to, kind, group, copies
        Shape (R,): the ideal with the stage, its kind of device, its group and how many devices it has.
    behind
        Shape (R,): the most devices that may be behind the stage, by its memory.
    mask
        Shape (R, G): the groups in which the next stage may be, by the group of the stage before. Of stages
        that begin at the empty ideal only the first mask counts; that of the last stage of all is 1.
    """

    first: Ints
    to: Ints32
    kind: Ints16
    group: Ints16
    copies: Ints32
    behind: Ints32
    mask: Ints

    def grown(self) -> StageList:
        """Return the stages in arrays of twice the room."""
        larger = (np.concatenate((array, np.empty_like(array))) for array in self[1:])
        return StageList._make((self.first, *larger))


class DeviceCounts(NamedTuple):
    """How devices in use are counted and packed.

    Parameters
    ----------
    word, shift
        Shape (K + 1,): where the count of each kind is, and the number of stages behind them.
    most, bits
        Shape (K + 1,): the largest counts, 0 for the number of stages if it is not counted; and as many ones
        as a count has bits.
    guard
        Shape (W,): a bit above each count.
    exact
        Whether all these counts must be reached in the end; then fewer devices are not better.
    """

    word: Ints
    shift: Ints
    most: Ints
    bits: Ints
    guard: Ints
    exact: bool


class PartialPool(NamedTuple):
    """Pipelines that hold an ideal, room for P of them.

    Parameters
    ----------
    ideal
        Shape (P,): the ideal that the pipeline holds.
    used
        Shape (P, W): the packed counts of the devices in use.
    mask, last
        Shape (P,): the groups in which the next stage may be, and the group of the last stage.
    behind
        Shape (P,): how many devices are in use.
    spare, slack
        Shape (P,): the price of the devices that are not in use, and by how much it exceeds the least price
        of what is still needed.
    parent, stage, other
        Shape (P,): the pipeline before the last stage, the last stage, and the next pipeline with the ideal.
    slot
        A pipeline for each hash value, or -1; a power of two of them.
    head, members, check
        Shape (I,): a pipeline with each ideal, or -1; how many there are; and how many there may be before
        the worst ones are left out.
    cutoff
        Shape (I,): the least slack of a pipeline with each ideal that is kept.
    """

    ideal: Ints32
    used: Ints
    mask: Ints
    last: Ints16
    behind: Ints32
    spare: Floats
    slack: Floats
    parent: Ints32
    stage: Ints32
    other: Ints32
    slot: Ints32
    head: Ints32
    members: Ints
    check: Ints
    cutoff: Floats

    def grown(self) -> PartialPool:
        """Return the pool in arrays of twice the room, with empty slots."""
        rows = (np.concatenate((array, np.empty_like(array))) for array in self[:-5])
        slot = np.full(2 * len(self.slot), -1, np.int32)
        return PartialPool._make((*rows, slot, *self[-4:]))

    def enter(self, count: int) -> None:
        """Enter the first `count` pipelines in the slots, which are empty."""
        ideal, last, used = self.ideal[:count].astype(np.int64), self.last[:count], self.used[:count].T
        enter_rows(hash_of.py_func(ideal, last, used), self.slot)


def empty_stages(ideals: int, groups: int, room: int) -> StageList:
    """Return arrays for `room` stages, not filled."""
    return StageList(
        first=np.zeros(ideals + 1, np.int64),
        to=np.empty(room, np.int32),
        kind=np.empty(room, np.int16),
        group=np.empty(room, np.int16),
        copies=np.empty(room, np.int32),
        behind=np.empty(room, np.int32),
        mask=np.empty((room, groups), np.int64),
    )


def empty_pool(ideals: int, words: int, room: int, width: int) -> PartialPool:
    """Return a pool for `room` pipelines in which each ideal keeps about `width`."""
    return PartialPool(
        ideal=np.empty(room, np.int32),
        used=np.empty((room, words), np.int64),
        mask=np.empty(room, np.int64),
        last=np.empty(room, np.int16),
        behind=np.empty(room, np.int32),
        spare=np.empty(room),
        slack=np.empty(room),
        parent=np.full(room, -1, np.int32),
        stage=np.full(room, -1, np.int32),
        other=np.full(room, -1, np.int32),
        slot=np.full(1 << int(2 * room).bit_length(), -1, np.int32),
        head=np.full(ideals, -1, np.int32),
        members=np.zeros(ideals, np.int64),
        check=np.full(ideals, 4 * width, np.int64),
        cutoff=np.full(ideals, -np.inf),
    )


def enter_root(pool: PartialPool, total: float, mask: int) -> None:
    """Enter the empty pipeline, which leaves devices of that price and may go to the groups of a mask."""
    pool.used[0] = 0
    pool.ideal[0], pool.mask[0], pool.last[0], pool.behind[0] = 0, mask, 0, 0
    pool.spare[0], pool.slack[0] = total, 0.0
    pool.head[0], pool.members[0] = 0, 1


def packed(most: Ints, exact: bool) -> DeviceCounts:
    """Return how counts up to `most` are packed in words of at most 60 bits.

    Examples
    --------
    >>> packed(np.array([3, 3, 0]), exact=False).shift.tolist()
    [0, 3, 6]
    """
    word, shift, ones = np.zeros((3, len(most)), np.int64)
    guard, at, used = [0], 0, 0
    for i, largest in enumerate(most.tolist()):
        bits = int(largest).bit_length() + 1
        if used + bits > 60:
            guard.append(0)
            at, used = at + 1, 0
        word[i], shift[i], ones[i] = at, used, (1 << (bits - 1)) - 1
        guard[at] |= 1 << (used + bits - 1)
        used += bits
    return DeviceCounts(word, shift, most, ones, np.array(guard, dtype=np.int64), exact)


@dataclass(frozen=True)
class SparseLimits:
    """What the search without a table takes account of.

    Parameters
    ----------
    most_groups
        The most groups, each of which is a bit of a mask.
    most_window
        The supernodes of a short stage: tensors that pass over as few have a known end beside a longer one.
    bytes_per_ideal
        The bytes that the search is taken to need for each ideal.
    """

    most_groups: int = 30
    most_window: int = 6
    bytes_per_ideal: int = 40_000


LIMITS = SparseLimits()


class SparseTables:
    """The data that all searches over one lattice share.

    Loads are upper bounds on those of the stages found, as in
    :class:`partitioner.methods.dp.pipeline_tables.GroupTables`.

    Parameters
    ----------
    problem, relaxation, lattice
        As for :class:`partitioner.methods.dp.pipeline_tables.PipelineTables`; each kind is in one group.
    """

    upper = True

    def __init__(self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.widest = largest_copies(problem)
        self.remaining = remaining_weights(lattice, relaxation.weight)
        after = problem.successors
        self.above = weights_above(after.start, after.items, relaxation.weight, lattice.linear)
        self.open = np.ones(problem.n, dtype=bool)
        self.counts = _counts(problem)
        memory = memory_model_of(problem, _extremes(problem))
        self.lightest = np.stack((memory.least_in_flight[0], memory.least_versions[0]), axis=1)
        self.model = StageTerms(costs_of(problem), self._ends(), memory, stage_limits_of(problem))

    def clipped(self, threshold: float) -> StageCosts:
        """Return the costs for a threshold; replicas exchange weights on the links of their group."""
        costs, ends = clipped(self.problem, self.model.costs, threshold), self.model.ends
        own = ends.link.diagonal()[ends.group]
        return costs._replace(bandwidth=costs.bandwidth / own)

    def _ends(self) -> TensorEnds:
        problem, lattice, pins = self.problem, self.lattice, self.problem.nets.pins
        link, unknown, group = np.ones((1, 1)), np.ones(1), np.zeros(len(problem.count), np.int64)
        if len(problem.pipeline.link):
            link, group = problem.pipeline.link, problem.pipeline.held.argmax(axis=0)
            unknown = problem.pipeline.unknown_links[int(self.upper)]
        window = _window(problem, lattice) if len(link) > 1 else 0
        size = problem.n - remaining_weights(lattice, np.ones(problem.n))
        below, above = _closures(problem, lattice)
        return one_group(len(problem.count))._replace(
            listed=True, group=group, link=np.tile(link, (2, 2)) if window else link, unknown=unknown,
            real=len(link), window=window, pin_start=pins.start, pin=pins.items,
            size=np.rint(size).astype(np.int64), below=below, above=above,
        )  # fmt: skip


class LowerSparseTables(SparseTables):
    """The same, with loads that are lower bounds on those of all stages."""

    upper = False


def ideal_bytes(_: Problem) -> int:
    """Return the bytes that a search takes for each ideal, about."""
    return LIMITS.bytes_per_ideal


def _extremes(problem: PipelineProblem) -> DeviceStates:
    """Return the states in which no device and every device is in use."""
    none = np.zeros_like(problem.count)
    return DeviceStates(
        left=np.stack((largest_copies(problem), none)),
        stride=none,
        jump=none,
        fewest=np.ones_like(none),
        behind=np.array([0, int(problem.count.sum())]),
        dominance=True,
    )


def _counts(problem: PipelineProblem) -> DeviceCounts:
    limits = problem.limits
    return packed(np.append(problem.count, limits.stages), bool(limits.all_devices or limits.stages))


def _window(problem: PipelineProblem, lattice: Lattice) -> int:
    """Return how many supernodes the longest tensor passes over that passes over few of them."""
    pins = problem.nets.pins
    if not len(pins.items):
        return 0
    rank = lattice.rank[pins.items]
    span = np.maximum.reduceat(rank, pins.start[:-1]) - np.minimum.reduceat(rank, pins.start[:-1]) - 1
    return int(span[span <= LIMITS.most_window].max(initial=0))


def _closures(problem: PipelineProblem, lattice: Lattice) -> tuple[Ints, Ints]:
    """Return how many supernodes each one needs, and how many need it, itself included, shape (n,) each."""
    n = problem.n
    if lattice.linear:
        return lattice.rank + 1, n - lattice.rank
    before, after = [1 << v for v in range(n)], [1 << v for v in range(n)]
    for v in range(n):
        for u in problem.predecessors.row(v).tolist():
            before[v] |= before[u]
    for v in range(n - 1, -1, -1):
        for w in problem.successors.row(v).tolist():
            after[v] |= after[w]
    counts = [np.array([each.bit_count() for each in sets], dtype=np.int64) for sets in (before, after)]
    return counts[0], counts[1]
