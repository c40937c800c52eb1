"""The search of better placements by simulated annealing on the makespan, in rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.ranks import bottom_level
from partitioner.methods.list_scheduling.refine.anneal import anneal
from partitioner.methods.list_scheduling.refine.walk import ROOM_FOR_MOVES, Walk
from partitioner.methods.list_scheduling.task_arrays import arrays_of, new_state
from partitioner.methods.list_scheduling.timing import finish_times, makespan
from partitioner.methods.method import Settings, meets
from partitioner.problem.arrays import Floats
from partitioner.problem.tasks import Tasks

MOST_MOVES, STEPS = 200_000, 6e8  # limits on the moves, and on moves times the number of tasks and edges
CHUNK = 4e7
HOT = 0.1, 0.3, 0.03  # first temperature of each round, as a fraction of a task's time on the critical path
COLD = 0.02  # the last temperature over the first
LONG = 20


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
        for hot in HOT if self.tasks.n else ():
            heat = _heat(self.limit // len(HOT), hot * self._step())
            self._restart()
            for chunk in np.array_split(heat, max(1, len(heat) // self._chunk())):
                if meets(self.bound, self.value, self.settings.gap) or self.settings.expired:
                    return
                self.settings.report_progress("refine", self.moves, self.limit, self.value, self.bound)
                self._anneal(chunk)

    def _anneal(self, heat: Floats) -> None:
        seed = int(self.random.integers(2**31))
        best = self.best_device, self.best_order, self.value
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
        return float(self.value / max(LONG, 4 * self.tasks.n**0.5))

    def _chunk(self) -> int:
        return int(np.clip(CHUNK / (1 + _steps(self.tasks)), 10, 5_000))


def moves_for(tasks: Tasks) -> int:
    """Return how many moves a search tries without a deadline."""
    each = _steps(tasks) * (4 if tasks.contention else 1)
    return int(min(MOST_MOVES, STEPS / (1 + each)))


def _steps(tasks: Tasks) -> int:
    """Return the steps of timing one placement."""
    return tasks.n + len(tasks.before.items)


def _heat(moves: int, hot: float) -> Floats:
    """Return temperatures that fall by the same factor from move to move, shape (moves,)."""
    return np.asarray(hot * COLD ** np.linspace(0.0, 1.0, max(1, moves)))


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
        moved=np.empty(ROOM_FOR_MOVES, dtype=np.int64),
        origin=np.empty(ROOM_FOR_MOVES, dtype=np.int64),
        members_start=np.concatenate(([0], np.cumsum(np.bincount(tasks.group)))).astype(np.int64),
        members=np.argsort(tasks.group, kind="stable"),
        tail=bottom_level(tasks, least, np.zeros(len(tasks.cost))) - least,
    )
