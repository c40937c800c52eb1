"""What a placement costs and which rules it breaks, computed from the user's graph alone.

Nothing here is shared with the methods, so that a plan's value is never a solver's own claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from partitioner.base.argument_types import check_word, require_type
from partitioner.errors import Flaw, WorkloadError
from partitioner.evaluation.costs import compute_times, loads_of, transfer_times
from partitioner.evaluation.demands import demand_violations
from partitioner.evaluation.latency import latency_of
from partitioner.evaluation.makespan import makespan_of
from partitioner.evaluation.notes import notes_on, notes_on_replicas, notes_on_settings
from partitioner.evaluation.order import in_order, order_violations, read_order
from partitioner.evaluation.pipeline import Pipeline, batch_time, costs_of, memory_of
from partitioner.evaluation.placed import Placed, read_placement
from partitioner.evaluation.replicas import Replicas, read_replicas, replica_names
from partitioner.evaluation.requested import check_extensions, check_operators, check_subgraphs
from partitioner.evaluation.result import DeviceLoad, Evaluation
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.solution import AnySolution, PlanRecord, solution_of
from partitioner.evaluation.violations import violations_of
from partitioner.formats.plan_record import evaluation_arguments
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.networkx_graph import from_networkx
from partitioner.workload.pass_order import with_pass_order
from partitioner.workload.transfers import BY_FARE, Transfers

OBJECTIVES = ("throughput", "gpipe", "latency", "batch", "makespan")
SPLITS = ("chain", "convex", "free")


def evaluate(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices | None,
    placement: AnySolution,
    objective: str | None = None,
    *,
    subgraphs_per_accelerator: int | None = None,
    subgraphs: Mapping[Any, int] | None = None,
    limited_cpus: bool = False,
    replicas: Mapping[str, Sequence[str]] | None = None,
    order: Sequence[str] | None = None,
    schedule: str | None = None,
    microbatches: int | None = None,
    constraints: Constraints | None = None,
    split: str | None = None,
    transfers: Transfers | None = None,
    execution_order: Sequence[Any] | None = None,
) -> Evaluation:
    """Compute the value of any placement and check it against every rule.

    The load of a device is the time per sample that it is busy (paper, Sections 3, 5.1 and 5.3): the
    processing of its nodes; for every tensor made elsewhere with a consumer here one transfer in;
    for every tensor made here with a consumer elsewhere one transfer out; transfers only if the
    kind pays for them. A transfer in belongs to the backward pass if all its consumers here do.

    Parameters
    ----------
    graph, devices
        The workload; the graph may be networkx's, as in :func:`partitioner.solve`.
        `devices.communication` says how transfers and processing add up. None: those of the plan.
    placement
        The name of a device for every node id, or a :class:`partitioner.Solution`, or a plan. A plan brings
        all that it knows: its devices, objective, subgraphs, replicas, order, schedule, microbatches,
        constraints, transfers and order of execution; what is given goes before.
    objective
        By default that of the plan (``"throughput"`` for pipelines that are simulated), else the first:
        ``"throughput"``: the largest load over the devices, forward and backward together
        (PipeDream); ``"gpipe"``: the largest forward plus the largest backward load (Appendix D);
        ``"latency"``: the time of a single sample (Appendix A), see the notes; ``"batch"``: the time of
        a batch of `microbatches` samples that fills and drains the pipeline, the sum of the loads of all
        stages and `microbatches` - 1 times the largest; ``"makespan"``: when the last operator ends if every
        device runs its operators one by one.
    subgraphs_per_accelerator
        For latency: how many forward subgraphs an accelerator may hold, and how many backward ones (1).
    subgraphs
        For latency: the index, from 0, of the subgraph that each node of an accelerator belongs to;
        an accelerator runs those of each pass in increasing order. None: the fewest contiguous
        subgraphs, each as early as possible.
    limited_cpus
        For latency: run one node at a time on each CPU, the longest remaining path first, on any CPU of
        the kind, whatever number the placement says. Else there are as many cores as needed.
    replicas
        For a device of the placement, the further devices that hold a copy of its stage and take their
        share of the samples (Appendix H.2).
    order
        The devices of the placement in the order of the pipeline; None: as in :class:`Shape`.
    schedule
        How samples follow one another: ``"inference"``, ``"gpipe"``, ``"1f1b"`` or ``"1f1b_async"``, see
        :func:`partitioner.schedule.stash.stash`. It decides how many samples' activations and how many
        versions of the parameters a stage holds. None: each part of the memory once.
    microbatches
        Samples of a batch; needed for objective ``"batch"`` and schedule ``"gpipe"``.
    constraints
        What else is demanded of the placement.
    split
        What it is meant as, which matters where only neighbours may exchange tensors: stages of a
        ``"chain"`` stand in its order; None: it is meant as a chain if it is one.
    transfers
        For makespans: how tensors travel; None: as :class:`partitioner.Transfers` says by default.
    execution_order
        For makespans: all node ids, producers before consumers, in the order in which every device runs its
        own. None: a free device runs what became ready first, ties by the place in the topological order
        nearest to the file's; at one moment all that ends ends, and then the free device of the smallest
        number starts one operator, again and again, so that operators that take no time end in between.
        That is Baechi's simulator but for operators that take no time or tie, whose order its event queue
        leaves to the history of the queue.

    Raises
    ------
    WorkloadError
        If a node is not placed, an id, device name or index of a subgraph means nothing, a replica is of
        another kind or in use already, `order` does not list the stages, or a constraint does not fit.
    OptionError
        If the objective or schedule is unknown, an option has a value it may not have, or options mean
        nothing together: objectives ``"gpipe"`` and ``"latency"`` know no replicas, levels and schedules.

    Notes
    -----
    For latency, a device that pays for communication runs subgraphs. One starts when all tensors that it
    takes from elsewhere are in host memory and the device's previous subgraph has ended; it fetches
    them, processes its nodes, and sends every tensor that is used outside it, even on the same device;
    then its outputs are in host memory, not earlier. A node on any other kind starts when its inputs are
    in host memory. The value is the last finish, or infinity if subgraphs wait for one another in a circle.
    For makespans, an operator starts when its device is free and all its inputs are there. A tensor leaves
    when it is made, once for each device that reads it; with contention in the order of the edges, as the
    sender's channel and then the receiver's are free. The load of a device is the time of its operators.

    For latency loads are as scheduled, so that every subgraph pays its own transfers; memory, numbers of
    nodes and violations are those of the placement as it is given.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)], cost=0.5)
    >>> devices = Devices.accelerated(2)
    >>> evaluate(graph, devices, {0: "accelerator0", 1: "accelerator1"}).value
    2.5
    >>> evaluate(graph, devices, {0: "accelerator0", 1: "accelerator1"}, "latency").value
    4.0
    """
    solution = solution_of(placement)
    if isinstance(solution, PlanRecord):
        given = {
            **{"subgraphs_per_accelerator": subgraphs_per_accelerator, "subgraphs": subgraphs},
            **{"replicas": replicas, "order": order, "schedule": schedule, "microbatches": microbatches},
            **{"constraints": constraints, "split": split, "transfers": transfers},
            **{"execution_order": execution_order, "limited_cpus": limited_cpus or None},
        }
        return _evaluate_plan(graph, devices, solution, objective, given)
    subgraphs = solution.subgraphs if subgraphs is None else subgraphs
    replicas = solution.replicas or None if replicas is None else replicas
    order = solution.order if order is None else order
    execution_order = solution.execution_order if execution_order is None else execution_order
    if devices is None:
        raise WorkloadError([Flaw("devices", "", "None", "must be given for a placement that is no plan")])
    objective = OBJECTIVES[0] if objective is None else objective
    subgraphs_per_accelerator = 1 if subgraphs_per_accelerator is None else subgraphs_per_accelerator
    require_type("devices", devices, Devices)
    check_word("objective", objective, OBJECTIVES)
    check_subgraphs(objective, subgraphs_per_accelerator, subgraphs, limited_cpus)
    check_operators(objective, transfers, execution_order)
    extensions = {"replicas": replicas, "order": order, "schedule": schedule, "microbatches": microbatches}
    check_extensions(objective, devices, constraints, **extensions)
    if split is not None:
        check_word("split", split, SPLITS)
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    notes = notes_on(graph, objective, schedule)
    notes += notes_on_settings(devices, objective, schedule, microbatches)
    graph = with_pass_order(graph) if objective == "makespan" else graph
    placed = read_placement(graph, devices, solution.placement, replica_names(devices, replicas))
    copies, ordered = read_replicas(placed, replicas), read_order(placed, order)
    if objective == "makespan":
        found = _makespan(placed, transfers or BY_FARE, execution_order)
    elif objective == "latency":
        found = _latency(placed, subgraphs_per_accelerator, subgraphs, limited_cpus)
    elif objective == "batch" or schedule or replicas or ordered or devices.levels:
        found = _pipeline(placed, objective, copies, ordered, schedule, microbatches)
    else:
        found = _plain(placed, objective)
    found = replace(found, notes=notes + notes_on_replicas(placed, copies))
    if constraints is None or constraints.empty:
        return found
    chain = split in (None, "chain") and found.shape.name == "chain"
    broken = demand_violations(placed, constraints, copies, chain, ordered)
    return replace(found, violations=found.violations + broken)


def _evaluate_plan(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices | None,
    record: PlanRecord,
    objective: str | None,
    given: Mapping[str, Any],
) -> Evaluation:
    """Evaluate a plan with all that it knows; what is given goes before."""
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    devices = record.devices(devices)
    record.check_graph(graph, devices, strict=False)
    objective = record.default_objective if objective is None else objective
    arguments = evaluation_arguments(record, graph, objective, given)
    return evaluate(graph, devices, record.placement, objective, **arguments)


def _plain(placed: Placed, objective: str) -> Evaluation:
    communication = placed.devices.communication
    compute = compute_times(placed)
    into, out = transfer_times(placed)
    load = loads_of(communication, compute.sum(axis=0), into.sum(axis=0), out.sum(axis=0))
    by_pass = loads_of(communication, compute, into, out)
    value = load.max() if objective == "throughput" else by_pass.max(axis=1).sum()
    loads = _loads(placed, load, compute, into, out)
    shape = placement_shape(placed.graph, placed.device, placed.names)
    return Evaluation(objective, float(value), loads, violations_of(placed), shape)


def _pipeline(
    placed: Placed,
    objective: str,
    copies: Replicas,
    ordered: tuple[int, ...] | None,
    schedule: str | None,
    microbatches: int | None,
) -> Evaluation:
    form = placement_shape(placed.graph, placed.device, placed.names)
    shape, order = in_order(placed, form, ordered)
    pipeline = Pipeline(placed, copies, order, schedule, microbatches)
    costs, (memory, held) = costs_of(pipeline), memory_of(pipeline)
    value = batch_time(pipeline, costs.load) if objective == "batch" else float(costs.load.max())
    piped = objective == "batch" or ordered is not None or schedule is not None or copies.further.any()
    violations = order_violations(placed, form, ordered) if piped else ()
    violations += violations_of(placed, np.where(copies.further, 0.0, memory), held)
    loads = _loads(placed, costs.load, costs.compute, costs.transfer_in, costs.transfer_out)
    loads = tuple(
        replace(
            loads[lead],
            name=name,
            memory=float(memory[i]),
            sync=float(costs.sync[i]),
            replica_of=None if lead == i else placed.names[lead],
        )
        for i, (name, lead) in enumerate(zip(placed.names, copies.lead.tolist(), strict=True))
    )
    return Evaluation(objective, value, loads, violations, shape)


def _latency(
    placed: Placed, limit: int, subgraphs: Mapping[Any, int] | None, limited_cpus: bool
) -> Evaluation:
    found = latency_of(placed, limit, subgraphs, limited_cpus)
    loads = _loads(placed, found.load, found.compute, found.transfer_in, found.transfer_out)
    violations = found.violations + violations_of(placed)
    shape = placement_shape(placed.graph, placed.device, placed.names)
    return Evaluation("latency", found.value, loads, violations, shape, found.schedule)


def _makespan(placed: Placed, transfers: Transfers, execution_order: Sequence[Any] | None) -> Evaluation:
    found = makespan_of(placed, transfers, execution_order)
    of_pass = [placed.graph.backward == b for b in (False, True)]
    compute = np.array(
        [np.bincount(placed.device[mine], found.length[mine], len(placed.names)) for mine in of_pass]
    )
    nothing = np.zeros_like(found.sent)
    into, out = np.array([found.received, nothing]), np.array([found.sent, nothing])
    loads = _loads(placed, compute.sum(axis=0), compute, into, out)
    shape = placement_shape(placed.graph, placed.device, placed.names)
    return Evaluation("makespan", found.value, loads, violations_of(placed), shape, found.schedule)


def _loads(
    placed: Placed, load: Floats, compute: Floats, into: Floats, out: Floats
) -> tuple[DeviceLoad, ...]:
    kinds = placed.devices.kinds
    memory = placed.memory
    count = np.bincount(placed.device, minlength=len(placed.names))
    return tuple(
        DeviceLoad(
            name=name,
            kind=kinds[placed.kind[i]].name,
            load=float(load[i]),
            compute=_pair(compute[:, i]),
            transfer_in=_pair(into[:, i]),
            transfer_out=_pair(out[:, i]),
            memory=float(memory[i]),
            memory_limit=kinds[placed.kind[i]].memory,
            nodes=int(count[i]),
        )
        for i, name in enumerate(placed.names)
    )


def _pair(values: Floats) -> tuple[float, float]:
    return float(values[0]), float(values[1])
