"""Simulated annealing over stages: supernodes move between neighbouring stages, devices exchange their kinds.

Stages are those of a chain after every move: a supernode takes with it all of its stage that must follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.local_search.kernel import draw_below, draw_unit
from partitioner.methods.virtual_stages.borders import HeldByRank, StageBorders, StageEstimates
from partitioner.methods.virtual_stages.kernel import PassModel, estimated_makespan
from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.variants import PipelineProblem


@dataclass(frozen=True)
class StageAnnealingEffort:
    """How long stages are annealed.

    On operators of BERT-3 in training (four devices, two stages on each, ``zbv``, 16 microbatches) the rounds
    lead to a makespan of 110.67, with other seeds, too; rounds that all begin at 0.03, to 118.3 to 120.2.

    Parameters
    ----------
    rounds
        For each round the temperature at its start as a fraction of the makespan, the moves that are tried
        for each supernode, and the place of the stages that it begins with: 0 for the best known ones.
    alone
        The same temperature and moves of the rounds where devices have one stage each. Inception-v3 in
        training, 1F1B with 8 microbatches, in 10 s: with 400 moves, four seeds, 1,225 to 1,243, with the
        longer rounds, three seeds, 1,239 to 1,256; the search for a bound alone finds 1,252 (60 s).
    most
        The supernodes that count for that; more of them get no more moves.
    chunk, work
        The most moves between two looks at the clock, and the most supernodes and passes in all of them.
    cold
        The temperature at the end of a round as a fraction of the makespan.
    """

    rounds: tuple[tuple[float, int, int], ...] = (
        (0.01, 2000, 0),
        (0.1, 6000, 1),
        (1.0, 8000, 0),
        (0.3, 6000, 2),
        (0.03, 6000, 0),
        (0.01, 4000, 0),
    )
    alone: tuple[float, int] = (0.1, 500)
    most: int = 128
    chunk: int = 50_000
    work: int = 100_000_000
    cold: float = 1e-4


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
            found = estimated_makespan(model, stage, kinds)
            accepted = found <= limit and (not limited or has_room(room, model.rank, stage, kinds))
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
    """

    estimates: StageEstimates
    over: Callable[[], bool]
    rng: np.random.Generator
    moves: int = 0

    def rounds(self, known: Sequence[Valued], most: int | None = None) -> Iterator[StageBorders]:
        """Yield the best stages of each round, or of at most some first ones.

        They begin with known stages, of which there may be more after each round; each is given with its
        makespan.
        """
        for hot, moves, place in EFFORT.rounds[:most]:
            if not known or self.over():
                break
            ranked = sorted(dict(known).items())
            yield self._best(ranked[min(place, len(ranked) - 1)][1], hot, moves)

    def around(self, borders: StageBorders) -> StageBorders:
        """Return the best stages of a short round, for devices with one stage each."""
        return self._best(borders, *EFFORT.alone)

    def _best(self, borders: StageBorders, hot: float, moves: int) -> StageBorders:
        """Return the best stages of a round that begins with some stages."""
        estimates, stage, kinds = self.estimates, borders.stage, np.array(borders.kinds)
        problem, value = estimates.problem, estimates.makespan(borders)
        state = AnnealedStages(stage, kinds, stage.copy(), kinds.copy(), np.full(2, value))
        bits = self.rng.integers(1, 2**63, 1, dtype=np.uint64)
        model, room = estimates.model(borders.stages), StageRoom.of(problem, estimates.held(borders))
        given = model, room, problem.successors, problem.predecessors, state, bits
        chunk = min(EFFORT.chunk, 1 + EFFORT.work // (problem.n + len(model.graph.stage)))
        parts = -(-moves * min(problem.n, EFFORT.most) // chunk)
        for temperatures in pairwise((value * np.geomspace(hot, EFFORT.cold, parts + 1)).tolist()):
            if self.over():
                break
            anneal_stages(*given, chunk, temperatures)
            self.moves += chunk
        return StageBorders.of(state.best_stage, tuple(state.best_kinds.tolist()))
