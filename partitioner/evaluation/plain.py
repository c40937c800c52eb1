"""Evaluations by the loads of devices alone: no replicas, no levels, each part of the memory once."""

from __future__ import annotations

from partitioner.evaluation.costs import compute_times, loads_of, transfer_times
from partitioner.evaluation.frame import device_loads
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.violations import violations_of


def plain_evaluation(placed: Placed, by_pass: bool) -> Evaluation:
    """Return the largest load of a device, or the largest forward plus the largest backward load."""
    communication = placed.devices.communication
    compute = compute_times(placed)
    into, out = transfer_times(placed)
    load = loads_of(communication, compute.sum(axis=0), into.sum(axis=0), out.sum(axis=0))
    of_pass = loads_of(communication, compute, into, out)
    value = of_pass.max(axis=1).sum() if by_pass else load.max()
    loads = device_loads(placed, load, compute, into, out)
    shape = placement_shape(placed.graph, placed.device, placed.names)
    return Evaluation("gpipe" if by_pass else "throughput", float(value), loads, violations_of(placed), shape)
