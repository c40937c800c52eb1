"""The value of a placement and the rules that it breaks, computed from the user's graph alone.

The value is never a solver's own claim. The evaluator shares five definitions with the methods (samples in
flight, the nodes that a constraint names, the time of a transfer, the slowdown between two groups, how often
replicas exchange weights), which tests compare with values worked out separately, and no other code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx

from partitioner.base.argument_types import check_word, require_type
from partitioner.base.errors import Flaw, OptionError, WorkloadError
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import SHAPES
from partitioner.evaluation.solution import AnySolution, PlanRecord, Solution, solution_of
from partitioner.evaluation.terms import Terms, check_terms
from partitioner.formats.plan_record import evaluation_arguments
from partitioner.planning.objectives import DEFAULT, Objective, objective_of, objective_of_record
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.networkx_graph import as_graph
from partitioner.workload.transfers import Transfers


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
    max_time_per_sample: float | None = None,
    stage_of: Mapping[Any, int] | None = None,
    alternatives: Mapping[Any, str] | None = None,
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
        constraints, transfers and order of execution; arguments that are given replace these.
    objective
        By default that of the plan (``"throughput"`` for pipelines that are simulated), else the first:
        ``"throughput"``: the largest load over the devices, forward and backward together
        (PipeDream); ``"gpipe"``: the largest forward plus the largest backward load (Appendix D);
        ``"latency"``: the time of a single sample (Appendix A), see the notes; ``"batch"``: the time of
        a batch of `microbatches` samples that fills and drains the pipeline, the sum of the loads of all
        stages and `microbatches` - 1 times the largest; ``"piper"``: the largest load in the model of Piper
        (NeurIPS 2021), see ``docs/alternatives.md``; ``"makespan"``: when the last operator ends if every
        device runs its operators one by one; ``"capacity"``: the most samples in flight with which every
        device fits its memory (`docs/serving.md`).
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
        :func:`partitioner.schedule.stash.stash`; or one with several stages on a device,
        ``"interleaved_1f1b"``, ``"zb_h1"``, ``"zbv"`` or ``"dualpipev"``. It decides how many samples'
        activations and how many versions of the parameters a stage holds. None: each part of the memory once.
    microbatches
        Samples of a batch; needed for objective ``"batch"``, schedule ``"gpipe"`` and those with several
        stages on a device.
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
    max_time_per_sample
        For capacity: the largest load that a device may have; None for any.
    stage_of
        The number, from 0, of the stage of every node, where devices have several stages; `order` then has
        the device of every stage. None: each device has one stage.

    alternatives
        For loads: the names of the alternatives of nodes that are not run as their own figures say, see
        :class:`partitioner.Alternative`.

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
    terms = {
        "subgraphs_per_accelerator": subgraphs_per_accelerator,
        "limited_cpus": None if limited_cpus is False else limited_cpus,
        **{"schedule": schedule, "microbatches": microbatches},
        **{"constraints": constraints, "split": split, "transfers": transfers},
        "max_time_per_sample": max_time_per_sample,
    }
    parts = {
        **{"replicas": replicas, "order": order},
        **{"subgraphs": subgraphs, "execution_order": execution_order, "stage_of": stage_of},
        "alternatives": alternatives,
    }
    graph = as_graph(graph, devices)
    if isinstance(solution, PlanRecord):
        devices = solution.devices(devices)
        graph = solution.trained(graph)
        solution.check_graph(graph, devices, strict=False)
        objective = objective_of_record(solution) if objective is None else objective
    if devices is None:
        raise WorkloadError([Flaw("devices", "", "None", "must be given for a placement that is no plan")])
    require_type("devices", devices, Devices)
    found = objective_of(DEFAULT if objective is None else objective)
    given: dict[str, Any] = {name: value for name, value in {**terms, **parts}.items() if value is not None}
    if isinstance(solution, PlanRecord):
        given = evaluation_arguments(solution, graph, found.terms, given)
        solution = Solution(solution.placement)
    solution = replace(solution, **{name: given.pop(name) for name in parts if name in given})
    return evaluated(found, graph, devices, solution, Terms(**given))


def evaluated(
    objective: Objective, graph: Graph, devices: Devices, solution: Solution, terms: Terms
) -> Evaluation:
    """Evaluate a solution, after a check that the objective uses every part and term that is given.

    Raises
    ------
    WorkloadError, OptionError
        As for :func:`evaluate`.
    """
    if terms.split is not None:
        check_word("split", terms.split, SHAPES)
    check_terms(objective.name, objective.terms, devices, solution, terms)
    for name in objective.needs:
        if getattr(terms, name) is None:
            raise OptionError(f"{name} = None: objective {objective.name!r} needs it")
    return objective.evaluate(graph, devices, solution, terms)
