"""Plans for the most samples in flight, at the least time per sample or within a limit of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from partitioner.base.errors import (
    ContradictionError,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    WorkloadError,
)
from partitioner.evaluation.capacity import ROUNDING
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import is_ordered
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.methods.halving import Halving
from partitioner.methods.method import Settings
from partitioner.planning.alternatives import FEATURE
from partitioner.planning.evaluate import evaluated
from partitioner.planning.objectives import TIME_LIMITS
from partitioner.planning.options import request_of
from partitioner.planning.plan_of import Proof, plan_of
from partitioner.planning.request import ANY_PLAN, Request
from partitioner.results.plan import Plan
from partitioner.workload.cache import IN_TURN, holding, holding_in_turn
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload


def find_capacity(request: Request) -> Plan:
    """Return the plan of a request for objective ``"capacity"`` of :func:`partitioner.solve`.

    Raises
    ------
    OptionError, InfeasibleError, NoPlanFound, ContradictionError
        As there; among others if the method chooses among alternatives of nodes.
    """
    objective, settings = request.objective, request.settings
    if FEATURE in request.info.features:
        rule = f"objective {objective.name!r} uses the nodes' own figures, none of their alternatives"
        raise OptionError(f"method = {request.options['method']!r}: {rule}")
    judged = partial(_evaluated, request)
    search = CapacitySearch(
        request.graph,
        request.devices,
        partial(_find, request, settings),
        lambda plan: int(judged(plan).value),
        lambda: settings.expired,
    )
    with settings.interruption:
        noted = _searched(search, settings, request.options)
    best, samples, most = search.best, search.samples, search.most
    assert best is not None
    evaluation = judged(best)
    if evaluation.violations or evaluation.value != samples:
        raise ContradictionError(
            f"the plan for {samples} samples: {[evaluation.value, *evaluation.violations]}"
        )
    proof = Proof(
        float(most),
        _why_ended(settings, samples, most),
        best.backend,
        (*map(_of_the_time, best.notes), *noted),
        {"searches": search.steps, "time_bound": best.bound, **_longest(search)},
        best.native_status,
    )
    solution = Solution(best.placement, best.replicas, best.stages)
    return plan_of(request, solution, replace(evaluation, schedule=best.schedule), proof)


def _of_the_time(note: str) -> str:
    """Return a note on a search for the least time as one that says of which bound it speaks."""
    return f"of the time per sample: {note}" if "lower bound" in note else note


def _find(request: Request, settings: Settings, samples: int, loose: bool) -> Plan:
    """Return the plan of least time per sample that holds a number of samples.

    Of a limited time a search takes at most half of what is left.
    """
    base, regime, report = request.objective.base, request.regime, request.report
    assert base is not None
    given = {name: value for name, value in request.step.items() if name not in TIME_LIMITS}
    given |= {name: request.options[name] for name in ("backend", "warm_start")}
    given |= {"method": request.info.name, "split": request.split}
    given["time_limit"] = None if settings.deadline is None else max(1e-3, settings.clock.left / 2)
    given["gap"] = ANY_PLAN if loose else settings.gap
    phase = f"{samples:,} samples in flight"
    given["on_progress"] = report and (lambda told: report(replace(told, phase=f"{phase}, {told.phase}")))
    if samples and regime.replicas > 1:
        held = holding_in_turn(request.graph, samples, scheduled=regime.schedule is not None)
        given |= {"schedule": IN_TURN, "microbatches": samples}
    else:
        held = holding(request.graph, samples)
    return base.answer(request_of(Workload(held, request.devices), base, **given))


def _searched(search: CapacitySearch, settings: Settings, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Run the search; return notes on its limits.

    Raises
    ------
    InfeasibleError, NoPlanFound
        If there is no plan.
    """
    try:
        notes = _begin(search, options)
    except NoPlanFound:
        if settings.interruption.by_keyboard:
            raise KeyboardInterrupt from None
        raise
    search.halve(settings.gap)
    if math.isinf(search.limit) and not settings.expired:
        try:
            search.ask(search.samples)
        except NoPlanFound:
            notes += ("the time per sample is that of any plan with this capacity",)
    return notes


def _begin(search: CapacitySearch, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Find a first plan and set the limit of the time per sample; return a note if it is not proven."""
    longest, slowdown = (options[name] for name in TIME_LIMITS)
    if slowdown is None:
        search.limit = math.inf if longest is None else longest
        first = search.ask(0, loose=longest is None)
        if search.best is None:
            least = f"the least time per sample is {'at least ' if first.bound < first.value else ''}"
            words = f"max_time_per_sample = {longest:g}: {least}{first.bound:.6g}"
            raise InfeasibleError(words) if search.most < 0 else NoPlanFound(words)
        return ()
    try:
        first = search.ask(min(1, search.most))
    except (InfeasibleError, WorkloadError):
        search.most = 0
        first = search.ask(0)
    search.limit = slowdown * first.value
    if first.status == "optimal":
        return ()
    return (f"max_slowdown = {slowdown:g} refers to {first.value:.6g}, which is not proven to be the least",)


def _evaluated(request: Request, plan: Plan) -> Evaluation:
    """Return the evaluation of a plan on the graph with its caches."""
    regime = request.regime
    order = plan.stages if is_ordered(plan.split) else None
    terms = Terms(
        schedule=regime.schedule,
        microbatches=regime.microbatches,
        constraints=regime.constraints,
        split=plan.split,
        max_time_per_sample=request.options["max_time_per_sample"],
    )
    solution = Solution(plan.placement, order=order or None, replicas=plan.replicas)
    return evaluated(request.objective, request.graph, request.devices, solution, terms)


def _longest(search: CapacitySearch) -> dict[str, float]:
    """Return the limit of the time per sample, if there is one above 0."""
    return {TIME_LIMITS[0]: search.limit} if 0 < search.limit < math.inf else {}


def _why_ended(settings: Settings, samples: int, most: int) -> str:
    """Return why the search ended."""
    if samples == most:
        return "optimal"
    return "gap" if most - samples <= settings.gap * most else settings.stop_reason


# The search for the most samples in flight, between a number that a plan holds and one that none holds.


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

        As fewer samples are easier, it is the range of their negatives. Numbers that a search without an
        answer was for are left out, so that `most` may stay above `samples`.
        """
        numbers = Halving(-(self.most + 1), -self.samples)
        for number in numbers.whole_numbers(lambda: self.expired() or self._is_near(gap)):
            known = self.samples, self.most
            self._settle(-number)
            numbers.high, numbers.bound = -self.samples, -(self.most + 1)
            if known == (self.samples, self.most):
                numbers.settle(number, suffices=False, refuted=False)

    def _is_near(self, gap: float) -> bool:
        return self.most - self.samples <= gap * self.most

    def _settle(self, samples: int) -> None:
        """Find out whether a plan holds a number of samples, as far as a search can."""
        try:
            self.ask(samples, loose=math.isinf(self.limit))
        except (InfeasibleError, WorkloadError):  # the workload without samples is sound
            self.most = min(self.most, samples - 1)
        except NoPlanFound:
            pass

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
