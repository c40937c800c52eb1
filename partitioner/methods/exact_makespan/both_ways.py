"""The exact search in turns from the first and from the last task, until one of the two has ended.

Where many tasks join, a search backwards in time has far fewer partial schedules than one forwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.exact_makespan.jobs import Jobs, jobs_of
from partitioner.methods.exact_makespan.path import new_path
from partitioner.methods.exact_makespan.prune import can_end
from partitioner.methods.exact_makespan.search import list_steps, search
from partitioner.methods.exact_makespan.store import new_store
from partitioner.methods.method import ROUNDING, Settings, meets
from partitioner.methods.placers.found import Found, time_unit
from partitioner.methods.placers.timing import makespan
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import OperatorNodes

SLACK = 1e-3, 1e-13  # for rounding: a fraction of the unit, or of the makespan where there is none


@dataclass(frozen=True)
class SchedulesEffort:
    """How much is done between two readings of the clock, and how many schedules are remembered.

    At half and at twice each value 40 random graphs of up to 24 operators have the same values and bounds;
    the steps, 33,126, change by at most 4 %, with `turn`.

    Parameters
    ----------
    turn, work
        The most steps between two readings of the clock, and the most work of them, each the square of the
        tasks times the devices.
    memory
        Bytes for the partial schedules of one direction.
    """

    turn: int = 2_000
    work: int = 10**7
    memory: int = 2**29


EFFORT = SchedulesEffort()


class SearchBothWays:
    """A search in progress.

    Attributes
    ----------
    best, best_value
        The best schedule found, or None, and its makespan, infinity without one.
    value
        The least makespan known.
    bound
        A lower bound on every makespan.
    steps, ended
        How many steps have been tried, and whether there are no others.
    """

    def __init__(self, problem: OperatorNodes, settings: Settings, bound: float = 0.0) -> None:
        self.tasks, self.settings = problem.tasks, settings
        self.best: Found | None = None
        self.best_value = self.value = np.inf
        self.bound, self.unit = bound, time_unit(self.tasks)
        self.steps, self.ended = 0, False
        self.most = _longest(self.tasks)
        memory = min(settings.memory_budget // 2, EFFORT.memory)
        self.directions = [_Direction(self.tasks, reverse, memory) for reverse in (False, True)]
        for direction in self.directions:
            direction.start(self.most, self._slack())

    def improve_on(self, value: float) -> None:
        """Search only for schedules that are better than a plan of this value; infinity: for any."""
        if value < self.value:
            self.value = value
            self.most = min(self.most, self._below(value))

    def run(self, limit: float) -> None:
        """Search until that many steps have been tried in all, or a bound is met, or the time is over."""
        while self.steps < limit and not (self.ended or self._is_good() or self.settings.expired):
            for direction in self.directions:
                if not (self.ended or self.settings.expired):
                    self._take_turn(direction)
            self.settings.report_progress("exact", self.steps, 0, self.value, self.bound)

    def _is_good(self) -> bool:
        return meets(self.bound, self.value, self.settings.gap)

    def _take_turn(self, direction: _Direction) -> None:
        """Search in one direction until it ends, finds a schedule, or has used its steps."""
        steps, end = direction.turn(self.most, self._slack())
        self.steps += steps
        if end < np.inf:
            self._keep(direction.found(), end)
        elif direction.level < 0:
            self.ended = True
            whole = np.floor(self.most / self.unit + SLACK[0]) + 1.0 if self.unit else 0.0
            self.bound = max(self.bound, min(max(whole * self.unit, self.most), self.value))

    def _keep(self, found: Found, end: float) -> None:
        """Keep a schedule if it is better with all transfers, and search for those that end sooner."""
        value = makespan(self.tasks, found.device, found.order)
        if value < self.value:
            self.best, self.best_value, self.value = found, value, value
        self.most = self._below(end if self.tasks.contention else min(end, value))

    def _below(self, value: float) -> float:
        """Return the largest makespan of interest if one is known."""
        sooner = value - self.unit if self.unit else value * (1 - ROUNDING)
        return min(sooner, value * (1 - self.settings.gap))

    def _slack(self) -> float:
        return SLACK[0] * self.unit if self.unit else SLACK[1] * self.most


class _Direction:
    """A search forwards or backwards in time."""

    def __init__(self, tasks: Tasks, reverse: bool, memory: int) -> None:
        self.reverse = reverse
        self.jobs: Jobs = jobs_of(tasks, reverse)
        self.path, self.store = new_path(self.jobs), new_store(self.jobs, memory)
        self.best = np.zeros((2, tasks.n), dtype=np.int64)  # devices and places in the order
        self.level = 0
        self.steps = int(np.clip(EFFORT.work // (1 + tasks.n**2 * len(tasks.limit)), 20, EFFORT.turn))

    def start(self, most: float, slack: float) -> None:
        """List the first steps, unless no schedule can end by `most`."""
        if can_end(self.jobs, self.path, 0, most, slack):
            list_steps(self.jobs, self.path, 0, most + slack)

    def turn(self, most: float, slack: float) -> tuple[int, float]:
        """Return how many steps were tried, and the end of the schedule that was found, or infinity."""
        state = self.jobs, self.path, self.store
        self.level, steps, end = search(*state, self.level, self.steps, most, slack, self.best)
        return steps, end

    def found(self) -> Found:
        """Return the schedule that was found last."""
        device, order = self.best.copy()
        return Found(device[::-1], len(order) - 1 - order[::-1]) if self.reverse else Found(device, order)


def _longest(tasks: Tasks) -> float:
    """Return a time by which the tasks end on any devices, one after another and with all transfers."""
    time = np.where(np.isfinite(tasks.time), tasks.time, 0.0).max(axis=0).sum()
    cost = tasks.cost[tasks.before_tensor]
    return float(time + cost.sum() * tasks.slope.max() + len(cost) * tasks.intercept.max())
