"""Plans for a schedule and a number of microbatches: the best ones of the dynamic program, simulated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from partitioner.base.clock import METER, Clock
from partitioner.base.errors import ContradictionError, NoPlanFound, OptionError
from partitioner.base.interruption import CompilationStopped, Interruption, StopEvent
from partitioner.evaluation.solution import AnySolution
from partitioner.methods.method import Progress, Settings, meets
from partitioner.methods.registry import METHODS, choose
from partitioner.planning.alternatives import unused_alternatives
from partitioner.planning.objectives import THROUGHPUT, Objective
from partitioner.planning.option import Requested
from partitioner.planning.option_effects import notes_on_options
from partitioner.planning.options import read_options
from partitioner.planning.pipeline_makespan.candidates import TOLERANCE, Ranking
from partitioner.planning.pipeline_makespan.virtual_stages import VirtualRanking
from partitioner.planning.request import Request, plain
from partitioner.planning.run_method import notes_on_kernels
from partitioner.problem.layers import whole_layers
from partitioner.results.by_stage import stage_loads
from partitioner.results.plan import Plan
from partitioner.schedule import simulate
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload


def solve_makespan(
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
    """Find a plan for objective ``"makespan"`` of :func:`partitioner.solve`, which explains the arguments.

    Raises
    ------
    WorkloadError, OptionError, InfeasibleError, NoPlanFound
        As there; among others if schedule or microbatches are missing.
    """
    clock = Clock(math.inf if time_limit is None else time_limit)
    options = read_options(objective, time_limit, gap, seed, workers, method_options)
    regime = options.regime
    for name in objective.needs:
        if getattr(regime, name) is None:
            raise OptionError(f"objective {objective.name!r} needs {name}")
    if method in METHODS and METHODS[method].places_operators:
        raise OptionError(f"method {method} runs one step operator by operator: schedule means nothing to it")
    split, features = split or objective.splits[0], regime.features(devices)
    info = choose(method, objective.name, split, backend, features, objective.method)
    requested = Requested(objective, split, info.name, devices)
    noted = notes_on_options({**method_options, "warm_start": warm_start}, requested)
    layer, notes = whole_layers(graph) if options.by_layer else (None, ())
    interruption = Interruption(stop)
    settings = Settings(
        gap=gap, clock=clock, interruption=interruption, report=on_progress, started=clock.started
    )
    search = VirtualRanking if regime.has_virtual_stages else Ranking
    ranking = search(graph, devices, options, settings)
    noted += () if ranking.chooses else unused_alternatives(graph, info)
    workload = Workload(graph, devices)
    request = Request(workload, THROUGHPUT, split, METHODS[THROUGHPUT.extended_method], options, layer)
    request.check_memory()
    shared = {"gap": gap, "seed": seed, "workers": workers, "on_progress": on_progress, "stop": interruption}
    with interruption, METER.watched(settings.on_compile):
        noted += _start(ranking, warm_start)
        bound = _search(ranking, request, {**method_options, **shared})
    best = ranking.best
    if best is None:
        raise _no_plan(settings)
    timeline = simulate(graph, devices, best.solution, regime.schedule, regime.microbatches)
    if timeline.makespan != best.makespan:
        raise ContradictionError(
            f"simulated twice, the makespan is {best.makespan!r} and {timeline.makespan!r}"
        )
    if bound > best.makespan * (1 + TOLERANCE):
        raise ContradictionError(f"the bound {bound!r} exceeds the simulated makespan {best.makespan!r}")
    proven = meets(bound, best.makespan)
    return Plan(
        objective=objective.name,
        split=split,
        value=best.makespan,
        bound=best.makespan if proven else min(bound, best.makespan),
        status="optimal" if proven else "feasible",
        stop_reason=_why_ended(settings, bound, ranking),
        method=info.name,
        backend=info.backends[0],
        runtime_seconds=time.perf_counter() - clock.started,
        devices=best.evaluation.loads,
        stages=best.order,
        placement=best.placement,
        workload_sha256=workload.sha256,
        seed=seed,
        options={"method": method, "time_limit": time_limit, "gap": gap, **plain(method_options)},
        notes=(*notes, *noted, *best.evaluation.notes, *notes_on_kernels(clock)),
        statistics=ranking.statistics,
        replicas=best.replicas,
        hardware=devices,
        by_stage=stage_loads(
            graph,
            best.placement,
            best.evaluation.loads,
            best.order,
            best.replicas,
            dict(zip(timeline.devices, timeline.bubble.tolist(), strict=True)),
            best.stage_of,
            best.alternatives,
        ),
        alternatives=dict(best.alternatives),
        stage_of=best.stage_of,
        time_unit=graph.extras.time_unit,
    )


def _why_ended(settings: Settings, bound: float, ranking: Ranking) -> str:
    """Return why the search ended; the time did it, too, where it ended the search for a candidate."""
    assert ranking.best is not None
    why = settings.ended(bound, ranking.best.makespan)
    return "time_limit" if why == "heuristic" and ranking.cut_short else why


def _start(ranking: Ranking, warm_start: AnySolution | None) -> tuple[str, ...]:
    """Simulate a warm start; return a note if it cannot be used."""
    if warm_start is None:
        return ()
    with suppress(CompilationStopped):
        ranking.start_from(warm_start)
    return () if ranking.best else ("the warm start is not used: it breaks a rule, or it is no chain",)


def _search(ranking: Ranking, request: Request, given: dict[str, Any]) -> float:
    """Simulate a first plan, the candidates, and neighbours of the best one; return the lower bound."""
    bound = 0.0
    with suppress(CompilationStopped):
        if isinstance(ranking, VirtualRanking):
            return ranking.search(request, given)
        problem = request.problem()
        if ranking.settings.deadline is not None or ranking.settings.expired:
            bound = ranking.first(request, problem)
        if not ranking.expired:
            bound = max(bound, ranking.candidates(given))
            bound = max(bound, ranking.fill_and_drain(request))
            ranking.batches(given, bound)
            ranking.refine(problem)
    return bound


def _no_plan(settings: Settings) -> BaseException:
    """Return the error to raise if no pipeline was found."""
    if settings.interruption.by_keyboard:
        return KeyboardInterrupt()
    why = f" ({settings.stop_reason})" if settings.expired else ": no candidate obeys the rules"
    return NoPlanFound(f"no plan found{why}")
