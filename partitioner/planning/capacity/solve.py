"""Plans for the most samples in flight, at the least time per sample or within a limit of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from partitioner.base.argument_types import is_one_of
from partitioner.base.clock import Clock
from partitioner.base.errors import (
    ContradictionError,
    Flaw,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    WorkloadError,
)
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.evaluation.capacity import check_cache
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import is_ordered
from partitioner.evaluation.solution import AnySolution, Solution
from partitioner.evaluation.terms import Terms
from partitioner.methods.method import Progress, Settings
from partitioner.methods.registry import choose
from partitioner.planning.alternatives import FEATURE
from partitioner.planning.capacity.search import CapacitySearch
from partitioner.planning.evaluate import evaluated
from partitioner.planning.objectives import Objective
from partitioner.planning.option import Requested
from partitioner.planning.option_effects import notes_on_options
from partitioner.planning.options import Options, read_options, split_for
from partitioner.planning.request import ANY_PLAN, plain
from partitioner.planning.run import find_plan
from partitioner.results.by_stage import stage_loads
from partitioner.results.plan import Plan
from partitioner.workload.cache import IN_TURN, holding, holding_in_turn
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from partitioner.workload.workload import Workload

LIMITS = ("max_time_per_sample", "max_slowdown")
TAKE_TURNS = (None, "inference")  # schedules under which a stage may have replicas


def solve_capacity(
    graph: Graph,
    devices: Devices,
    objective: Objective,
    *,
    method: str,
    split: str | None,
    backend: str,
    time_limit: float | None,
    gap: float,
    seed: int,
    workers: int | None,
    warm_start: AnySolution | None,
    on_progress: Callable[[Progress], None] | None,
    stop: StopEvent | None,
    **method_options: Any,
) -> Plan:
    """Find a plan for objective ``"capacity"`` of :func:`partitioner.solve`, which explains the arguments.

    Raises
    ------
    WorkloadError, OptionError, InfeasibleError, NoPlanFound
        As there; among others if no node has a cache, or a kind of device has no memory limit.
    """
    clock = Clock(math.inf if time_limit is None else time_limit)
    if is_one_of(method_options.get("schedule"), VIRTUAL):
        rule = f"must have one stage on each device for objective {objective.name!r}"
        raise OptionError(f"schedule = {method_options['schedule']!r}: {rule}")
    options = read_options(objective, time_limit, gap, seed, workers, method_options)
    workload = Workload(graph, devices)
    _check(objective, graph, devices, options)
    assert objective.base is not None
    split, features = split_for(objective.base, split, method), options.regime.features(devices)
    automatic = objective.automatic(split, features)
    info = choose(method, objective.known_as, split, backend, features, automatic)
    if FEATURE in info.features:
        rule = f"objective {objective.name!r} uses the nodes' own figures, none of their alternatives"
        raise OptionError(f"method = {method!r}: {rule}")
    requested = Requested(objective, split, info.name, devices)
    notes_on_options({**method_options, "warm_start": warm_start}, requested)  # refuses; notes come later
    interruption = Interruption(stop)
    settings = Settings(
        gap=gap, clock=clock, interruption=interruption, report=on_progress, started=clock.started
    )
    given = {name: value for name, value in method_options.items() if name not in LIMITS}
    given |= {"method": info.name, "split": split, "backend": backend, "seed": seed, "workers": workers}
    given |= {"stop": interruption, "warm_start": warm_start}
    judged = partial(_evaluated, objective, graph, devices, options)
    search = CapacitySearch(
        graph,
        devices,
        partial(_find, graph, devices, objective.base, settings, given),
        lambda plan: int(judged(plan).value),
        lambda: settings.expired,
    )
    with interruption:
        noted = _searched(search, settings, options)
    best, samples, most = search.best, search.samples, search.most
    assert best is not None
    evaluation = judged(best)
    if evaluation.violations or evaluation.value != samples:
        raise ContradictionError(
            f"the plan for {samples} samples: {[evaluation.value, *evaluation.violations]}"
        )
    proven = samples == most
    return replace(
        best,
        objective=objective.name,
        value=evaluation.value,
        bound=float(most),
        status="optimal" if proven else "feasible",
        stop_reason=_why_ended(settings, samples, most),
        runtime_seconds=time.perf_counter() - clock.started,
        devices=evaluation.loads,
        workload_sha256=workload.sha256,
        options={"method": method, "time_limit": time_limit, "gap": gap, **plain(method_options)},
        notes=(*map(_of_the_time, best.notes), *noted),
        statistics={"searches": search.steps, "time_bound": best.bound, **_longest(search)},
        by_stage=stage_loads(graph, best.placement, evaluation.loads, best.stages, best.replicas),
    )


def _of_the_time(note: str) -> str:
    """Return a note on a search for the least time as one that says of which bound it speaks."""
    return f"of the time per sample: {note}" if "lower bound" in note else note


def _check(objective: Objective, graph: Graph, devices: Devices, options: Options) -> None:
    """Refuse what the objective has no meaning for.

    Raises
    ------
    WorkloadError
        If no node has a cache, or a kind of device has no memory limit.
    OptionError
        If stages may have replicas under a schedule for training, or both limits of the time are given.
    """
    check_cache(graph)
    rule = f"must be given: objective {objective.name!r} counts the samples that fit it"
    flaws = [
        Flaw(f"device kind {kind.name}", "memory", "None", rule)
        for kind in devices.kinds
        if kind.count and kind.memory is None
    ]
    if flaws:
        raise WorkloadError(flaws)
    replicas, schedule = options.regime.replicas, options.regime.schedule
    if replicas > 1 and schedule not in TAKE_TURNS:
        words = f"must be 1 for objective {objective.name!r} under schedule {schedule!r}"
        rule = "the samples of stages with replicas are counted without a schedule and under 'inference' only"
        raise OptionError(f"replicas = {replicas}: {words}: {rule}")
    if all(options[name] is not None for name in LIMITS):
        raise OptionError(f"{' and '.join(LIMITS)} limit the same time: give one of them")


def _find(
    graph: Graph,
    devices: Devices,
    base: Objective,
    settings: Settings,
    given: dict[str, Any],
    samples: int,
    loose: bool,
) -> Plan:
    """Return the plan of least time per sample that holds a number of samples.

    Of a limited time a search takes at most half of what is left.
    """
    seconds = None if settings.deadline is None else max(1e-3, settings.clock.left / 2)
    report, phase = settings.report, f"{samples:,} samples in flight"
    tell = None if report is None else lambda told: report(replace(told, phase=f"{phase}, {told.phase}"))
    gap = ANY_PLAN if loose else settings.gap
    if samples and given.get("replicas", 1) > 1:
        held = holding_in_turn(graph, samples, scheduled=given.get("schedule") is not None)
        given = {**given, "schedule": IN_TURN, "microbatches": samples}
    else:
        held = holding(graph, samples)
    return find_plan(held, devices, base, time_limit=seconds, gap=gap, on_progress=tell, **given)


def _searched(search: CapacitySearch, settings: Settings, options: Options) -> tuple[str, ...]:
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


def _begin(search: CapacitySearch, options: Options) -> tuple[str, ...]:
    """Find a first plan and set the limit of the time per sample; return a note if it is not proven."""
    longest, slowdown = (options[name] for name in LIMITS)
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


def _evaluated(
    objective: Objective, graph: Graph, devices: Devices, options: Options, plan: Plan
) -> Evaluation:
    """Return the evaluation of a plan on the graph with its caches."""
    regime = options.regime
    order = plan.stages if is_ordered(plan.split) else None
    longest = options["max_time_per_sample"]
    terms = Terms(
        schedule=regime.schedule,
        microbatches=regime.microbatches,
        constraints=regime.constraints,
        split=plan.split,
        max_time_per_sample=longest,
    )
    solution = Solution(plan.placement, order=order or None, replicas=plan.replicas)
    return evaluated(objective, graph, devices, solution, terms)


def _longest(search: CapacitySearch) -> dict[str, float]:
    """Return the limit of the time per sample, if there is one above 0."""
    return {LIMITS[0]: search.limit} if 0 < search.limit < math.inf else {}


def _why_ended(settings: Settings, samples: int, most: int) -> str:
    """Return why the search ended."""
    if samples == most:
        return "optimal"
    return "gap" if most - samples <= settings.gap * most else settings.stop_reason
