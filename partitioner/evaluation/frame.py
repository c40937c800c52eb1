"""The first and the last step of every evaluation: read the placement, check the user's constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.evaluation.demands import demand_violations
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.notes import notes_on_replicas
from partitioner.evaluation.order import read_order
from partitioner.evaluation.placed import Placed, read_placement
from partitioner.evaluation.replicas import Replicas, read_replicas, replica_names
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import is_ordered
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.stage_numbers import NumberedStages, read_stages
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.time_parts import parts_of_largest, parts_of_value
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph


def read_solution(
    graph: Graph, devices: Devices, solution: Solution
) -> tuple[Placed, Replicas, tuple[int, ...] | None]:
    """Return the placement as arrays, its replicas, and the devices' positions in the order of the stages.

    Raises
    ------
    WorkloadError
        If the solution does not fit the graph or the devices, see :func:`partitioner.evaluate`.
    """
    replicas = solution.replicas
    further = replica_names(devices, replicas)
    placed = read_placement(graph, devices, solution.placement, further, solution.alternatives)
    return placed, read_replicas(placed, replicas), read_order(placed, solution.order)


def read_numbered(
    graph: Graph, devices: Devices, solution: Solution
) -> tuple[Placed, Replicas, NumberedStages]:
    """Return the placement as arrays, its replicas, and its stages, of which a device may have several.

    Raises
    ------
    WorkloadError
        If the solution does not fit the graph or the devices, see :func:`partitioner.evaluate`.
    """
    further = replica_names(devices, solution.replicas)
    placed = read_placement(graph, devices, solution.placement, further, solution.alternatives)
    return placed, read_replicas(placed, solution.replicas), read_stages(placed, solution)


def completed(
    found: Evaluation,
    placed: Placed,
    copies: Replicas,
    ordered: tuple[int, ...] | None,
    terms: Terms,
    staged: Placed | None = None,
    samples: int = 1,
) -> Evaluation:
    """Return the evaluation with a message for each broken constraint, notes on replicas, and its parts.

    `staged` is as in :func:`partitioner.evaluation.demands.demand_violations`; the value is the time of some
    `samples`.
    """
    parts = parts_of_value(parts_of_largest(placed, found.loads), samples, found.value)
    found = replace(found, notes=found.notes + notes_on_replicas(placed, copies), parts=parts)
    constraints = terms.constraints
    if constraints is None or constraints.empty:
        return found
    chain = found.shape.is_chain and (terms.split is None or is_ordered(terms.split))
    broken = demand_violations(placed, constraints, copies, chain, ordered, staged)
    return replace(found, violations=found.violations + broken)


def device_loads(
    placed: Placed, load: Floats, compute: Floats, into: Floats, out: Floats
) -> tuple[DeviceLoad, ...]:
    """Return an entry for each device; `load` has shape (devices,), the other times (2, devices)."""
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
