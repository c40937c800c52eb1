"""The search for the most samples in flight, between a number that a plan holds and one that none holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from partitioner.base.errors import ContradictionError, InfeasibleError, NoPlanFound, WorkloadError
from partitioner.evaluation.capacity import ROUNDING
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph


class Find(Protocol):
    """A search for the plan of least time per sample that holds a number of samples."""

    def __call__(self, samples: int, loose: bool) -> Plan:
        """Return a plan; with `loose` any plan is as good as the best one."""
        ...


class CapacitySearch:
    """The search on a workload: f(n) is the least time per sample of a plan that holds n samples.

    As f never falls when n grows, the numbers with f(n) <= limit are 0, 1, ..., up to the capacity.

    Parameters
    ----------
    graph, devices
        The workload; every device has a memory limit, and some node has a cache.
    find
        Computes f(n) and a plan that has it.
    capacity_of
        The evaluator: how many samples a plan holds.
    expired
        Whether the search should end.

    Attributes
    ----------
    best, samples
        The best plan, and how many samples it holds; None and -1 if there is none yet.
    most
        The upper bound: no plan within the limit holds more samples.
    limit
        The largest time per sample of a plan.
    """

    def __init__(
        self,
        graph: Graph,
        devices: Devices,
        find: Find,
        capacity_of: Callable[[Plan], int],
        expired: Callable[[], bool],
    ) -> None:
        self.find, self.capacity_of, self.expired = find, capacity_of, expired
        self.best: Plan | None = None
        self.samples, self.steps, self.limit = -1, 0, math.inf
        self.most = most_by_total(graph, devices)

    def ask(self, samples: int, loose: bool = False) -> Plan:
        """Search for a plan that holds a number of samples, and return it; keep it if it is within the limit.

        Raises
        ------
        InfeasibleError, WorkloadError
            If no plan holds them.
        ContradictionError
            If that is claimed although one is known.
        NoPlanFound
            If none was found.
        """
        self.steps += 1
        try:
            plan = self.find(samples, loose)
        except InfeasibleError as error:
            if samples <= self.samples:
                words = f"a plan holds {self.samples} samples, and it is claimed that none holds {samples}"
                raise ContradictionError(words) from error
            raise
        if plan.value <= self.limit * ROUNDING:
            self._keep(plan)
        elif plan.bound_on_any_devices > self.limit * ROUNDING:
            self.most = min(self.most, samples - 1)
        return plan

    def halve(self, gap: float) -> None:
        """Halve the range of numbers in question until it is empty or within the gap.

        Numbers that a search without an answer was for are left out, so that `most` may stay above `samples`.
        """
        top = self.most
        while self.samples < top and self.most - self.samples > gap * self.most and not self.expired():
            samples, known = (self.samples + top + 1) // 2, (self.samples, self.most)
            try:
                self.ask(samples, loose=math.isinf(self.limit))
            except (InfeasibleError, WorkloadError):  # the workload without samples is sound
                self.most = min(self.most, samples - 1)
            except NoPlanFound:
                pass
            undecided = known == (self.samples, self.most)
            top = samples - 1 if undecided else min(top, self.most)

    def _keep(self, plan: Plan) -> None:
        """Keep a plan that holds more samples than the best one, or as many in less time or more proven."""
        samples, best = self.capacity_of(plan), self.best
        ranked = samples, -plan.value, plan.bound
        if best is None or ranked > (self.samples, -best.value, best.bound):
            self.best, self.samples = plan, samples


def most_by_total(graph: Graph, devices: Devices) -> int:
    """Return how many samples fit if all memory were one, and there were nothing but cache.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, cache=[2.0, 1.0])
    >>> most_by_total(graph, Devices.accelerated(2, memory=5.0))
    3
    """
    return int(sum(_limits(devices)) / float(graph.cache.sum()))


def _limits(devices: Devices) -> Sequence[float]:
    return [kind.count * kind.memory_limit for kind in devices.kinds if kind.count]
