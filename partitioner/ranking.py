"""Plans for a schedule and a number of microbatches: the best ones of the dynamic program, simulated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from partitioner.candidates import TOLERANCE, Ranking
from partitioner.devices import Devices
from partitioner.errors import ContradictionError, NoPlanFound, OptionError
from partitioner.graph import Graph
from partitioner.methods.method import Progress, meets
from partitioner.methods.registry import METHODS, choose
from partitioner.options import read_options
from partitioner.plan import Plan
from partitioner.preprocess.layers import whole_layers
from partitioner.request import Request, plain
from partitioner.workload import Workload

MAKESPAN, PIPED = "makespan", "simulated"


def solve_makespan(
    graph: Graph,
    devices: Devices,
    objective: str = MAKESPAN,
    *,
    method: str,
    split: str | None,
    backend: str,
    time_limit: float | None,
    gap: float,
    seed: int,
    workers: int | None,
    warm_start: Plan | Mapping[Any, str] | None,
    on_progress: Callable[[Progress], None] | None,
    **method_options: Any,
) -> Plan:
    """Objective ``"makespan"`` of :func:`partitioner.solve`, which says what the arguments mean.

    Raises
    ------
    WorkloadError, OptionError, InfeasibleError, NoPlanFound
        As there; among others if schedule or microbatches are missing.
    """
    started = time.perf_counter()
    options = read_options(objective, time_limit, gap, seed, workers, method_options)
    regime = options.regime
    for name, value in (("schedule", regime.schedule), ("microbatches", regime.microbatches)):
        if value is None:
            raise OptionError(f"objective {objective!r} needs {name}")
    if method in METHODS and METHODS[method].places_operators:
        raise OptionError(f"method {method} runs one step operator by operator: schedule means nothing to it")
    info = choose(
        PIPED if method == "auto" else method, objective, split or "chain", backend, regime.features(devices)
    )
    layer, notes = whole_layers(graph) if options.by_layer else (None, ())
    ranking = Ranking(graph, devices, options, None if time_limit is None else started + time_limit)
    if warm_start is not None:
        ranking.start_from(warm_start)
    shared = {"gap": gap, "seed": seed, "workers": workers, "on_progress": on_progress}
    bound = ranking.candidates({**method_options, **shared})
    workload = Workload(graph, devices)
    ranking.refine(Request(workload, "throughput", "chain", METHODS["pipeline"], options, layer).problem())
    best = ranking.best
    if best is None:
        raise NoPlanFound("no plan found: no candidate obeys the rules")
    if bound > best.makespan * (1 + TOLERANCE):
        raise ContradictionError(f"the bound {bound!r} exceeds the simulated makespan {best.makespan!r}")
    proven = meets(bound, best.makespan)
    stop = "gap" if meets(bound, best.makespan, gap) else "time_limit" if ranking.expired else "heuristic"
    return Plan(
        objective=objective,
        split="chain",
        value=best.makespan,
        bound=best.makespan if proven else min(bound, best.makespan),
        status="optimal" if proven else "feasible",
        stop_reason="optimal" if proven else stop,
        method=info.name,
        backend=info.backends[0],
        runtime_seconds=time.perf_counter() - started,
        devices=best.evaluation.loads,
        stages=best.order,
        placement=best.placement,
        workload_sha256=workload.sha256,
        seed=seed,
        options={"method": method, "time_limit": time_limit, "gap": gap, **plain(method_options)},
        notes=notes,
        statistics=ranking.statistics,
        replicas=best.replicas,
        hardware=devices,
    )
