"""The way from a graph and devices to a plan."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx

from partitioner.devices import Devices
from partitioner.errors import ContradictionError, InfeasibleError, NoPlanFound
from partitioner.evaluate import Evaluation, evaluate
from partitioner.formats.networkx_graph import from_networkx
from partitioner.graph import Graph
from partitioner.interrupt import Interruption
from partitioner.methods.expand import expand, stages_of
from partitioner.methods.explain import why_infeasible
from partitioner.methods.method import Outcome, Progress, Settings, Stage
from partitioner.methods.registry import choose
from partitioner.options import read_options
from partitioner.plan import Plan
from partitioner.preprocess.contract import contract
from partitioner.preprocess.layers import whole_layers
from partitioner.preprocess.problem import Problem
from partitioner.workload import Workload

TOLERANCE = 1e-9


def solve(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    objective: str = "throughput",
    *,
    method: str = "auto",
    split: str = "chain",
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
        ``"throughput"``: the largest load of a device (paper, Section 5).
    method
        A name that ``partitioner methods`` lists; ``"auto"`` takes the strongest that applies.
    split
        ``"chain"``: a pipeline of stages.
    backend
        The solver to use, for methods that can choose.
    time_limit
        Seconds after which the best plan found so far is returned.
    gap
        Stop once the plan is proven within this fraction of the optimum.
    seed
        Seed of everything random; the same seed gives the same plan.
    workers
        How many cores may be used; the dynamic programs use one.
    warm_start
        A plan or placement to start from; it is used if it is a feasible chain.
    on_progress
        Called with a :class:`partitioner.Progress` from time to time.
    **method_options
        ``granularity``: ``"operator"`` or ``"layer"`` (keep the nodes of a layer together);
        ``memory_budget``: bytes for the exact search (4 GiB); ``step_limit``: its steps (two billion,
        some minutes); ``orders``: how many linear orders to try (12).

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
    info = choose(method, objective, split, backend)
    options = read_options(time_limit, gap, seed, workers, method_options)
    layer, notes = whole_layers(graph) if options.by_layer else (None, ())
    problem = contract(graph, devices, layer)
    interruption = Interruption()
    settings = Settings(
        gap=gap,
        deadline=None if time_limit is None else started + time_limit,
        seed=seed,
        memory_budget=options.memory_budget,
        step_limit=options.step_limit,
        orders=options.orders,
        incumbent=_incumbent(problem, graph, devices, warm_start),
        interruption=interruption,
        report=on_progress,
        started=started,
    )
    with interruption:
        outcome = info.load()(problem, settings)
    placement, stages = expand(graph, devices, outcome)
    if not stages:
        raise _no_plan(graph, devices, outcome)
    evaluation = evaluate(graph, devices, placement, objective)
    _check(evaluation, outcome, split)
    proven = outcome.stop_reason == "optimal"
    return Plan(
        objective=objective,
        split=split,
        value=evaluation.value,
        bound=evaluation.value if proven else min(outcome.bound, evaluation.value),
        status="optimal" if proven else "feasible",
        stop_reason=outcome.stop_reason,
        method=info.name,
        backend=info.backends[0],
        runtime_seconds=time.perf_counter() - started,
        devices=evaluation.loads,
        stages=stages,
        placement=placement,
        workload_sha256=workload.sha256,
        seed=seed,
        options={"method": method, "time_limit": time_limit, "gap": gap, **method_options},
        notes=(*notes, *outcome.notes),
        statistics=dict(outcome.statistics),
    )


def _incumbent(
    problem: Problem, graph: Graph, devices: Devices, warm_start: Plan | Mapping[Any, str] | None
) -> list[Stage] | None:
    """The stages of the warm start if it is a feasible chain."""
    if warm_start is None:
        return None
    placement = warm_start.placement if isinstance(warm_start, Plan) else warm_start
    evaluation = evaluate(graph, devices, placement)
    if not evaluation.feasible or evaluation.shape.name != "chain":
        return None
    return stages_of(problem, graph, devices, placement, evaluation.shape.order)


def _no_plan(graph: Graph, devices: Devices, outcome: Outcome) -> BaseException:
    if outcome.stop_reason == "interrupted":
        return KeyboardInterrupt()
    if outcome.infeasible:
        return InfeasibleError(why_infeasible(graph, devices))
    notes = "".join(f"; {note}" for note in outcome.notes)
    return NoPlanFound(f"no plan found ({outcome.stop_reason}){notes}")


def _check(evaluation: Evaluation, outcome: Outcome, split: str) -> None:
    """Hold the method to its word: the value, the rules, the shape.

    Raises
    ------
    ContradictionError
        If the evaluator sees it differently.
    """
    if not math.isclose(evaluation.value, outcome.value, rel_tol=TOLERANCE, abs_tol=1e-300):
        claim = f"the method claims {outcome.value!r}, the evaluator finds {evaluation.value!r}"
        raise ContradictionError(claim)
    if evaluation.violations:
        raise ContradictionError("the method's plan breaks a rule: " + evaluation.violations[0])
    if split == "chain" and evaluation.shape.name != "chain":
        raise ContradictionError(f"the method's plan is {evaluation.shape.name}, not a chain")
    if outcome.bound > evaluation.value * (1 + TOLERANCE):
        raise ContradictionError(f"the bound {outcome.bound!r} exceeds the value {evaluation.value!r}")
