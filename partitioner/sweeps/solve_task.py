"""What a worker does with a task: it solves it, and any error becomes a row."""

from __future__ import annotations

import pickle
import time
from functools import lru_cache
from typing import Any

from partitioner.base.clock import METER
from partitioner.base.errors import InfeasibleError, NoPlanFound, PartitionerError, WorkloadError
from partitioner.planning.solve import solve
from partitioner.planning.warm_up.once import warm_up_once
from partitioner.results.plan import Plan
from partitioner.sweeps.row import FAILED, INFEASIBLE, NO_PLAN, SweepRow
from partitioner.sweeps.task import SweepTask
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.graph_validation import device_flaws, size_flaws

KEPT_GRAPHS = 4
OUT_OF_MEMORY = "out of memory"
WITHOUT_PLAN: dict[type[Exception], str] = {InfeasibleError: INFEASIBLE, NoPlanFound: NO_PLAN}


def solve_task(task: SweepTask, warm: bool, keep_plan: bool) -> tuple[SweepRow, str]:
    """Return the row of a task, and its plan as JSON if that is to be kept, else an empty text.

    With `warm` all kernels are compiled before the first task on this machine.
    """
    if warm:
        warm_up_once()
    began, compiled = time.perf_counter(), METER.seconds
    plan: Plan | None = None
    try:
        graph = _graph(task.graph)
        _check_fit(graph, task.devices)
        plan = solve(graph, task.devices, workers=1, **task.options)
        status, found = plan.status, _found(plan)
    except Exception as error:  # a row says what a user would have seen
        status, found = WITHOUT_PLAN.get(type(error), FAILED), {"reason": _reason(error)}
    seconds = time.perf_counter() - began - (METER.seconds - compiled)
    row = task.row(status, seconds=round(seconds, 4), **found)
    return row, plan.to_json() + "\n" if keep_plan and plan is not None else ""


@lru_cache(KEPT_GRAPHS)
def _graph(content: bytes) -> Graph:
    graph: Graph = pickle.loads(content)
    return graph


def _check_fit(graph: Graph, devices: Devices) -> None:
    """Raise if a node fits no device of the pool: such a pool is infeasible, the workload is sound."""
    flaws = device_flaws(graph, devices) or size_flaws(graph, devices)
    if flaws:
        raise InfeasibleError(str(WorkloadError(flaws)))


def _found(plan: Plan) -> dict[str, Any]:
    used = sum(device.nodes > 0 or device.replica_of is not None for device in plan.devices)
    return {
        "value": plan.value,
        "bound": plan.bound,
        "split": plan.split,
        "method": plan.method,
        "stop_reason": plan.stop_reason,
        "used": used,
        "time_unit": plan.time_unit,
    }


def _reason(error: Exception) -> str:
    """Return an error in words."""
    if isinstance(error, PartitionerError):
        return str(error)
    name = OUT_OF_MEMORY if isinstance(error, MemoryError) else type(error).__name__
    return f"{name}: {error}" if str(error) else name
