"""A task of a sweep: one workload on one pool with one set of options, and the key that tells it apart."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from partitioner.analysis.sweeps.row import KEY_LENGTH, SweepRow
from partitioner.base.errors import InfeasibleError, WorkloadError
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.request import plain
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.graph_validation import device_flaws, size_flaws

KEPT_GRAPHS = 4


@dataclass(frozen=True, eq=False)
class SweepTask:
    """A task of a sweep, in the form that is sent to a worker.

    Parameters
    ----------
    workload, pool
        The names of the workload and of the pool.
    graph
        The pickled graph, so that workers need no file.
    digest
        The hash of the graph's data.
    devices
        The devices.
    options
        The keywords of :func:`partitioner.solve`, the objective among them.
    """

    workload: str
    pool: str
    graph: bytes
    digest: str
    devices: Devices
    options: Mapping[str, Any]

    @cached_property
    def given(self) -> dict[str, Any]:
        """The options other than the objective that are not the default, as plain data."""
        return {
            name: value
            for name, value in plain(self.options).items()
            if name != "objective" and not OPTIONS[name].is_default(self.options[name])
        }

    @cached_property
    def key(self) -> str:
        """The hash of the workload, the devices and the options."""
        asked = json.dumps([self.options["objective"], sorted(self.given.items())])
        return hashlib.sha256(f"{self.digest}|{self.devices.text}|{asked}".encode()).hexdigest()[:KEY_LENGTH]

    def row(self, status: str, **found: Any) -> SweepRow:
        """Return the row of the task with its status and what was found."""
        return SweepRow(
            self.key,
            self.workload,
            self.pool,
            len(self.devices.names),
            self.options["objective"],
            status,
            self.given,
            **found,
        )

    def solve(self) -> tuple[str, dict[str, Any], Plan]:
        """Return the status of the plan, what the row says of it, and the plan."""
        graph = _graph(self.graph)
        _check_fit(graph, self.devices)
        plan = solve(graph, self.devices, workers=1, **self.options)
        return plan.status, _found(plan), plan


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
