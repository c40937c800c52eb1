"""Small graphs with names, for examples that are worked by hand."""

from __future__ import annotations

from collections.abc import Mapping

from partitioner import Devices, Graph, Transfers
from partitioner.methods.placers.found import Found
from partitioner.problem.fit import fit
from partitioner.problem.groups import colocated_groups
from partitioner.problem.tasks import Tasks, tasks_of
from partitioner.workload.constraints import NONE
from partitioner.workload.resolved_constraints import demands_of
from partitioner.workload.topological import topological

Edges = Mapping[str, float]


def tasks_by_hand(
    time: Mapping[str, float],
    edges: Edges,
    devices: Devices,
    size: Mapping[str, float] | None = None,
    together: str = "",
    contention: bool = False,
    slow: float | None = None,
) -> Tasks:
    """Tasks named by letters; an edge is a pair of letters with its cost.

    `together` are letters of one colour class; `slow` is the time of all tasks on a second kind.
    """
    names = list(time)
    times = {"accelerator": list(time.values()), "cpu": [slow or t for t in time.values()]}
    graph = Graph.from_arrays(
        times,
        [(names.index(e[0]), names.index(e[1])) for e in edges],
        list(edges.values()),
        size=[(size or {}).get(v, 0.0) for v in names],
        color=[0 if v in together else None for v in names],
    )
    fitted = fit(graph, devices, demands_of(graph, devices, NONE))
    group = colocated_groups(fitted)
    return tasks_of(
        fitted,
        devices,
        group,
        Transfers(slope=1.0, contention=contention),
        topological(fitted.edges, len(fitted)),
    )


def places(tasks: Tasks, found: Found | None) -> str | None:
    """The devices of the tasks in the order of the nodes, as digits."""
    if found is None:
        return None
    at = dict(zip(tasks.node.tolist(), found.device.tolist(), strict=True))
    return "".join(str(at[v]) for v in sorted(at))


def run_order(tasks: Tasks, found: Found) -> list[int]:
    """The nodes in the order in which they run."""
    order: list[int] = tasks.node[found.order].tolist()
    return order
