"""The way from a graph and devices to a plan."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from partitioner.clock import METER, Clock
from partitioner.confirm import confirm, no_plan
from partitioner.devices import Devices
from partitioner.first_plan import FirstPlan, find_first_plan, given_up
from partitioner.graph import Graph
from partitioner.interrupt import CompilationStopped, Interruption, StopEvent
from partitioner.methods.expand import expand, expand_subgraphs
from partitioner.methods.info import MethodInfo
from partitioner.methods.method import COMPILING, Outcome, Progress, Settings
from partitioner.methods.registry import choose
from partitioner.options import check_fares, read_options, split_for
from partitioner.plan import Plan
from partitioner.preprocess.layers import whole_layers
from partitioner.preprocess.problem import Problem
from partitioner.request import Request, plain
from partitioner.warm_start import start_from
from partitioner.workload import Workload


def find_plan(
    graph: Graph,
    devices: Devices,
    objective: str,
    *,
    method: str = "auto",
    split: str | None = None,
    backend: str = "auto",
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    warm_start: Plan | Mapping[Any, str] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
    **method_options: Any,
) -> Plan:
    """Check, contract, solve, expand, evaluate: :func:`partitioner.solve` for all that a method knows.

    Parameters, errors and result are as there.
    """
    clock = Clock(math.inf if time_limit is None else time_limit)
    workload = Workload(graph, devices)
    split = split_for(objective, split, method)
    options = read_options(objective, time_limit, gap, seed, workers, method_options)
    check_fares(objective, devices)
    info = choose(method, objective, split, backend, options.regime.features(devices))
    layer, notes = whole_layers(graph) if options.by_layer else (None, ())
    request = Request(workload, objective, split, info, options, layer)
    problem = request.problem()
    incumbent, subgraph = start_from(problem, graph, devices, warm_start, options.regime)
    first = find_first_plan(request, problem, incumbent, subgraph)
    settings = Settings(
        gap=gap,
        clock=clock,
        seed=seed,
        memory_budget=options.memory_budget,
        step_limit=options.step_limit,
        orders=options.orders,
        incumbent=incumbent,
        incumbent_subgraph=subgraph,
        backend=backend,
        workers=workers or os.cpu_count() or 1,
        interruption=Interruption(stop),
        report=None if on_progress is None else BestSoFar(on_progress),
        started=clock.started,
        placing=options.placing,
    )
    outcome = _found(info, problem, settings, first)
    placement = expand(graph, devices, outcome)
    if placement is None:
        by_keyboard = settings.interruption.by_keyboard
        raise no_plan(request.fitted(), devices, outcome, request.relief(settings), by_keyboard)
    subgraphs = expand_subgraphs(graph, outcome)
    evaluation = request.evaluated(placement, subgraphs)
    confirm(evaluation, outcome, devices)
    proven = outcome.stop_reason == "optimal"
    return Plan(
        objective=objective,
        split=split,
        value=evaluation.value,
        bound=evaluation.value if proven else min(outcome.bound, evaluation.value),
        status="optimal" if proven else "feasible",
        stop_reason=outcome.stop_reason,
        method=info.name,
        backend=outcome.backend or info.backends[0],
        runtime_seconds=time.perf_counter() - clock.started,
        devices=evaluation.loads,
        stages=placement.order if split == "chain" else evaluation.shape.order,
        placement=placement.device,
        workload_sha256=workload.sha256,
        seed=seed,
        options={"method": method, "time_limit": time_limit, "gap": gap, **plain(method_options)},
        notes=(*notes, *outcome.notes, *notes_on_kernels(clock)),
        statistics={name: x for name, x in outcome.statistics.items() if math.isfinite(x)},
        native_status=outcome.native_status,
        subgraphs=subgraphs,
        schedule=evaluation.schedule,
        replicas=placement.replicas,
        execution_order=placement.sequence,
    )


class BestSoFar:
    """Passes progress on with the smallest value told so far, whoever found it."""

    def __init__(self, listener: Callable[[Progress], None]) -> None:
        self.listener, self.value, self.bound = listener, math.inf, 0.0

    def __call__(self, progress: Progress) -> None:
        """Pass it on; of what compiles nothing new is known."""
        self.value = min(self.value, progress.value)
        self.bound = self.bound if progress.phase == COMPILING else progress.bound
        self.listener(replace(progress, value=self.value, bound=self.bound))


def _found(info: MethodInfo, problem: Problem, settings: Settings, first: FirstPlan | None) -> Outcome:
    """What the method finds, or the first plan where the method was ended before it found a better one."""
    with settings.interruption, METER.watched(settings.on_compile):
        if first is not None:
            settings.tell("first plan", 0, 0, first.outcome.value, 0.0)
        outcome = _run(info, problem, settings, first is not None)
    ended = outcome.stop_reason in ("time_limit", "interrupted")
    if first is None or not ended or outcome.infeasible or outcome.value <= first.outcome.value:
        return outcome
    return first.in_place_of(outcome)


def _run(info: MethodInfo, problem: Problem, settings: Settings, dispensable: bool) -> Outcome:
    """Run the method; one that is dispensable is not even loaded once the run should end."""
    try:
        method = None if dispensable and settings.expired else info.load()
        if method is None or (dispensable and settings.expired):
            return given_up(problem, settings)
        return method(problem, settings)
    except CompilationStopped:
        return given_up(problem, settings)


def notes_on_kernels(clock: Clock) -> tuple[str, ...]:
    """How long kernels were compiled during a run, and where they are kept if that is an unusual place."""
    compiled = sys.modules.get("partitioner.compiled")  # loaded only with a method that has kernels
    where = "" if compiled is None else compiled.cache_note()
    if not clock.compiled:
        return (where,) if where else ()
    spent = f"compiled kernels for {clock.compiled:.1f} s"
    spent += "" if clock.deadline is None else ", which the time limit does not count"
    return (f"{spent}; {where or 'they are kept for later runs on this machine'}",)
