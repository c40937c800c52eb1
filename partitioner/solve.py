"""The way from a graph and devices to a plan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import networkx as nx

from partitioner.confirm import confirm, no_plan
from partitioner.constraints import Constraints
from partitioner.demands import demands_of
from partitioner.devices import Devices
from partitioner.evaluate import evaluate
from partitioner.formats.networkx_graph import from_networkx
from partitioner.graph import Graph
from partitioner.interrupt import Interruption
from partitioner.methods.expand import expand, expand_subgraphs
from partitioner.methods.explain import relieving
from partitioner.methods.method import Progress, Settings
from partitioner.methods.registry import MethodInfo, choose
from partitioner.options import Options, check_fares, read_options, split_for
from partitioner.plan import Plan
from partitioner.preprocess.contract import Goal, contract
from partitioner.preprocess.fit import companions, fit
from partitioner.preprocess.layers import whole_layers
from partitioner.preprocess.pipeline import Extension
from partitioner.preprocess.problem import Ints, Problem
from partitioner.regime import Regime
from partitioner.warm_start import start_from
from partitioner.workload import Workload

ANY_PLAN = 0.999  # a gap that any plan closes


def solve(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    objective: str = "throughput",
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
    **method_options: Any,
) -> Plan:
    """Split a graph over devices as well as possible, with a proof of how good the split is.

    Parameters
    ----------
    graph
        The profiled graph; a networkx graph has the attributes that
        :func:`partitioner.from_networkx` reads.
    devices
        The hardware.
    objective
        ``"throughput"``: the largest load of a device (paper, Section 5); ``"gpipe"``: the largest
        forward load plus the largest backward load (Section 5.3); ``"latency"``: the time of a single
        sample, with subgraphs that run without interruption (Section 4, Appendix A); ``"batch"``: the
        time of `microbatches` samples that fill and drain a pipeline.
    method
        A name that ``partitioner methods`` lists; ``"auto"`` takes the strongest that applies.
    split
        ``"chain"``: a pipeline of stages; ``"convex"``: the forward part of every device is contiguous
        (Definition 3.1); ``"free"``: anything. By default chains; for latency every subgraph is convex.
    backend
        The solver to use, for methods that can choose; ``"auto"`` takes the best ones present.
    time_limit
        Seconds after which the best plan found so far is returned.
    gap
        Stop once the plan is proven within this fraction of the optimum.
    seed
        Seed of everything random; the same seed gives the same plan.
    workers
        How many cores may be used, by default all; the dynamic programs use one.
    warm_start
        A plan or placement to start from; it is used if it is feasible and of the shape asked for.
    on_progress
        Called with a :class:`partitioner.Progress` from time to time.
    **method_options
        ``granularity``: ``"operator"`` or ``"layer"`` (keep the nodes of a layer together);
        ``memory_budget``: bytes for the exact search (4 GiB); ``step_limit``: its steps (two billion,
        some minutes); ``orders``: how many linear orders to try (12); ``contiguous_cpus``: must a convex
        split be contiguous on devices that pay no transfers too (True)? ``contiguous_backward``: must
        its backward part be contiguous too (False)? ``subgraphs_per_accelerator``: how many subgraphs of
        each pass an accelerator may hold, for latency (1). For chains: ``replicas``: how many devices may
        share a stage (1); ``schedule``: ``"inference"``, ``"gpipe"``, ``"1f1b"`` or ``"1f1b_async"``, which
        says how many samples a stage holds (None: memory does not depend on it); ``microbatches``: samples
        in a batch (None). ``constraints``: what else to keep to, :class:`partitioner.Constraints`.

    Returns
    -------
    Plan
        Its value is computed by :func:`partitioner.evaluate`, never by the method.

    Raises
    ------
    WorkloadError
        If the graph and the devices do not fit together.
    OptionError
        If an option has a value it may not have.
    InfeasibleError
        If it is proven that no split obeys the limits.
    NoPlanFound
        If the method ended without a plan and without such a proof.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> plan = solve(graph, Devices.accelerated(2))
    >>> plan.value, plan.status, plan.stages
    (3.5, 'optimal', ('accelerator0', 'accelerator1'))
    """
    started = time.perf_counter()
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    workload = Workload(graph, devices)
    split = split_for(objective, split)
    options = read_options(objective, time_limit, gap, seed, workers, method_options)
    check_fares(objective, devices)
    regime = options.regime
    info = choose(method, objective, split, backend, regime.features(devices))
    layer, notes = whole_layers(graph) if options.by_layer else (None, ())
    problem = _contracted(workload, objective, split, options, layer, info)
    incumbent, subgraph = start_from(problem, graph, devices, warm_start, regime)
    interruption = Interruption()
    settings = Settings(
        gap=gap,
        deadline=None if time_limit is None else started + time_limit,
        seed=seed,
        memory_budget=options.memory_budget,
        step_limit=options.step_limit,
        orders=options.orders,
        incumbent=incumbent,
        incumbent_subgraph=subgraph,
        backend=backend,
        workers=workers or os.cpu_count() or 1,
        interruption=interruption,
        report=on_progress,
        started=started,
    )

    def has_plan(fewer: Regime, seconds: float) -> bool:
        easier = _contracted(workload, objective, split, replace(options, regime=fewer), layer, info)
        end = time.perf_counter() + seconds
        easy = replace(settings, gap=ANY_PLAN, deadline=end, incumbent=None, report=None)
        return info.load()(easier, easy).parts is not None

    with interruption:
        outcome = info.load()(problem, settings)
    placement = expand(graph, devices, outcome)
    if placement is None:
        fitted = fit(graph, devices, demands_of(graph, devices, regime.constraints))
        raise no_plan(fitted, devices, outcome, lambda: relieving(regime, has_plan))
    subgraphs = expand_subgraphs(graph, outcome)
    evaluation = evaluate(
        graph,
        devices,
        placement.device,
        objective,
        subgraphs_per_accelerator=options.subgraphs_per_accelerator,
        subgraphs=subgraphs,
        replicas=placement.replicas or None,
        order=placement.order if split == "chain" else None,
        schedule=regime.schedule,
        microbatches=regime.microbatches,
        constraints=regime.constraints,
        split=split,
    )
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
        runtime_seconds=time.perf_counter() - started,
        devices=evaluation.loads,
        stages=placement.order if split == "chain" else evaluation.shape.order,
        placement=placement.device,
        workload_sha256=workload.sha256,
        seed=seed,
        options={"method": method, "time_limit": time_limit, "gap": gap, **_plain(method_options)},
        notes=(*notes, *outcome.notes),
        statistics=dict(outcome.statistics),
        native_status=outcome.native_status,
        subgraphs=subgraphs,
        schedule=evaluation.schedule,
        replicas=placement.replicas,
    )


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as plain data."""
    return {k: v.as_dict() if isinstance(v, Constraints) else v for k, v in options.items()}


def _contracted(
    workload: Workload, objective: str, split: str, options: Options, layer: Ints | None, info: MethodInfo
) -> Problem:
    """What a method is given: the graph as the devices run it, contracted as far as nothing is lost."""
    graph, devices, regime = workload.graph, workload.devices, options.regime
    demands = demands_of(graph, devices, regime.constraints)
    extended = "replicas" in info.features or bool(regime.features(devices))
    goal = Goal(
        objective=objective,
        split=split,
        classes=(companions(demands), *(() if layer is None else (layer,))),
        contiguous_cpus=options.contiguous_cpus,
        contiguous_backward=options.contiguous_backward,
        subgraphs=options.subgraphs_per_accelerator,
        extension=Extension(regime, demands) if extended else None,
    )
    return contract(fit(graph, devices, demands, regime.schedule is not None), devices, goal)
