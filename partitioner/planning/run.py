"""The way from a graph and devices to a plan."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.evaluation.solution import AnySolution
from partitioner.methods.expand import expand, expand_subgraphs
from partitioner.methods.method import Progress, Settings
from partitioner.methods.registry import choose
from partitioner.planning.alternatives import can_choose, unused_alternatives
from partitioner.planning.first_plan import evaluation_of, find_first_plan
from partitioner.planning.objectives import Objective
from partitioner.planning.option import Requested
from partitioner.planning.option_effects import has_effect, notes_on_options
from partitioner.planning.options import check_transfer_factors, cores_for, read_options, split_for
from partitioner.planning.request import Request, plain
from partitioner.planning.run_method import notes_on_kernels, run_method
from partitioner.planning.unused_devices import notes_on_unused
from partitioner.planning.verify import confirm, no_plan
from partitioner.planning.warm_start import start_from, unused_start
from partitioner.problem.layers import whole_layers
from partitioner.results.by_stage import stage_loads
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload

LEAST_COMPILING = 5.0  # seconds after which a run with a shorter limit compiles only what a plan needs


def find_plan(
    graph: Graph,
    devices: Devices,
    objective: Objective,
    *,
    method: str = "auto",
    split: str | None = None,
    backend: str = "auto",
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    warm_start: AnySolution | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
    fallback: bool = True,
    **method_options: Any,
) -> Plan:
    """Check, contract, solve, expand, evaluate: :func:`partitioner.solve` for all that a method knows.

    Parameters, errors and result are as there; with `fallback` False there is no plan but the method's.
    """
    clock = Clock(math.inf if time_limit is None else time_limit)
    workload = Workload(graph, devices)
    split = split_for(objective, split, method)
    options = read_options(objective, time_limit, gap, seed, workers, method_options)
    check_transfer_factors(objective, devices)
    features = options.regime.features(devices)
    automatic = objective.automatic(split, features, can_choose(graph, devices))
    info = choose(method, objective.name, split, backend, features, automatic)
    requested = Requested(objective, split, info.name, devices)
    noted = notes_on_options({**method_options, "warm_start": warm_start}, requested)
    noted += unused_alternatives(graph, info)
    cores, capped = cores_for(workers)
    layer, notes = whole_layers(graph) if options.by_layer else (None, ())
    request = Request(workload, objective, split, info, options, layer)
    request.check_memory()
    problem = request.problem()
    incumbent, subgraph = start_from(problem, graph, devices, warm_start, options.regime)
    if has_effect("warm_start", warm_start, requested):
        noted += unused_start(devices, split, warm_start, incumbent)
    first = partial(find_first_plan, request, problem, incumbent, subgraph)
    settings = Settings(
        **options.fields_of(Settings) | {"workers": cores},
        clock=replace(clock, compiling=max(clock.limit, LEAST_COMPILING)),
        incumbent=incumbent,
        incumbent_subgraph=subgraph,
        backend=backend,
        interruption=Interruption(stop),
        report=on_progress,
        started=clock.started,
        placing=options.placing,
    )
    outcome, known = run_method(info, problem, settings, cache(first) if fallback else lambda: None)
    placement = expand(graph, devices, outcome)
    if placement is None:
        by_keyboard = settings.interruption.by_keyboard
        raise no_plan(
            request.fitted, devices, outcome, request.conflicting_constraints(settings), by_keyboard
        )
    subgraphs = expand_subgraphs(graph, outcome)
    evaluation = evaluation_of(request, placement, subgraphs, known)
    confirm(evaluation, outcome, devices)
    proven = outcome.stop_reason == "optimal"
    unused = notes_on_unused(request, evaluation, outcome, settings)
    stages = placement.order if problem.ordered else evaluation.shape.order
    return Plan(
        objective=objective.name,
        split=split,
        value=evaluation.value,
        bound=evaluation.value if proven else min(outcome.bound, evaluation.value),
        status="optimal" if proven else "feasible",
        stop_reason=outcome.stop_reason,
        method=info.name,
        backend=outcome.backend or info.backends[0],
        runtime_seconds=time.perf_counter() - clock.started,
        devices=evaluation.loads,
        stages=stages,
        placement=placement.device,
        workload_sha256=workload.sha256,
        seed=seed,
        options={"method": method, "time_limit": time_limit, "gap": gap, **plain(method_options)},
        notes=(*notes, *noted, *capped, *outcome.notes, *unused, *evaluation.notes, *notes_on_kernels(clock)),
        statistics={name: x for name, x in outcome.statistics.items() if math.isfinite(x)},
        native_status=outcome.native_status,
        subgraphs=subgraphs,
        schedule=evaluation.schedule,
        replicas=placement.replicas,
        alternatives=placement.alternatives,
        execution_order=placement.sequence,
        hardware=devices,
        by_stage=stage_loads(
            graph,
            placement.device,
            evaluation.loads,
            stages,
            placement.replicas,
            stage_of=placement.stage_of,
            alternatives=placement.alternatives,
        ),
        stage_of=placement.stage_of,
        time_unit=graph.extras.time_unit,
    )
