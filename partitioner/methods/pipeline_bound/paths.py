"""The named arrays that the compiled walk for bounds on makespans reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.lattice import Ints32, Lattice, remaining_weights
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.graph import Graph
from partitioner.workload.in_flight import HOLD_A_BATCH


@dataclass(frozen=True)
class FillDrainEffort:
    """How far the search for a bound on the makespan goes.

    Parameters
    ----------
    most_ideals, most_numbers, most_steps
        The most ideals of a lattice and numbers of a table for which there is a search, and the most steps
        where time is not limited, or for the least times outside the ideals.
    slice
        Steps between two checks whether the run should end; changes no result.
    most_detail
        The most passes next to the first and the last ones at which paths may change to other rows.
    slots
        The numbers of pipelines that are remembered of a state, from level to level.
    most_chains
        The pipelines of a table that are simulated.
    coarse, share
        A level ends when the distance of bound and limit is at most this part of the value; the next ones, at
        most this part of the distance that is left.
    close
        A difference between paths of at most this part of the limit is left out if tables have slots.
    narrow
        The search ends when the distance of bound and value is at most this part of the value.
    limits, spread
        The most limits spread between bound and value at the level with the fewest slots, and the most steps
        for their tables: limits next to one another lead to different pipelines. With none the best makespan
        of ResNet-50's operators, 8 microbatches, is 5 % longer.
    few, light, fewer
        Above `few` ideals there are searches before without the supernodes that take these parts of the work,
        each where the next one has fewer ideals by the factor `fewer`.
    lost
        The fraction of what is left out by which bounds are lower; a search that is not to raise it is left
        out. With 0.1 of shared Inception-v3 left out the bound is 2 % lower, with 0.03 1 %.
    growth
        The power of the number of ideals with which the work of a search grows.
    """

    most_ideals: int = 300_000
    most_numbers: int = 40_000_000
    most_steps: int = 40_000_000
    slice: int = 500_000
    most_detail: int = 8
    slots: tuple[int, ...] = (4, 16, 64)
    most_chains: int = 4
    coarse: float = 2e-2
    share: float = 0.25
    close: float = 1e-4
    narrow: float = 5e-4
    limits: int = 15
    spread: int = 5_000_000
    few: int = 5_000
    light: tuple[float, ...] = (0.1, 0.03, 0.01)
    fewer: float = 0.7
    lost: float = 0.3
    growth: float = 1.75


EFFORT = FillDrainEffort()
NEVER = -1


class RowEvents(NamedTuple):
    """The passes at which paths change to the rows of neighbouring stages: F forward and B backward ones.

    Parameters
    ----------
    forward, backward
        Shape (F,) and (B,): their microbatches, ascending; empty if nothing is known of rows.
    forwards, backwards
        Shape (A, F + B, F + B): how many forward and backward passes a row holds from one of these passes up
        to another one, both included, for A numbers of samples ahead; :data:`NEVER` if the other one comes
        before it, or may do so.
    number
        Shape (D + 1,): which of the A rows a stage has, by the number of devices behind it.
    """

    forward: Ints
    backward: Ints
    forwards: Ints
    backwards: Ints
    number: Ints


def row_events(samples: int, ahead: Sequence[int], detail: int, fewer: bool) -> RowEvents:
    """Return the first and the last passes of rows, with `detail` further ones next to these.

    Parameters
    ----------
    samples
        The number of microbatches.
    ahead
        How many samples a stage is ahead, by the number of devices behind it; ascending.
    detail
        How many further forward passes at the beginning, and backward passes at the end, there are.
    fewer
        Whether a row may be ahead by fewer samples than is said.

    Examples
    --------
    >>> events = row_events(8, [2], 0, fewer=False)
    >>> events.forward.tolist(), events.backward.tolist(), events.forwards[0, 0].tolist()
    ([0, 7], [0, 7], [1, 8, 3, 8])
    """
    last, detail = samples - 1, min(detail, samples - 1)
    forward = np.unique([*range(detail + 1), last])
    backward = np.unique([0, *range(last - detail, last + 1)])
    distinct, number = np.unique(ahead, return_inverse=True)
    counts = [_counts(samples, each, forward, backward) for each in distinct.tolist()]
    forwards, backwards = (np.array(each) for each in zip(*counts, strict=True))
    if fewer:  # a pass comes before another one only if it does so in each of the rows
        forwards, backwards = (np.minimum.accumulate(each) for each in (forwards, backwards))
    return RowEvents(forward, backward, forwards, backwards, number)


def no_rows() -> RowEvents:
    """Return rows of which nothing is known."""
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros((0, 0, 0), dtype=np.int64)
    return RowEvents(none, none, nothing, nothing, none)


def _counts(samples: int, ahead: int, forward: Ints, backward: Ints) -> tuple[Ints, Ints]:
    """Return the counts of one row, shape (F + B, F + B) each."""
    before = np.stack(
        (
            np.concatenate((forward, np.minimum(samples, backward + ahead + 1))),
            np.concatenate((np.maximum(0, forward - ahead), backward)),
        )
    )
    is_forward = np.arange(before.shape[1]) < len(forward)
    own = np.stack((is_forward, ~is_forward)).astype(np.int64)
    found = before[:, None, :] - before[:, :, None] + own[:, None, :]
    place = before.sum(axis=0)
    found = np.where(place[:, None] <= place, found, NEVER)
    return found[0], found[1]


MOST_SUPERNODES = 4000  # for which it is computed which of them come before which
EVERY = 1e-9  # of the mean work, for each supernode: one more is better, even if it takes no time


class PassSpine(NamedTuple):
    """The heaviest supernodes of which each waits for the one before, forward and backward.

    Parameters
    ----------
    on
        Shape (n,): whether a supernode is one of them.
    trains, returns
        Whether there is a backward pass, and whether it runs through the stages from the last to the first.
        It does not in graphs whose backward part is written in the direction of the forward part.
    together
        Whether no stage's backward pass waits for more stages than its forward pass does, if it does not
        return.
    before, after
        Shape (n,): for a supernode that is none of them, the least time that a sample takes at those before
        it and at those behind it: both passes if the backward pass returns, else forward and backward pass.
    first, last
        Shape (n,): how many supernodes of the spine come before a supernode at least, and at most.
    """

    on: Bools
    trains: bool
    returns: bool
    together: bool
    before: Floats
    after: Floats
    first: Ints
    last: Ints

    def of(self, kept: Bools) -> PassSpine:
        """Return the spine among some supernodes that have all of it; `kept` has shape (n,)."""
        rows = {name: getattr(self, name)[kept] for name in ("on", "before", "after", "first", "last")}
        return self._replace(**rows)


def spine_of(graph: Graph, problem: PipelineProblem) -> PassSpine | None:
    """Return the spine of a problem; None if the backward pass of its stages has neither direction.

    None also if the supernodes are too many.

    Parameters
    ----------
    graph
        The graph that the problem is a contraction of.
    problem
        Its supernodes are numbered in a topological order.
    """
    member, n, trains = problem.member, problem.n, bool(graph.backward.any())
    if n > MOST_SUPERNODES:
        return None
    ends, within = member[graph.edges], graph.backward[graph.edges]
    less = _closure(n, ends[~within.any(axis=1)])
    counted, returns, together = np.bincount(member[~graph.backward], minlength=n) > 0, True, False
    if trains:
        backward = ends[within.all(axis=1)]
        backward = backward[backward[:, 0] != backward[:, 1]]
        returns = _within(problem, backward[:, ::-1])
        if not returns and not _within(problem, backward):
            return None
        later = ends[within[:, 1] & (ends[:, 0] != ends[:, 1])]
        together = not returns and bool(less[later[:, 0], later[:, 1]].all())
        less &= _closure(n, backward[:, ::-1] if returns else backward)
        counted &= np.bincount(member[graph.backward], minlength=n) > 0
    on = _heaviest(_work(problem), counted, less)
    shortest = np.where(on, shortest_passes(problem), 0.0)
    both = shortest.sum(axis=0)
    before = np.where(on, 0.0, (both if returns else shortest[0]) @ less)
    after = np.where(on, 0.0, less @ (both if returns else shortest[1]))
    held = on.astype(np.int64)
    return PassSpine(on, trains, returns, together, before, after, held @ less, held.sum() - less @ held)


def shortest_passes(problem: PipelineProblem) -> Floats:
    """Return the least times of both passes of each supernode, shape (2, n); 0 where no device may run it."""
    shortest = np.where(problem.allowed[:, None], problem.time, np.inf)[problem.count > 0].min(axis=0)
    return np.where(np.isfinite(shortest), shortest, 0.0)


def _within(problem: PipelineProblem, pairs: Ints) -> bool:
    """Whether in every chain the first supernode of each pair is in the stage of the second, or before."""
    after = problem.successors
    precedes = _closure(problem.n, np.stack((after.owners(), after.items), axis=1))
    return bool(precedes[pairs[:, 0], pairs[:, 1]].all())


def _closure(n: int, edges: Ints) -> Bools:
    """Return which supernodes come before which, shape (n, n), by edges that lead to larger numbers."""
    found = np.zeros((n, n), dtype=bool)
    for u, v in sorted({(u, v) for u, v in edges.tolist() if u < v}, reverse=True):
        found[u, v] = True
        found[u] |= found[v]
    return found


def _work(problem: PipelineProblem) -> Floats:
    """Return the least work of each supernode, shape (n,)."""
    work = problem.work()[problem.count > 0].min(axis=0)
    work = np.where(np.isfinite(work), work, 0.0)
    return np.asarray(work + EVERY * work.mean())


def _heaviest(work: Floats, counted: Bools, less: Bools) -> Bools:
    """Return the heaviest supernodes of which each comes before the next one, shape (n,)."""
    total, previous = np.zeros(len(work)), np.full(len(work), -1)
    for v in np.flatnonzero(counted).tolist():
        first = np.where(less[:, v] & counted, total, 0.0)
        u = int(first.argmax())
        total[v] = work[v] + first[u]
        previous[v] = u if first[u] > 0 else -1
    on, v = np.zeros(len(work), dtype=bool), int(total.argmax())
    while v >= 0 and counted[v]:
        on[v] = True
        v = int(previous[v])
    return on


STREAM, PHASES, TURNS = range(3)  # which passes of a stage a path through later stages leaves out


class Way(NamedTuple):
    """What a path through later stages leaves out, if no stage has replicas and if some may have."""

    alone: int
    replicated: int


WAYS = {
    "inference": Way(STREAM, STREAM),
    **dict.fromkeys(HOLD_A_BATCH, Way(STREAM, PHASES)),
    **dict.fromkeys(("1f1b", "1f1b_async"), Way(TURNS, TURNS)),
}


class MakespanTable(NamedTuple):
    """What is known of pipelines that hold one of I ideals on the devices of one of S states, in N slots.

    Parameters
    ----------
    length
        Shape (I, S, N, 1 + P): the least time of a sample, infinity if the slot is free, and the least
        lengths of P paths, see :mod:`partitioner.methods.pipeline_bound._fill_drain_core`.
    last
        Shape (I, S, N, 4): the ideal before the stage placed last and the slot of the stages that hold it,
        the kind and the number of the stage's devices; 0 devices if the last step left one idle.
    """

    length: Floats
    last: Ints32


@dataclass(frozen=True, eq=False)
class DetailLevel:
    """The paths whose lengths are known, and for how many pipelines of a state.

    Parameters
    ----------
    rows
        The passes at which these paths change to other rows.
    returns
        Whether backward passes return.
    slots
        The number of pipelines.
    """

    rows: RowEvents
    returns: bool
    slots: int = 1

    @property
    def labels(self) -> int:
        """How many paths there are."""
        forward, backward = len(self.rows.forward), len(self.rows.backward)
        return forward * backward if self.returns else forward + backward

    @property
    def whole(self) -> int:
        """The number of the length of the path from the first to the last pass; 0 if it is not known."""
        return len(self.rows.backward) if self.returns else min(1, self.labels)

    def numbers(self, states: int) -> int:
        """Return how many numbers a table has, for the number of states of all ideals."""
        return states * self.slots * (self.labels + 3)

    def table(self, ideals: int, states: int) -> MakespanTable:
        """Return the table in which only the empty ideal has been reached."""
        shape = states, ideals, self.slots
        length = np.full((*shape, 1 + self.labels), np.inf)
        length[0, 0, 0, 0], length[0, 0, 0, 1:] = 0.0, -np.inf
        if not self.returns:
            length[0, 0, 0, -1] = 0.0  # the last pass ends the schedule
        return MakespanTable(length, np.empty((*shape, 4), np.int32))


LEAST = DetailLevel(no_rows(), returns=False)  # no path through later stages but the time of a sample


def levels_of(problem: PipelineProblem, spine: PassSpine, states: int, fewer: bool) -> Iterator[DetailLevel]:
    """Yield the levels from the coarsest to the finest one whose table is not too large.

    Parameters
    ----------
    problem, spine
        The problem and its spine.
    states
        How many states all ideals have together.
    fewer
        Whether fewer devices may be behind a stage than its state says.
    """
    ahead, samples, before = _ahead(problem, spine), problem.pipeline.microbatches or 1, set()
    if ahead is None:
        yield LEAST
        return
    finest = min(_most_detail(problem, spine), max(ahead), samples - 1)
    for wanted, slots in ((0, 1), *((finest, most) for most in EFFORT.slots)):
        for detail in range(wanted, -1, -1):
            level = DetailLevel(row_events(samples, ahead, detail, fewer), spine.returns, slots)
            if level.numbers(states) <= EFFORT.most_numbers or wanted == 0:
                if (detail, slots) not in before:
                    yield level
                before.add((detail, slots))
                break


def _most_detail(problem: PipelineProblem, spine: PassSpine) -> int:
    """Return how many passes next to the first and last ones can lengthen paths, at most `most_detail`."""
    if problem.pipeline.schedule in HOLD_A_BATCH:
        return 0
    return EFFORT.most_detail if spine.returns else 1


def _ahead(problem: PipelineProblem, spine: PassSpine) -> list[int] | None:
    """Return how many samples a stage is ahead, by the number of devices behind it; None if unknown."""
    devices, samples = int(problem.count.sum()), problem.pipeline.microbatches or 1
    if not spine.trains or problem.copies.max() > 1:
        return None
    if problem.pipeline.schedule in HOLD_A_BATCH:
        return [samples] * (devices + 1)
    if spine.returns:
        return list(range(devices + 1))
    return [1] * (devices + 1) if spine.together else None


class Between(NamedTuple):
    """L supernodes that are left out and lie between two others: they are in their stage if that is one.

    Parameters
    ----------
    start
        Shape (n + 1,): for each supernode the first of those for which it is the one that a walk adds last.
    net
        Shape (L,): the net of the two others alone.
    forward, backward
        Shape (K, L): the processing times of both passes.
    """

    start: Ints
    net: Ints
    forward: Floats
    backward: Floats


class MakespanSpec(NamedTuple):
    """The pipelines that the sweep looks for; there are K kinds, S states, I ideals and D devices.

    Parameters
    ----------
    way
        See :data:`WAYS`.
    returns
        Whether the backward pass runs through the stages from the last to the first.
    turns
        Whether a sample turns at the last stage: whether there is a backward pass, which returns.
    idle
        Whether idle devices may count as devices behind a stage.
    samples
        The number of microbatches.
    limit
        Only pipelines whose stages bound the makespan by at most this much count.
    most
        The largest load of a stage for a sample, which follows from the limit.
    forward, backward
        Shape (K, n): the processing times of both passes.
    between
        What lies between supernodes.
    before, after
        Shape (n,): see :class:`partitioner.methods.pipeline_bound.paths.PassSpine`.
    spine
        Shape (I,): how many supernodes of the spine each ideal holds, see
        :class:`partitioner.methods.pipeline_bound.paths.PassSpine`.
    rows
        The rows of the schedule, in which lengths are those of the paths from a pass to another one.
    whole
        The number of the length of the path through the whole schedule; 0 if no paths are known.
    close
        How close lengths must be to be counted as equal.
    capacity, taken
        Shape (S,): joint capacity of the devices that a state leaves, and of those in use.
    capacity_on
        Shape (S,): the capacity for supernodes of the spine.
    price
        Shape (S,): by how much capacities grow with the largest load.
    remaining_on
        Shape (I,): the weight of the supernodes of the spine outside an ideal.
    remaining, above
        Shapes (I,) and (n,), see :class:`partitioner.methods.dp.stages.PipelineSearchSpec`.
    widest
        Shape (K,): the most devices that may share a stage.
    least_in_flight, least_versions
        The fewest samples and versions of the weights that any stage holds.
    """

    way: int
    returns: bool
    turns: bool
    idle: bool
    samples: int
    limit: float
    most: float
    forward: Floats
    backward: Floats
    between: Between
    before: Floats
    after: Floats
    spine: Ints
    rows: RowEvents
    whole: int
    close: float
    capacity: Floats
    taken: Floats
    capacity_on: Floats
    price: Floats
    remaining_on: Floats
    remaining: Floats
    above: Floats
    widest: Ints
    least_in_flight: float
    least_versions: float


def held_of(lattice: Lattice, on: Bools) -> Ints:
    """Return how many of some supernodes each ideal holds, shape (I,); `on` has shape (n,)."""
    return np.asarray(on.sum() - remaining_weights(lattice, on.astype(np.float64)), dtype=np.int64)
