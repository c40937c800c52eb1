"""A lower bound for any placement, wherever it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import networkx as nx

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.interruption import StopEvent
from partitioner.evaluation.shape import is_ordered
from partitioner.evaluation.solution import AnySolution, PlanRecord, solution_of
from partitioner.methods.method import Progress
from partitioner.planning.alternatives import method_under, require_choice
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import objective_of
from partitioner.planning.solve import solve
from partitioner.results.certificate import Certificate
from partitioner.workload.constraints import require_constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.input_operators import COPIED, FIELD
from partitioner.workload.networkx_graph import as_graph
from partitioner.workload.transfers import Transfers

PARTS = ("order", "subgraphs", "execution_order", "alternatives", "stage_of")


def certify(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    placement: AnySolution,
    objective: str = "throughput",
    *,
    split: str | None = None,
    time_limit: float | None = 60.0,
    gap: float = 0.0,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
    subgraphs_per_accelerator: int = 1,
    subgraphs: Mapping[Any, int] | None = None,
    transfers: Transfers | None = None,
    execution_order: Sequence[Any] | None = None,
    **pipeline: Any,
) -> Certificate:
    """Bound how far a placement is from the best one, wherever it comes from.

    Parameters
    ----------
    graph, devices, objective
        As in :func:`partitioner.solve`.
    placement
        A plan, a :class:`partitioner.Solution`, or a device name for every node id.
    split
        The splits it is compared with; by default those of its own shape, but convex ones where a
        chain is asked for GPipe's objective, and those the plan was made as where only neighbours may
        exchange tensors.
    time_limit
        Seconds for the search; the bound is what it has proven by then.
    gap
        Stop once the best plan is proven within this fraction.
    on_progress, stop
        How to follow and to end the search, as in :func:`partitioner.solve`.
    subgraphs_per_accelerator, subgraphs
        For latency, as in :func:`partitioner.evaluate`; a plan brings its subgraphs.
    transfers, execution_order
        For makespans, as in :func:`partitioner.evaluate`; a plan brings its order, to which the best plan
        need not keep.
    **pipeline
        For pipelines `replicas`, `order`, `alternatives`, `schedule`, `microbatches` and `constraints`, as in
        :func:`partitioner.evaluate`; a plan brings the first three. A placement with replicas is compared
        with plans in which any number of devices of a kind shares a stage.

    Raises
    ------
    WorkloadError
        If the placement breaks a rule.
    NoPlanFound
        If there is nothing to compare with within the time, or the placement chooses alternatives of nodes
        where the only bound is for plans without them.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> devices = Devices.accelerated(2)
    >>> certificate = certify(graph, devices, {0: "accelerator0", 1: "accelerator0", 2: "accelerator1"})
    >>> certificate.value, certificate.bound, certificate.best.value
    (4.5, 3.5, 3.5)
    """
    graph = as_graph(graph, devices)
    wanted, solution = objective_of(objective), solution_of(placement)
    searched, copies = graph, dict[str, Any]()
    if isinstance(solution, PlanRecord):
        searched, graph = solution.trained(graph, copies=False), solution.trained(graph)
        copies = {FIELD: COPIED} if searched is not graph else {}
    made_as = solution.split if isinstance(solution, PlanRecord) else None
    known = {
        "subgraphs": solution.subgraphs,
        "execution_order": solution.execution_order,
        "alternatives": solution.alternatives,
        **(
            {
                "replicas": solution.replicas or None,
                "order": solution.order,
                "stage_of": solution.stage_of,
            }
            if made_as is None or is_ordered(made_as)
            else {}
        ),
    }
    given = {"subgraphs": subgraphs, "execution_order": execution_order, "transfers": transfers, **pipeline}
    given = {name: value for name, value in given.items() if value is not None}
    given = {name: known[name] for name in known if name in wanted.terms and known[name]} | given
    constraints = given.get("constraints")
    require_constraints(constraints)
    if constraints is not None and constraints.for_chains:
        split = split or made_as  # a free split may keep to them where no chain does
    limit = subgraphs_per_accelerator
    given["subgraphs_per_accelerator"] = limit
    evaluation = evaluate(graph, devices, solution.placement, objective, split=split, **given)
    if not evaluation.feasible:
        raise WorkloadError([Flaw("placement", "", "", rule) for rule in evaluation.violations])
    shape = split or wanted.freer(evaluation.shape.name)
    best = solve(
        searched,
        devices,
        objective,
        split=shape,
        method=method_under(graph, devices, wanted, shape, given),
        time_limit=time_limit,
        gap=gap,
        warm_start=placement,
        on_progress=on_progress,
        stop=stop,
        **copies,
        **_asked(devices, given),
    )
    if given.get("alternatives"):
        require_choice(graph, devices, best.method)
    return Certificate(evaluation.value, best, evaluation.parts)


def _asked(devices: Devices, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the search for a bound: those given, with replicas if the solution has any."""
    requested = {name: value for name, value in given.items() if name not in PARTS}
    if requested.pop("replicas", None):
        requested["replicas"] = max(kind.count for kind in devices.kinds)
    return requested
