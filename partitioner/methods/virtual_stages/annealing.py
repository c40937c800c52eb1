"""Simulated annealing over stages: supernodes move between neighbouring stages, devices exchange their kinds.

Stages are those of a chain after every move: a supernode takes with it all of its stage that must follow.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.local_search.kernel import draw_below, draw_unit
from partitioner.methods.virtual_stages.borders import HeldByRank, StageBorders, StageEstimates
from partitioner.methods.virtual_stages.kernel import (
    WORK,
    PassModel,
    add_transfers,
    estimated_makespan,
    makespan_by,
)
from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.variants import PipelineProblem


@dataclass(frozen=True)
class StageAnnealingEffort:
    """How long stages are annealed.

    Inception-v3 in training, 1F1B with 8 microbatches, four seeds of 7 s: 1,219.9; all rounds at 0.1: 1,220.1
    to 1,223.4; of 60,000 moves at 0.1: 1,228 to 1,245. The search for a bound alone finds 1,252 in 60 s.
    Shared ResNet-50's operators, seven seeds: 2,638 in 14 s by six that forget others at 0.3, by two at 1.0.

    Parameters
    ----------
    hot, cold
        The temperatures at the start of a round, one of which is drawn, and at its end, as fractions of the
        makespan.
    moves, each
        The most moves that are tried in a round, and those for each supernode.
    fresh, again, stale
        The temperature and moves of the first round with another number of stages, and of one from the best
        stages after some series in turn that find nothing better, when all others are forgotten.
    kept
        The best stages of each number of which one is drawn for a round to begin with.
    chance
        How often a round has another number of stages, where that is asked for.
    series, in_vain
        The rounds of a series, and after how many series in turn that find nothing better there are no more.
    chunk, work
        The most moves between two looks at the clock, and the most supernodes and passes in all of them.
    """

    hot: tuple[float, ...] = (0.02, 0.1)
    cold: float = 1e-4
    moves: int = 6000
    each: int = 100
    fresh: tuple[float, int] = (0.1, 60_000)
    again: tuple[float, int] = (0.3, 20_000)
    stale: int = 6
    kept: int = 8
    chance: float = 0.1
    series: int = 20
    in_vain: int = 40
    chunk: int = 50_000
    work: int = 100_000_000


EFFORT = StageAnnealingEffort()
FEW = np.int64(40)  # the most supernodes that move together
SHARE = np.int64(16)  # one of so many moves exchanges the kinds of devices, if they are of several


class StageRoom(NamedTuple):
    """What the memory of devices is computed by.

    Parameters
    ----------
    limit
        Shape (kinds,): the memory of a device.
    once, kept, workspace
        Shape (supernodes,): what is held once, for every sample in flight, and at most at a time.
    samples, first
        Shape (combinations, stages), (devices + 1,): as in
        :class:`partitioner.methods.virtual_stages.borders.HeldByRank`, with the end of the last device.
    """

    limit: Floats
    once: Floats
    kept: Floats
    workspace: Floats
    samples: Floats
    first: Ints

    @classmethod
    def of(cls, problem: PipelineProblem, held: HeldByRank) -> StageRoom:
        """Return the memory of the devices of a problem."""
        pipeline, end = problem.pipeline, np.append(held.first, len(held.samples))
        once, kept = problem.size + pipeline.parameters, pipeline.activations
        return cls(problem.memory, once, kept, pipeline.workspace, held.samples, end)


class AnnealedStages(NamedTuple):
    """Stages that are annealed.

    Parameters
    ----------
    stage, kinds
        Shape (supernodes,), (devices,): the stage of each supernode, and the kind of each device.
    best_stage, best_kinds
        The same of the best stages.
    value
        Shape (2,): the makespan of the stages and of the best ones.
    """

    stage: Ints
    kinds: Ints
    best_stage: Ints
    best_kinds: Ints
    value: Floats


@njit(cache=True, inner=True)
def follow(neighbours: Rows, stage: Ints, who: Ints, step: int) -> int:
    """Move the supernode `who[0]` by a step, with all of its stage that must go with it; return how many.

    `neighbours` are the successors of supernodes for a step onward, else the predecessors. More than `FEW`
    are not moved; they are counted as one more than that.
    """
    own, count, i = stage[who[0]], 1, 0
    stage[who[0]] += step
    while i < count and count <= FEW:
        v = who[i]
        i += 1
        for k in range(neighbours.start[v], neighbours.start[v + 1]):
            other = neighbours.items[k]
            if stage[other] == own and count <= FEW:
                stage[other] += step
                who[count] = other
                count += 1
    return count


@njit(cache=True, inner=True)
def has_room(room: StageRoom, rank: Ints, stage: Ints, kinds: Ints) -> bool:
    """Return whether every device has the memory for its stages."""
    stages, devices = room.samples.shape[1], len(kinds)
    kept, held, largest = np.zeros(stages), np.zeros(devices), np.zeros(devices)
    for i in range(len(stage)):
        device = rank[stage[i]]
        kept[stage[i]] += room.kept[i]
        held[device] += room.once[i]
        largest[device] = max(largest[device], room.workspace[i])
    for device in range(devices):
        most = 0.0
        for row in range(room.first[device], room.first[device + 1]):
            most = max(most, (room.samples[row] * kept).sum())
        if held[device] + most + largest[device] > room.limit[kinds[device]]:
            return False
    return True


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def shift(
    model: PassModel, stage: Ints, kinds: Ints, who: Ints, step: int, marks: tuple[Ints, Ints], costs: Floats
) -> None:
    """Change what stages cost by a move of some supernodes, after which they are in the stages `stage`.

    Subtracted is what they and their nets cost before, each net once, and added what they cost now. `marks`
    has for each net the sign with which it was counted last, at first 0, and what the kernel of transfers
    takes as `first`.
    """
    nets, rows, seen, first = model.nets, model.nets.of_node, marks[0], marks[1]
    for i in range(len(who)):
        stage[who[i]] -= step
    for sign in (-1, 1):
        for i in range(len(who)):
            v, place = who[i], stage[who[i]]
            for direction in range(2):
                costs[place, WORK, direction] += sign * model.time[kinds[model.rank[place]], v, direction]
            for k in range(rows.start[v], rows.start[v + 1]):
                e = rows.items[k]
                if seen[e] != sign:
                    seen[e] = sign
                    add_transfers(stage, model.rank, nets, e, sign, first, costs)
        if sign < 0:
            for i in range(len(who)):
                stage[who[i]] += step


@njit(cache=True, nogil=True)
def anneal_stages(
    model: PassModel,
    room: StageRoom,
    after: Rows,
    before: Rows,
    state: AnnealedStages,
    rng: Ints,
    steps: int,
    temperatures: tuple[float, float],
) -> None:
    """Try random moves of supernodes and exchanges of devices, and accept them as annealing does.

    Parameters
    ----------
    model, room
        The passes and the memory.
    after, before
        The successors and the predecessors of supernodes.
    state
        The stages, which are changed.
    rng
        Shape (1,): the state of the random numbers, which is changed.
    steps
        How many moves are tried.
    temperatures
        At the start and at the end.
    """
    stage, kinds, value = state.stage, state.kinds, state.value
    stages, unlike, limited = len(model.rank), kinds.min() < kinds.max(), np.isfinite(room.limit[kinds]).any()
    size, who = np.zeros(stages, np.int64), np.empty(FEW + 2, np.int64)
    for i in range(len(stage)):
        size[stage[i]] += 1
    if limited and not has_room(room, model.rank, stage, kinds):
        value[0] = value[1] = np.inf
    costs = np.empty((stages, 3, 2))
    estimated_makespan(model, stage, kinds, costs)
    moved = costs.copy()
    seen, first = np.zeros(len(model.nets.cost), np.int64), np.full(len(kinds), 2 * stages, np.int64)
    for tried in range(steps):
        temperature = temperatures[0] * (temperatures[1] / temperatures[0]) ** (tried / steps)
        one, other, step, count = np.int64(0), np.int64(0), 0, np.int64(0)
        exchange = unlike and draw_below(rng, SHARE) == 0
        # Make the move, so that the estimate sees the stages after it; take it back if it is not accepted.
        if exchange:
            one, other = draw_below(rng, np.int64(len(kinds))), draw_below(rng, np.int64(len(kinds)))
            kinds[one], kinds[other] = kinds[other], kinds[one]
            accepted = kinds[one] != kinds[other]
        else:
            who[0], step = draw_below(rng, np.int64(len(stage))), 2 * draw_below(rng, np.int64(2)) - 1
            one = stage[who[0]]
            other = one + step
            if other < 0 or other >= stages:
                continue
            count = follow(after if step > 0 else before, stage, who, step)
            accepted = count <= FEW and count < size[one]
        # The makespan up to which the move is accepted is drawn first; the memory is looked at last.
        if accepted:
            limit = value[0] - temperature * np.log(draw_unit(rng))
            if exchange:
                found = estimated_makespan(model, stage, kinds, moved)
            else:
                shift(model, stage, kinds, who[:count], step, (seen, first), moved)
                found = makespan_by(model, moved, kinds)
            accepted = found <= limit and (not limited or has_room(room, model.rank, stage, kinds))
            if accepted:
                overwrite(costs.ravel(), moved.ravel())
            else:
                overwrite(moved.ravel(), costs.ravel())
        if not accepted:
            for i in range(count):
                stage[who[i]] -= step
            if exchange:
                kinds[one], kinds[other] = kinds[other], kinds[one]
            continue
        value[0] = found
        if not exchange:
            size[one] -= count
            size[other] += count
        if found < value[1]:
            value[1] = found
            overwrite(state.best_stage, stage)
            overwrite(state.best_kinds, kinds)


Valued = tuple[float, StageBorders]
VALUE = itemgetter(0)
ALIKE = 1e-9  # of a makespan: the distance up to which two are the same


@dataclass
class StageAnnealing:
    """Rounds of annealing.

    Parameters
    ----------
    estimates
        The estimates of makespans.
    over
        Whether the search must end.
    rng
        The source of random moves.
    vary
        Whether some rounds have other numbers of stages.

    Attributes
    ----------
    moves, vain
        The moves that were tried, and the last series in turn that found nothing better.
    best, kept
        The best stages of all, and the best ones of each number from which rounds begin.
    """

    estimates: StageEstimates
    over: Callable[[], bool]
    rng: np.random.Generator
    vary: bool = False
    moves: int = field(default=0, init=False)
    vain: int = field(default=0, init=False)
    best: Valued | None = field(default=None, init=False)
    kept: dict[int, list[Valued]] = field(default_factory=dict, init=False)

    def series(self, known: Sequence[Valued], most: int | None = None) -> Iterator[StageBorders]:
        """Yield the best stages after each series of rounds, which begin with known ones, or after some.

        There are no more if a number of series in turn found nothing better.
        """
        while known and not self.exhausted and most != 0 and not self.over():
            known = [self.improved(*(borders for _, borders in known))]
            most = None if most is None else most - 1
            yield known[0][1]

    @property
    def exhausted(self) -> bool:
        """Whether the last series in turn found nothing better."""
        return self.vain >= EFFORT.in_vain

    def improved(self, *known: StageBorders) -> Valued:
        """Return the best stages of all rounds, after a series of some that may begin with known stages."""
        before = self.best[0] if self.best else np.inf
        for borders in known:
            if (value := self.estimates.makespan(borders)) < before * (1 - ALIKE):
                self._keep(value, borders)
        assert self.best is not None
        if self.vain and self.vain % EFFORT.stale == 0:
            self.kept.clear()
            value, borders = self._annealed(self.best[1], *EFFORT.again)
            self._keep(*((value, borders) if value < np.inf else self.best))
        for _ in range(EFFORT.series):
            if self.over():
                break
            self._keep(*self._annealed(*self._start()))
        self.vain = 0 if self.best[0] < before * (1 - ALIKE) else self.vain + 1
        return self.best

    def _keep(self, value: float, borders: StageBorders) -> None:
        """Keep stages that are among the best of their number, instead of others of the same makespan."""
        row = self.kept.setdefault(borders.stages, [])
        if value < np.inf:
            row[:] = [one for one in row if abs(value - one[0]) > ALIKE * value]
            insort(row, (value, borders), key=VALUE)
            del row[EFFORT.kept :]
            self.best = row[0] if self.best is None else min(self.best, row[0], key=VALUE)

    def _start(self) -> tuple[StageBorders, float, int]:
        """Return stages to begin with, and the temperature and moves of the round."""
        best = min((row[0] for row in self.kept.values() if row), key=VALUE)[1]
        other = self._other(best) if self.vary and self.rng.random() < EFFORT.chance else None
        row = self.kept.get((other or best).stages)
        if other and not row:
            return other, *EFFORT.fresh
        assert row
        moves = min(EFFORT.moves, EFFORT.each * self.estimates.problem.n)
        return row[int(self.rng.integers(len(row)))][1], float(self.rng.choice(EFFORT.hot)), moves

    def _other(self, borders: StageBorders) -> StageBorders | None:
        """Return the stages with one more, on a device that is not used, or one less; None if that fails."""
        place = int(self.rng.integers(borders.stages))
        if self.rng.random() < 0.5:
            return borders.joined(place) if place else None
        count = self.estimates.problem.count
        kinds = np.flatnonzero(count > np.bincount(borders.kinds, minlength=len(count)))
        one_node = borders.borders[place + 1] - borders.borders[place] == 1
        return None if one_node or not len(kinds) else borders.parted(place, int(self.rng.choice(kinds)))

    def _annealed(self, borders: StageBorders, hot: float, moves: int) -> Valued:
        """Return the best stages of a round, of an infinite makespan if the memory holds none of them."""
        estimates, stage, kinds = self.estimates, borders.stage, np.array(borders.kinds)
        problem, value = estimates.problem, estimates.makespan(borders)
        state = AnnealedStages(stage, kinds, stage.copy(), kinds.copy(), np.full(2, value))
        bits = self.rng.integers(1, 2**63, 1, dtype=np.uint64)
        model, room = estimates.model(borders.stages), StageRoom.of(problem, estimates.held(borders))
        given = model, room, problem.successors, problem.predecessors, state, bits
        chunk = min(moves, EFFORT.chunk, 1 + EFFORT.work // (problem.n + len(model.graph.stage)))
        parts = -(-moves // chunk)
        for temperatures in pairwise((value * np.geomspace(hot, EFFORT.cold, parts + 1)).tolist()):
            if self.over():
                break
            anneal_stages(*given, chunk, temperatures)
            self.moves += chunk
        found = StageBorders.of(state.best_stage, tuple(state.best_kinds.tolist()))
        return float(state.value[1]), found
