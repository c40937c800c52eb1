"""The search of better placements by simulated annealing on the makespan, in rounds.

Moves of groups between devices and of tasks in the order, and how they are undone.

Simulated annealing on the makespan, compiled.

Without it 16 of 17 makespans are longer, by up to 67 % (scripts/ablations.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.method import Settings, meets
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.ranks import bottom_level
from partitioner.methods.placers.refine_walk import (
    ROOM_FOR_MOVES,
    Walk,
    sort_by_start,
    time_from,
    trace,
)
from partitioner.methods.placers.task_arrays import (
    FIRST,
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    new_state,
)
from partitioner.methods.placers.timing import finish_times, makespan, new_queues
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks

RUN, SWAP, SHIFT, ANY = 0, 1, 2, 3
TRIES = 8  # attempts to find a group to exchange with
SETTLED: bool = np.bool_(False)  # type: ignore[assignment] # no group will leave the device


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def propose(arrays: TaskArrays, walk: Walk, steps: int) -> tuple[int, int, int, int]:
    """Make a random move.

    Returns
    -------
    tuple
        The first place in the order from which times may change, or ``NOWHERE`` if nothing was moved; how
        many groups were moved; and the old and new place of a task that was shifted, or ``NOWHERE`` twice.
    """
    draw = np.random.random()
    kind = RUN if draw < 0.55 else SHIFT if draw < 0.8 else SWAP if draw < 0.9 else ANY
    at = np.random.randint(steps)
    v = walk.path[at] if kind != ANY else np.random.randint(len(walk.order))
    if kind == SHIFT:
        source, target = _shift(arrays, walk, v, walk.path[at + 1] if walk.waits[at] else NOWHERE)
        return (NOWHERE if source == target else min(source, target)), 0, source, target
    # The task's group moves to the device of a producer or consumer of the task, or to any other.
    here, there = walk.device[v], np.int64(-1)
    before, after = arrays.before_start[v], arrays.after_start[v]
    inputs, outputs = arrays.before_start[v + 1] - before, arrays.after_start[v + 1] - after
    if inputs + outputs and np.random.random() < 0.5:
        e = np.random.randint(inputs + outputs)
        there = walk.device[arrays.before[before + e] if e < inputs else arrays.after[after + e - inputs]]
    else:
        there = np.int64(np.random.randint(len(walk.end)))
    if there == here:
        return NOWHERE, 0, NOWHERE, NOWHERE
    first, count = _move(arrays, walk, arrays.group[v], there, FIRST, kind == SWAP)
    if count and kind == SWAP:  # a group comes back from there
        for _ in range(TRIES + 1):
            w = np.random.randint(len(walk.order))
            if walk.device[w] == there and arrays.group[w] != arrays.group[v]:
                other, count = _move(arrays, walk, arrays.group[w], here, count, SETTLED)
                first = min(first, other)
                break
    if count and kind == RUN:  # so do the tasks on this device that come before it on the critical path
        length = 1
        while length < ROOM_FOR_MOVES and np.random.random() < 0.5:
            length *= 2
        for step in range(at + 1, min(at + length, steps)):
            w = walk.path[step]
            if count == ROOM_FOR_MOVES or walk.device[w] not in (here, there):
                break
            if walk.device[w] == here:
                other, count = _move(arrays, walk, arrays.group[w], there, count, SETTLED)
                first = min(first, other)
    overfull = False
    for d in range(len(walk.room)):
        overfull |= walk.room[d] < 0.0
    if count and overfull:
        take_back(arrays, walk, count, NOWHERE, NOWHERE)
        count = 0
    return (first if count else NOWHERE), count, NOWHERE, NOWHERE


@njit(cache=True, inner=True, _nrt=False)
def _move(
    arrays: TaskArrays,
    walk: Walk,
    group: int,
    d: int,
    count: int,
    owing: bool,
) -> tuple[int, int]:
    """Move a group to a device if it may run there and fits; return the first place changed and the count.

    With `owing` the group need not fit yet, as another one will leave the device.
    """
    n = len(walk.order)
    size = arrays.group_size[group]
    if not arrays.group_allowed[d, group] or (size > walk.room[d] and not owing):
        return n, count
    first = n
    walk.moved[count], walk.origin[count] = group, walk.device[walk.members[walk.members_start[group]]]
    walk.room[walk.origin[count]] += size
    walk.room[d] -= size
    for i in range(walk.members_start[group], walk.members_start[group + 1]):
        walk.device[walk.members[i]] = d
        first = min(first, walk.place[walk.members[i]])
    return first, count + 1


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _shift(arrays: TaskArrays, walk: Walk, v: int, u: int) -> tuple[int, int]:
    """Exchange task `v` with the task `u` that it waits for on its device, or shift it in the order.

    `u` is ``NOWHERE`` if `v` waits for an input. Returned are the old and the new place of the task that was
    shifted.
    """
    low, high = _range(arrays, walk, v)
    source, target = walk.place[v], walk.place[v]
    if u != NOWHERE and np.random.random() < 0.6:
        if low <= walk.place[u]:
            target = walk.place[u]
        elif _range(arrays, walk, u)[1] >= walk.place[v]:
            source, target = walk.place[u], walk.place[v]
    else:
        target = low + np.random.randint(high - low + 1)
    _rotate(walk, source, target)
    return source, target


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _range(arrays: TaskArrays, walk: Walk, v: int) -> tuple[int, int]:
    """Return the first and the last place in the order between the producers and consumers of a task."""
    low, high = 0, len(walk.order) - 1
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        low = max(low, walk.place[arrays.before[e]] + 1)
    for e in range(arrays.after_start[v], arrays.after_start[v + 1]):
        high = min(high, walk.place[arrays.after[e]] - 1)
    return low, high


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _rotate(walk: Walk, source: int, target: int) -> None:
    """Move the task at place `source` of the order to place `target`."""
    v = walk.order[source]
    step = 1 if target > source else -1
    for i in range(source, target, step):
        walk.order[i] = walk.order[i + step]
        walk.place[walk.order[i]] = i
    walk.order[target] = v
    walk.place[v] = target


@njit(cache=True, inner=True, _nrt=False)
def take_back(
    arrays: TaskArrays,
    walk: Walk,
    count: int,
    source: int,
    target: int,
) -> None:
    """Undo a move of `count` groups and of the task shifted from `source` to `target`."""
    if source != NOWHERE:
        _rotate(walk, target, source)
    for k in range(count - 1, -1, -1):
        group, d = walk.moved[k], walk.origin[k]
        size = arrays.group_size[group]
        walk.room[walk.device[walk.members[walk.members_start[group]]]] += size
        walk.room[d] -= size
        for i in range(walk.members_start[group], walk.members_start[group + 1]):
            walk.device[walk.members[i]] = d


ROUNDING = 1 + 1e-12


@njit(cache=True, nogil=True, _nrt=False)
def anneal(
    arrays: TaskArrays,
    state: PartialSchedule,
    walk: Walk,
    best_device: Ints,
    best_order: Ints,
    best: float,
    heat: Floats,
    seed: int,
) -> float:
    """Try one move for every temperature in `heat`; keep the best placement and return its makespan.

    Parameters
    ----------
    arrays, state
        The tasks, and a schedule as scratch space for the timing with contention.
    walk
        The current placement of the search, from which it continues, in the order of the tasks' starts.
    best_device, best_order, best
        The best placement so far, which is overwritten, and its makespan.
    heat
        Shape (moves,): the temperatures, in the unit of time.
    seed
        Seed of the random moves.

    Returns
    -------
    float
        The makespan of the best placement.
    """
    np.random.seed(seed)
    value = time_from(arrays, state, walk, FIRST, np.inf)[0]
    overwrite(walk.finish, walk.trial)
    steps = trace(arrays, state, walk)
    for temperature in heat:
        most = (value - temperature * np.log(1.0 - np.random.random())) * ROUNDING
        first, count, source, target = propose(arrays, walk, steps)
        if first == NOWHERE:
            continue
        reached, until = time_from(arrays, state, walk, first, most)
        if reached > most:
            for i in range(first, until):
                walk.trial[walk.order[i]] = walk.finish[walk.order[i]]
            take_back(arrays, walk, count, source, target)
            continue
        value = reached
        overwrite(walk.finish, walk.trial)
        steps = trace(arrays, state, walk)
        if value < best:
            best = value
            overwrite(best_device, walk.device)
            overwrite(best_order, walk.order)
    return best


@dataclass(frozen=True)
class RefinementEffort:
    """How many moves are tried, and at which temperatures.

    Measured at half and at twice each value on three workloads of `instances/` (bert3_operator,
    inceptionv3 and gnmt_operator inference), one seed: the mean of the makespans rises by 0.5 % with half the
    `moves` and changes by less than 0.2 % with any other field. `work` and `chunk` limit the time on larger
    graphs, `long` comes into play on none of the three.

    Parameters
    ----------
    moves, work
        Limits on the moves, and on moves times the number of tasks and edges.
    chunk
        Moves times tasks and edges between two readings of the clock.
    hot, cold
        The first temperature of each round, as a fraction of a task's time on the critical path, and the last
        temperature over the first.
    long
        The tasks of a critical path, at least, as which its length counts for that time.
    """

    moves: int = 200_000
    work: float = 6e8
    chunk: float = 4e7
    hot: tuple[float, ...] = (0.1, 0.3, 0.03)
    cold: float = 0.02
    long: int = 20


EFFORT = RefinementEffort()


def refined(tasks: Tasks, found: Found, settings: Settings, bound: float = 0.0) -> Found:
    """Return a placement whose makespan is at most that of the given one, by annealing in rounds.

    A move takes a task of the critical path, or a run of its tasks on one device, to another device,
    each with its group; exchanges two groups; or moves a task in the order. Every placement on the way obeys
    memory, groups and kinds.

    Parameters
    ----------
    tasks, found
        The tasks, and their placement to start from.
    settings
        Seed, gap and deadline. Without a deadline the search ends after a number of moves: after a second or
        two for a few hundred tasks, after ten seconds for tens of thousands.
    bound
        A lower bound on the makespan; the search ends when it is met within the gap.
    """
    search = _Search(tasks, found, settings, bound)
    search.run()
    if search.value >= search.first or not tasks.hold(search.best_device):
        return replace(found, statistics={**found.statistics, "moves": float(search.moves)})
    figures = {**found.statistics, "unrefined": search.first, "moves": float(search.moves)}
    return replace(found, device=search.best_device, order=search.best_order, statistics=figures)


class _Search:
    """A search in progress: its current placement, its best one, and its moves so far."""

    def __init__(self, tasks: Tasks, found: Found, settings: Settings, bound: float) -> None:
        self.tasks, self.settings, self.bound = tasks, settings, bound
        self.random = np.random.default_rng(settings.seed)
        self.arrays, self.state = arrays_of(tasks), new_state(tasks)
        self.best_device, self.best_order = found.device.copy(), found.order.copy()
        self.walk = _walk(tasks, found)
        self.first = self.value = makespan(tasks, found.device, found.order)
        self.moves = 0
        self.limit = moves_for(tasks)

    def run(self) -> None:
        """Run the rounds, each from the best placement so far."""
        for hot in EFFORT.hot if self.tasks.n else ():
            heat = _heat(self.limit // len(EFFORT.hot), hot * self._step())
            self._restart()
            for chunk in np.array_split(heat, max(1, len(heat) // self._chunk())):
                if meets(self.bound, self.value, self.settings.gap) or self.settings.expired:
                    return
                self.settings.report_progress("refine", self.moves, self.limit, self.value, self.bound)
                self._anneal(chunk)

    def _anneal(self, heat: Floats) -> None:
        seed = int(self.random.integers(2**31))
        best = self.best_device, self.best_order, self.value
        sort_by_start(self.arrays, self.walk)
        self.value = float(anneal(self.arrays, self.state, self.walk, *best, heat, seed))
        self.moves += len(heat)

    def _restart(self) -> None:
        """Make the best placement the current one."""
        walk, tasks = self.walk, self.tasks
        walk.device[:], walk.order[:] = self.best_device, self.best_order
        walk.finish[:] = finish_times(tasks, walk.device, walk.order)
        walk.room[:] = tasks.limit - np.bincount(walk.device, tasks.size, len(tasks.limit))

    def _step(self) -> float:
        """Return an estimate of the time of a task on the critical path."""
        return float(self.value / max(EFFORT.long, 4 * self.tasks.n**0.5))

    def _chunk(self) -> int:
        return int(np.clip(EFFORT.chunk / (1 + _steps(self.tasks)), 10, 5_000))


def moves_for(tasks: Tasks) -> int:
    """Return how many moves a search tries without a deadline."""
    each = _steps(tasks) * (4 if tasks.contention else 1)
    return int(min(EFFORT.moves, EFFORT.work / (1 + each)))


def _steps(tasks: Tasks) -> int:
    """Return the steps of timing one placement."""
    return tasks.n + len(tasks.before.items)


def _heat(moves: int, hot: float) -> Floats:
    """Return temperatures that fall by the same factor from move to move, shape (moves,)."""
    return np.asarray(hot * EFFORT.cold ** np.linspace(0.0, 1.0, max(1, moves)))


def _walk(tasks: Tasks, found: Found) -> Walk:
    n, count = tasks.n, len(tasks.limit)
    least = tasks.time.min(axis=0)
    return Walk(
        device=found.device.astype(np.int64),
        order=found.order.astype(np.int64),
        place=np.empty(n, dtype=np.int64),
        finish=np.empty(n),
        trial=np.empty(n),
        end=np.empty(count),
        room=np.empty(count),
        path=np.empty(n, dtype=np.int64),
        waits=np.empty(n, dtype=bool),
        queues=new_queues(n, count),
        moved=np.empty(ROOM_FOR_MOVES, dtype=np.int64),
        origin=np.empty(ROOM_FOR_MOVES, dtype=np.int64),
        members_start=np.concatenate(([0], np.cumsum(np.bincount(tasks.group)))).astype(np.int64),
        members=np.argsort(tasks.group, kind="stable"),
        tail=bottom_level(tasks, least, np.zeros(len(tasks.cost))) - least,
    )
