"""Better placements by annealing on the makespan, from that of a list scheduler."""

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

MOST_MOVES, STEPS = 200_000, 6e8  # moves, and moves times tasks and edges
CHUNK = 4e7
HOT = 0.1, 0.3, 0.03  # of a task of the critical path, where each round starts
COLD = 0.02  # the last temperature over the first
LONG = 20


def refined(tasks: Tasks, found: Found, settings: Settings, bound: float = 0.0) -> Found:
    """A placement whose makespan is at most that of the one given, by annealing in rounds.

    A move takes a task of the critical path, or a run of its tasks on one device, to another device,
    each with its group; exchanges two groups; or moves a task in the order. Memory, groups and kinds are
    obeyed throughout.

    Parameters
    ----------
    tasks, found
        The tasks, and where they are.
    settings
        Seed, gap and deadline; without a deadline it ends after a number of moves, a second or two for a
        few hundred tasks, ten seconds for tens of thousands.
    bound
        No makespan is less: the search ends when that is met.
    """
    search = _Search(tasks, found, settings, bound)
    search.run()
    if search.value >= search.first or not tasks.hold(search.best_device):
        return replace(found, statistics={**found.statistics, "moves": float(search.moves)})
    figures = {**found.statistics, "unrefined": search.first, "moves": float(search.moves)}
    return replace(found, device=search.best_device, order=search.best_order, statistics=figures)


class _Search:
    """A search in progress."""

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
        """Round after round, each from the best so far."""
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
        """Go back to the best."""
        walk, tasks = self.walk, self.tasks
        walk.device[:], walk.order[:] = self.best_device, self.best_order
        walk.finish[:] = finish_times(tasks, walk.device, walk.order)
        walk.room[:] = tasks.limit - np.bincount(walk.device, tasks.size, len(tasks.limit))

    def _step(self) -> float:
        """What a task takes of a critical path of middling length."""
        return float(self.value / max(LONG, 4 * self.tasks.n**0.5))

    def _chunk(self) -> int:
        return int(np.clip(CHUNK / (1 + _steps(self.tasks)), 10, 5_000))


def moves_for(tasks: Tasks) -> int:
    """How many moves to try without a deadline."""
    each = _steps(tasks) * (4 if tasks.contention else 1)
    return int(min(MOST_MOVES, STEPS / (1 + each)))


def _steps(tasks: Tasks) -> int:
    """Of one timing."""
    return tasks.n + len(tasks.before.items)


def _heat(moves: int, hot: float) -> Floats:
    """Shape (moves,): temperatures that fall by the same factor from move to move."""
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
