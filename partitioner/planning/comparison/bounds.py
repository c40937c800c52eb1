"""What no pipeline of a kind can do without, whatever its stages are: time and memory."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.in_flight import SCHEDULES, Held, samples_in_flight
from partitioner.workload.virtual_stages.schedules import VIRTUAL


def least_makespan(graph: Graph, devices: Devices, microbatches: int, input_share: float = 1.0) -> float:
    """Return a lower bound of the makespan of all pipelines.

    It is the larger of two: all processing divided among all devices, and the processing of one sample along
    the longest path of the graph. Nodes take the time of the fastest way to run them.

    Parameters
    ----------
    graph, devices, microbatches
        The workload, and the number of samples of a batch.
    input_share
        The part of a backward pass that later passes of the sample wait for, from 0 to 1.

    Examples
    --------
    >>> from partitioner.workload.devices import DeviceKind
    >>> graph = Graph.from_arrays({"gpu": [1.0, 2.0]}, [(0, 1)])
    >>> [least_makespan(graph, Devices((DeviceKind("gpu", 2),)), m) for m in (1, 8)]
    [3.0, 12.0]
    """
    time, work = _least_times(graph, devices)
    awaited = np.where(graph.backward, input_share, 1.0) * time
    path: nx.DiGraph[int] = nx.DiGraph()
    path.add_nodes_from(range(len(graph)))
    path.add_edges_from(graph.edges.tolist())
    reached = np.zeros(len(graph))
    for node in nx.topological_sort(path):
        reached[node] = awaited[node] + max(
            (reached[before] for before in path.predecessors(node)), default=0.0
        )
    count = sum(kind.count for kind in devices.kinds)
    return float(max(microbatches * work.sum() / count, reached.max(initial=0.0)))


def _least_times(graph: Graph, devices: Devices) -> tuple[Floats, Floats]:
    """Return the least time of each node, and that of all devices that run it together, shape (n,) each."""
    kinds = [kind for kind in devices.kinds if kind.count and kind.row in graph.kinds]
    time = np.array([graph.time[graph.kinds.index(kind.row)] * kind.time_factor for kind in kinds]).min(
        axis=0
    )
    work = time.copy()
    for node, ways in graph.alternatives.items():
        place = graph.position[node]
        for way in ways:
            least = min(way.times[kind.row] * kind.time_factor for kind in kinds)
            time[place] = min(time[place], least)
            work[place] = min(work[place], least * way.degree)
    return time, work


def exceeds_memory(graph: Graph, devices: Devices, schedule: str, microbatches: int) -> bool:
    """Whether no stages can fit the memory of all devices together: not all cases are found.

    Each stage holds at least what the last one does under the schedule. A schedule with several stages on a
    device may be limited to fewer devices by its number of microbatches.
    """
    if graph.alternatives:
        return False  # other ways to run nodes may take less
    held = samples_in_flight(schedule, 0, 1, microbatches) if schedule in SCHEDULES else Held(1, 1)
    parameters, gradients, optimizer, activations, _ = graph.parts.sum(axis=1)
    fixed = graph.size.sum() + gradients + optimizer
    needed = fixed + held.weights * parameters + held.activations * activations
    limits = sorted((kind.memory_limit for kind in devices.kinds for _ in range(kind.count)), reverse=True)
    return bool(needed > sum(limits[: _most_devices(schedule, len(limits), microbatches)]))


def _most_devices(schedule: str, devices: int, microbatches: int) -> int:
    """Return the most devices that a schedule runs the microbatches on."""
    if schedule not in VIRTUAL:
        return devices
    counts = range(devices, 0, -1)
    return next((count for count in counts if not VIRTUAL[schedule].rule(count, microbatches)), 0)
