"""The plan of a request, made of a solution, its evaluation, and what is proven of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import Solution
from partitioner.planning.request import Request, plain
from partitioner.results.by_stage import stage_loads
from partitioner.results.plan import Plan
from partitioner.results.rates import rates_of
from partitioner.results.serving import MAXIMISED


@dataclass(frozen=True)
class Proof:
    """What the search for a plan knows of it, in addition to its evaluation.

    Parameters
    ----------
    bound
        No plan has a better value.
    stop_reason
        Why the search ended, ``"optimal"`` if the plan is proven to be.
    backend
        The solver that was used; empty for the first one of the method.
    notes, statistics, native_status
        As in :class:`partitioner.Plan`; figures that are not finite are left out.
    """

    bound: float
    stop_reason: str
    backend: str = ""
    notes: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)
    native_status: str = ""


def plan_of(
    request: Request,
    solution: Solution,
    evaluation: Evaluation,
    proof: Proof,
    bubbles: Mapping[str, float] | None = None,
) -> Plan:
    """Return the plan of a request.

    Parameters
    ----------
    request
        What was asked for.
    solution, evaluation
        Where every node runs, the stages in `order`, and what that costs.
    proof
        What is known of it beyond that.
    bubbles
        The bubble of each device, if the plan is simulated.
    """
    objective, options, value = request.objective.name, request.options, evaluation.value
    proven, better = proof.stop_reason == "optimal", max if MAXIMISED.get(objective) else min
    stages = tuple(solution.order or ())
    kept = {name: options[name] for name in ("method", "time_limit", "gap")}
    return Plan(
        objective=objective,
        split=request.split,
        value=value,
        bound=value if proven else better(proof.bound, value),
        status="optimal" if proven else "feasible",
        stop_reason=proof.stop_reason,
        method=request.info.name,
        backend=proof.backend or request.info.backends[0],
        runtime_seconds=time.perf_counter() - request.clock.started,
        devices=evaluation.loads,
        stages=stages,
        placement=solution.placement,
        workload_sha256=request.workload.sha256,
        seed=options["seed"],
        options={**kept, **plain(request.given)},
        notes=proof.notes,
        statistics={name: x for name, x in proof.statistics.items() if math.isfinite(x)},
        native_status=proof.native_status,
        subgraphs=solution.subgraphs,
        schedule=evaluation.schedule,
        replicas=solution.replicas,
        alternatives=dict(solution.alternatives),
        execution_order=solution.execution_order,
        hardware=request.devices,
        by_stage=stage_loads(
            request.graph,
            solution.placement,
            evaluation.loads,
            stages,
            solution.replicas,
            bubbles,
            solution.stage_of,
            solution.alternatives,
        ),
        stage_of=solution.stage_of,
        time_unit=request.graph.extras.time_unit,
        rates=_rates(request, evaluation),
        parts=evaluation.parts,
    )


def _rates(request: Request, evaluation: Evaluation) -> dict[str, float]:
    """Return the rates of a plan whose value is the time of a sample or of a batch."""
    period = request.objective.period
    if not period:
        return {}
    used = sum(load.nodes > 0 or load.replica_of is not None for load in evaluation.loads)
    batch = period == "samples"
    samples = request.regime.microbatches if batch else 1
    held = max((load.memory for load in evaluation.loads), default=0.0)
    return rates_of(request.graph.extras, samples or 1, evaluation.value, used, batch, held)
