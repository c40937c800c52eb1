"""Stages as the pieces of one order of the supernodes, estimates of their makespan, and moves of borders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from partitioner.methods.virtual_stages.pass_graph import pass_graph
from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.nets import build_nets
from partitioner.problem.problem import Nets, Problem
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Graph
from partitioner.workload.virtual_stages.in_flight import samples_by_chunk
from partitioner.workload.virtual_stages.schedules import VirtualSchedule

if TYPE_CHECKING:
    from partitioner.methods.virtual_stages.kernel import PassModel


class StageEstimates:
    """Estimates of makespans; some 20 microseconds each, where a simulation takes milliseconds.

    Parameters
    ----------
    graph, problem
        The graph and its contraction.
    schedule, chunks, microbatches
        The schedule, how many stages each device has, and how many microbatches there are.
    input_share
        The part of a backward pass that the stage before waits for, under schedules that split these passes.
    """

    def __init__(
        self,
        graph: Graph,
        problem: PipelineProblem,
        schedule: VirtualSchedule,
        chunks: int,
        microbatches: int,
        input_share: float,
    ) -> None:
        self.problem = problem
        longest = problem.time.sum(where=problem.allowed[:, None], initial=1.0)
        self.time = np.where(problem.allowed[:, None], problem.time, LONG * longest)
        self.schedule, self.chunks, self.microbatches = schedule, chunks, microbatches
        self.input_share = input_share
        self.nets: Nets = build_nets(graph, problem.member, problem.n, "passes")
        self.models: dict[int, PassModel] = {}

    def makespan(self, borders: StageBorders) -> float:
        """Return the makespan of stages."""
        from partitioner.methods.virtual_stages.kernel import estimated_makespan  # loads numba

        model, costs = self.model(borders.stages), np.empty((borders.stages, 3, 2))
        return float(estimated_makespan(model, borders.stage, np.array(borders.kinds), costs))

    def held(self, borders: StageBorders) -> HeldByRank:
        """Return the samples that the devices of stages hold."""
        return held_by_rank(self.schedule, borders.stages // self.chunks, self.chunks, self.microbatches)

    def model(self, stages: int) -> PassModel:
        """Return what the estimates for a number of stages need."""
        from partitioner.methods.virtual_stages.kernel import PassModel

        if stages not in self.models:
            devices, problem = stages // self.chunks, self.problem
            graph = pass_graph(self.schedule, devices, self.chunks, self.microbatches)
            self.models[stages] = PassModel(
                graph,
                np.array(self.schedule.ranks(devices, self.chunks)),
                self.nets,
                np.ascontiguousarray(self.time.transpose(0, 2, 1)),
                problem.transfer_factor,
                self.input_share if graph.halves else 1.0,
                problem.communication == "sequential",
            )
        return self.models[stages]


def onward_edges(graph: Graph, problem: Problem) -> list[list[int]]:
    """Return the edges between backward nodes that lead from a stage to a later one in some chains."""
    edges, after = graph.edges[graph.backward[graph.edges].all(axis=1)], problem.successors
    follows = set(zip(after.owners().tolist(), after.items.tolist(), strict=True))
    return [pair for pair in edges.tolist() if tuple(problem.member[pair].tolist()) in follows]


LONG = 1e6  # times all work together: what a supernode takes on a kind on which it may not run


@dataclass(frozen=True)
class BordersEffort:
    """How borders are moved, and how often.

    Measured at half and at twice each value on gnmt training on four devices (``zbv``): the makespan stays as
    it is; the estimates, 35,317, go from 10,479 with twice the `strides` to 60,000 with half of them.

    Parameters
    ----------
    strides, together
        The supernodes that borders are moved by, and the numbers of neighbouring borders that are moved
        together.
    estimates
        The most estimates of moved borders.
    shakes, shaken
        How often borders are moved at random from a local optimum, and how many at a time.
    exchanged
        The share of random moves that exchange two devices of unlike kinds instead.
    """

    strides: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12)
    together: tuple[int, ...] = (1, 2, 3)
    estimates: int = 60_000
    shakes: int = 300
    shaken: int = 3
    exchanged: float = 0.3


EFFORT = BordersEffort()


Change = tuple[int, int, int] | tuple[int, int]  # a move of borders, or an exchange of two devices


def usual_orders(count: Ints, speed: Floats, memory: Floats, devices: int) -> list[Ints]:
    """Return the fastest devices by their kinds: the fastest first, last, and those of the most memory first.

    `count`, `speed` and `memory` have shape (kinds,); the same order is returned once.

    Examples
    --------
    >>> [each.tolist() for each in usual_orders(np.array([1, 2]), np.array([1.0, 2.0]), np.ones(2), 2)]
    [[1, 1]]
    """
    kinds = np.repeat(np.arange(len(count)), count)
    fast = kinds[np.argsort(-speed[kinds], kind="stable")][:devices]
    orders = fast, fast[::-1], fast[np.argsort(-memory[fast], kind="stable")]
    return [np.array(order) for order in dict.fromkeys(tuple(each.tolist()) for each in orders)]


class HeldByRank(NamedTuple):
    """The samples that devices hold at once.

    Parameters
    ----------
    ranks
        Shape (stages,): the device of every stage.
    samples, first
        Shape (combinations, stages) and (devices,): the samples in flight of the combinations of all devices,
        and the first combination of each.
    """

    ranks: Ints
    samples: Floats
    first: Ints

    def memory(self, once: Floats, kept: Floats, workspace: Floats) -> Floats:
        """Return the most memory that devices hold, shape (devices,), by the amounts of stages, (stages,)."""
        devices = len(self.first)
        largest = np.zeros(devices)
        np.maximum.at(largest, self.ranks, workspace)
        held = np.maximum.reduceat(self.samples @ kept, self.first)
        return np.asarray(np.bincount(self.ranks, once, devices) + held + largest)


@lru_cache(maxsize=256)
def held_by_rank(schedule: VirtualSchedule, devices: int, chunks: int, microbatches: int) -> HeldByRank:
    """Return the samples that devices hold under a schedule."""
    ranks = np.array(schedule.ranks(devices, chunks))
    given = devices, chunks, microbatches
    each = [np.array(samples_by_chunk(schedule.name, rank, *given)) for rank in range(devices)]
    first = np.concatenate(([0], np.cumsum([len(one) for one in each])[:-1]))
    samples = np.zeros((sum(map(len, each)), len(ranks)))
    for rank, (own, row) in enumerate(zip(each, first.tolist(), strict=True)):
        samples[row : row + len(own), np.flatnonzero(ranks == rank)] = own
    return HeldByRank(ranks, samples, first)


class MemoryShares(NamedTuple):
    """Weights and speeds with which even stages fill the memory of their devices alike.

    Parameters
    ----------
    weight
        Shape (supernodes,): the memory that each holds on an average device.
    speed
        Shape (devices,): the share of it that a device can hold, by its memory and samples in flight.
    """

    weight: Floats
    speed: Floats


def memory_shares(
    problem: PipelineProblem, schedule: VirtualSchedule, chunks: int, kinds: Ints
) -> MemoryShares:
    """Return the shares of devices whose kinds have these numbers, shape (devices,), rank by rank."""
    pipeline = problem.pipeline
    once, batch = problem.size + pipeline.parameters, pipeline.microbatches or 1
    _, samples, first = held_by_rank(schedule, len(kinds), chunks, batch)
    held = np.maximum.reduceat(samples.sum(axis=1), first) / chunks
    room, need = problem.memory[kinds], once.sum() + held * pipeline.activations.sum()
    room = np.where(np.isfinite(room), room, need.max())
    return MemoryShares(once + held.mean() * pipeline.activations, room / np.maximum(need, LEAST))


@dataclass(frozen=True, eq=False)
class StageBorders:
    """The stages of `n` supernodes as pieces of an order in which they follow one another.

    Parameters
    ----------
    order
        Shape (n,): the supernodes, stage by stage.
    borders
        Shape (stages + 1,): where stages begin in the order, and its end.
    kinds
        For every device the number of its kind; empty if nobody asks for it.

    Examples
    --------
    >>> found = StageBorders.of(np.array([0, 1, 0, 1]))
    >>> found.order.tolist(), found.borders.tolist()
    ([0, 2, 1, 3], [0, 2, 4])
    """

    order: Ints
    borders: Ints
    kinds: tuple[int, ...] = ()

    @classmethod
    def of(cls, stage: Ints, kinds: tuple[int, ...] = ()) -> StageBorders:
        """Return the pieces for the stage of every supernode; within a stage supernodes keep their order."""
        return cls(np.argsort(stage, kind="stable"), np.append(0, np.cumsum(np.bincount(stage))), kinds)

    @classmethod
    def on(cls, devices: Devices, names: Iterable[str], stage: Ints) -> StageBorders:
        """Return the pieces for the stage of every supernode, on devices of these names."""
        return cls.of(stage, tuple(kind[0] for name in names if (kind := devices.kind_of(name)) is not None))

    def names(self, devices: Devices) -> tuple[str, ...]:
        """Return the names of the devices, the first ones of each kind."""
        numbers = [self.kinds[:rank].count(kind) for rank, kind in enumerate(self.kinds)]
        return tuple(devices.kinds[kind].device(i) for kind, i in zip(self.kinds, numbers, strict=True))

    @classmethod
    def even(cls, weight: Floats, speed: Floats, kinds: tuple[int, ...] = ()) -> StageBorders:
        """Return stages in the order of the supernodes, even by the speed of each; none of them is empty."""
        return cls.of(_even(weight, speed), kinds)

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return len(self.borders) - 1

    @property
    def stage(self) -> Ints:
        """Shape (n,): the stage of every supernode."""
        found = np.empty_like(self.order)
        found[self.order] = np.repeat(np.arange(self.stages), np.diff(self.borders))
        return found

    def cut_again(self, weight: Floats, pieces: int) -> StageBorders:
        """Return the stages with each of them cut into pieces of even weight, as far as it has supernodes."""
        stage = np.zeros(len(self.order), dtype=np.int64)
        for i, (first, last) in enumerate(pairwise(self.borders.tolist())):
            own = self.order[first:last]
            stage[own] = i * pieces + _even(weight[own], np.ones(min(pieces, len(own))))
        return StageBorders.of(np.unique(stage, return_inverse=True)[1], self.kinds)

    def parted(self, stage: int, kind: int) -> StageBorders:
        """Return the stages with one of them divided, the second half of it on a device of some kind.

        Examples
        --------
        >>> StageBorders.of(np.array([0, 0, 1]), (0, 0)).parted(0, 1).joined(2)
        StageBorders(order=array([0, 1, 2]), borders=array([0, 1, 3]), kinds=(0, 1))
        """
        middle = int(self.borders[stage] + self.borders[stage + 1]) // 2
        kinds = (*self.kinds[: stage + 1], kind, *self.kinds[stage + 1 :])
        return replace(self, borders=np.insert(self.borders, stage + 1, middle), kinds=kinds)

    def joined(self, stage: int) -> StageBorders:
        """Return the stages with one of them added to the one before, on the device of that."""
        kinds = (*self.kinds[:stage], *self.kinds[stage + 1 :])
        return replace(self, borders=np.delete(self.borders, stage), kinds=kinds)

    def moves(self) -> Iterator[tuple[int, int, int]]:
        """Yield the moves of neighbouring borders as first border, one after the last, and distance."""
        for count in EFFORT.together:
            for stride in EFFORT.strides:
                for first in range(1, self.stages - count + 1):
                    yield first, first + count, -stride
                    yield first, first + count, stride

    def moved(self, first: int, end: int, distance: int) -> StageBorders | None:
        """Return the stages after a move; None if a stage would be empty."""
        borders = self.borders.copy()
        borders[first:end] += distance
        return None if (np.diff(borders) < 1).any() else replace(self, borders=borders)

    def exchanges(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of devices of unlike kinds."""
        for one, other in combinations(range(len(self.kinds)), 2):
            if self.kinds[one] != self.kinds[other]:
                yield one, other

    def exchanged(self, one: int, other: int) -> StageBorders:
        """Return the same stages with the kinds of two devices exchanged."""
        kinds = list(self.kinds)
        kinds[one], kinds[other] = kinds[other], kinds[one]
        return replace(self, kinds=tuple(kinds))

    def changes(self) -> Iterator[Change]:
        """Yield the moves of borders and the exchanges of devices."""
        yield from self.moves()
        yield from self.exchanges()

    def changed(self, change: Change) -> StageBorders | None:
        """Return the stages after a change; None if a stage would be empty."""
        return self.moved(*change) if len(change) == 3 else self.exchanged(*change)

    def shaken(self, rng: np.random.Generator, count: int) -> StageBorders:
        """Return the stages after moves of some borders at random, or an exchange of two devices."""
        pairs = list(self.exchanges())
        if pairs and rng.random() < EFFORT.exchanged:
            return self.exchanged(*pairs[int(rng.integers(len(pairs)))])
        found = self
        for _ in range(count if self.stages > 1 else 0):
            first = int(rng.integers(1, self.stages))
            distance = int(rng.choice(EFFORT.strides)) * int(rng.choice([-1, 1]))
            found = found.moved(first, first + 1, distance) or found
        return found


def _even(weight: Floats, speed: Floats) -> Ints:
    """Return the number of the piece of each item; pieces, at most as many as items, are even by `speed`."""
    total, count = np.concatenate(([0.0], np.cumsum(weight))), len(speed)
    steps = np.arange(1, count)
    place = np.abs(total[:, None] - total[-1] * (np.cumsum(speed)[:-1] / speed.sum())).argmin(axis=0)
    place = np.maximum(np.maximum.accumulate(place - steps) + steps, steps)
    place = np.minimum(place, len(weight) - count + steps)
    return np.searchsorted(place, np.arange(len(weight)), side="right")


def fitted(
    borders: StageBorders, missing: Callable[[StageBorders], float], over: Callable[[], bool]
) -> StageBorders | None:
    """Return stages that lack no memory, after moves each of which lowers what is missing.

    Parameters
    ----------
    borders
        The stages to start from.
    missing
        The memory that stages lack, in bytes; infinity where they break another rule.
    over
        Whether the search must end.

    Returns
    -------
    StageBorders or None
        None if no single move lowers what is missing, or the time is over.

    Examples
    --------
    >>> stages = StageBorders.of(np.array([0, 0, 0, 1]))
    >>> fitted(stages, lambda found: max(0, found.borders[1] - 2), lambda: False).borders.tolist()
    [0, 2, 4]
    """
    least, before = missing(borders), np.inf
    while 0 < least < before:
        before = least
        for change in borders.changes():
            moved = None if over() or least == 0 else borders.changed(change)
            lacking = np.inf if moved is None else missing(moved)
            if moved is not None and lacking < least:
                borders, least = moved, lacking
    return None if least > 0 else borders


LEAST = 1e-150  # memory by which others are divided
TOLERANCE = 1e-9
Estimated = tuple[float, StageBorders]


@dataclass
class BorderDescent:
    """Moves of borders as long as the estimated makespan falls, from some starts and then at random.

    Parameters
    ----------
    estimates
        The estimates of makespans.
    sound
        Whether stages obey the rules of the call.
    over
        Whether the search must end.
    rng
        The source of random moves.
    """

    estimates: StageEstimates
    sound: Callable[[StageBorders], bool]
    over: Callable[[], bool]
    rng: np.random.Generator
    moves: int = 0

    def local_optima(self, starts: list[StageBorders]) -> Iterator[StageBorders]:
        """Yield stages that no move improves: from each start, then after random moves of the best ones."""
        best: Estimated | None = None
        for start in starts:
            found = self._descent(start)
            yield found[1]
            best = found if best is None or found[0] < best[0] else best
        for _ in range(EFFORT.shakes if best is not None else 0):
            if best is None or self.ended:
                return
            found = self._descent(best[1].shaken(self.rng, EFFORT.shaken))
            if found[0] < best[0] * (1 - TOLERANCE) and self.sound(found[1]):
                best = found
                yield found[1]

    @property
    def ended(self) -> bool:
        """Whether the time is over, or the moves."""
        return self.moves >= EFFORT.estimates or self.over()

    def _descent(self, borders: StageBorders) -> Estimated:
        """Return the stages after moves of neighbouring borders, as long as one lowers the estimate."""
        value, going = self.estimates.makespan(borders), True
        while going:
            going = False
            for change in borders.changes():
                if self.ended:
                    return value, borders
                moved = borders.changed(change)
                if moved is None:
                    continue
                self.moves += 1
                found = self.estimates.makespan(moved)
                if found < value * (1 - TOLERANCE) and self.sound(moved):
                    value, borders, going = found, moved, True
        return value, borders


def boundary_moves(problem: Problem, stage: Ints) -> Iterator[Ints]:
    """Yield the stages of all supernodes after each move of one of them to the stage before or after.

    A supernode may move to the next stage if nothing of its own stage depends on it, and to the stage
    before if it depends on nothing of its own stage; so chains stay chains. No stage is emptied.

    Parameters
    ----------
    problem
        The contracted problem of n supernodes.
    stage
        Shape (n,): the stage of every supernode, from 0.
    """
    size, last = np.bincount(stage), int(stage.max())
    later, earlier = _free(problem.successors, stage), _free(problem.predecessors, stage)
    for node, own in enumerate(stage.tolist()):
        for free, other in ((later, own + 1), (earlier, own - 1)):
            if free[node] and 0 <= other <= last and size[own] > 1:
                moved = stage.copy()
                moved[node] = other
                yield moved


def _free(neighbours: Rows, stage: Ints) -> Bools:
    """Return for each supernode, shape (n,), whether it has no neighbour in its own stage."""
    count = np.diff(neighbours.start)
    owner = np.repeat(np.arange(len(count)), count)
    within = np.bincount(owner[stage[owner] == stage[neighbours.items]], minlength=len(count))
    return np.asarray(within == 0)
