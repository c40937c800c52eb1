"""The device of each operator of a model, from a plan of the model's graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.evaluation.solution import AnySolution, PlanRecord, solution_of
from partitioner.integrations.torch.graphs.node_operators import forward_operators, operator_devices
from partitioner.workload.graph import Graph


@dataclass(frozen=True)
class Assignment:
    """Where operators run, and in which order.

    Parameters
    ----------
    device
        The name of the device of each operator.
    position
        The position of each node in the plan's order of execution; empty if it has none.
    rank
        The position of each operator's forward node in it.
    names
        The names of the plan's devices in their order, also of those that it does not use if they are known.
    """

    device: Mapping[str, str]
    position: Mapping[Any, int]
    rank: Mapping[str, int]
    names: tuple[str, ...]


def assignment_of(graph: Graph, plan: AnySolution) -> Assignment:
    """Return the assignment of a plan of a graph that `graph_of` made.

    Raises
    ------
    WorkloadError
        Those of `operator_devices`.
    """
    solution = solution_of(plan)
    device = operator_devices(graph, solution)
    hardware = solution.hardware if isinstance(solution, PlanRecord) else None
    known = hardware.names if hardware is not None else sorted(set(device.values()))
    position = {node: i for i, node in enumerate(solution.execution_order or ())}
    given = forward_operators(graph).items()
    rank = {name: position[node] for node, names in given if node in position for name in names}
    return Assignment(device, position, rank, tuple(dict.fromkeys([*known, *device.values()])))


def require_operators(assignment: Assignment, operators: Iterable[str], bare: Collection[str]) -> None:
    """Raise if the graph and the captured model do not have the same operators.

    The graph may lack some of the operators `bare`: joint graphs do not have all that only return views.

    Raises
    ------
    WorkloadError
        Naming the operators.
    """
    own, listed, captured = (
        set(operators),
        set(assignment.device),
        "the model as captured with these arguments",
    )
    lacking = [
        (listed - own, f"is in the graph, but not in {captured}"),
        (own - listed - set(bare), f"is in {captured}, but not in the graph"),
    ]
    flaws = [Flaw(f"operator {name}", "", "", rule) for names, rule in lacking for name in sorted(names)]
    if flaws:
        raise WorkloadError(flaws)
