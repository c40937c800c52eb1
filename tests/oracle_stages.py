"""What stages on several devices cost, from the definition, for many splits at once; half of the oracle."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner import Devices, Graph
from partitioner.workload.devices import DeviceKind
from tests.oracle_placements import combined, tensors_of

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Stage(NamedTuple):
    """A stage's devices, as positions among those of its kind, and those from which they may be chosen."""

    kind: int
    devices: tuple[int, ...]
    room: tuple[int, ...]


class Splits:
    """Splits of a graph into `count` stages: the stage of every node in each, shape (splits, n)."""

    def __init__(self, graph: Graph, position: Rows, count: int) -> None:
        self.graph, self.count = graph, count
        self.here = position[:, :, None] == np.arange(count)
        self.time = np.einsum("snc,kn->skc", self.here, graph.time)
        self.fits = np.stack([~(self.here & ~may[None, :, None]).any(axis=1) for may in graph.allowed], 1)
        self.size = self.total(graph.size)
        self.parts = [self.total(part) for part in graph.parts]
        self.workspace = (self.here * graph.parts[4][None, :, None]).max(axis=1)
        self.known: dict[bytes, tuple[Floats, Floats]] = {}

    def total(self, amount: Floats) -> Floats:
        """Shape (splits, stages): sums of an amount of every node."""
        return np.asarray(np.einsum("snc,n->sc", self.here, amount))

    def transfers(self, slow: Floats, latency: float) -> tuple[Floats, Floats]:
        """Shape (splits, stages) each: in and out, where i and j are connected `slow[i, j]` times slower.

        The devices are the same in all calls, and so is the latency of a tensor.
        """
        if slow.tobytes() not in self.known:
            into, out = np.zeros(self.size.shape), np.zeros(self.size.shape)
            for maker, users, cost in tensors_of(self.graph):
                cost = cost + latency if cost > 0 else cost
                made = self.here[:, maker]
                abroad = self.here[:, users].any(axis=1) & ~made
                into += cost * abroad * (made @ slow)
                out += cost * made * (abroad[:, None, :] * slow).max(axis=2)
            self.known[slow.tobytes()] = into, out
        return self.known[slow.tobytes()]


def slowness(devices: Devices, one: Stage, other: Stage) -> float:
    """How much slower the link of two stages is than inside a smallest group."""
    if devices.groups:
        return max(
            linked(devices, group_of(devices, one.kind, i), group_of(devices, other.kind, j))
            for i in one.devices
            for j in other.devices
        )
    slow = 1.0
    for level in devices.levels:
        groups = {i // level.size(devices.kinds[s.kind].name) for s in (one, other) for i in s.devices}
        slow = level.slowdown if len(groups) > 1 else slow
    return slow


def group_of(devices: Devices, kind: int, index: int) -> int:
    """The number of the explicit group of a device; those of a kind are numbered group by group."""
    owners = [g for g, each in enumerate(devices.groups) for _ in range(each.size(devices.kinds[kind].name))]
    return owners[index]


def linked(devices: Devices, one: int, other: int) -> float:
    """The slowdown between a device of one explicit group and another device of the same or another one."""
    if one == other:
        return devices.groups[one].slowdown
    names = {devices.groups[one].name, devices.groups[other].name}
    by_pair = [link.slowdown for link in devices.links if set(link.between) == names]
    return [*by_pair, *(link.slowdown for link in devices.links if not link.between)][0]


def exchange_of(
    devices: Devices,
    weights: Floats,
    r: int,
    bandwidth: float,
    latency: float,
    schedule: str | None,
    microbatches: int | None,
) -> Floats:
    """The mean time for a sample in which r replicas exchange weights over links of that bandwidth.

    Every sample: each of r replicas takes a sample in turn and sends the weights once, but for its own part,
    (r - 1) / r of it in the mean, in r - 1 messages. Once a batch: in a ring every replica sends r - 1 parts
    of 1 / r to add them up, and as many to spread the sums. Each message has a latency, if there is any.
    """
    message = np.where(weights > 0, latency, 0.0)
    if microbatches is None or schedule == "1f1b_async" or devices.exchange == "paper":
        return np.asarray((r - 1) / r * weights / bandwidth + (r - 1) * message)
    steps, part = 2 * (r - 1), weights / r
    return np.asarray(steps * (part / bandwidth + message) / microbatches)


def loads_of_stages(
    splits: Splits,
    devices: Devices,
    stages: list[Stage],
    schedule: str | None = None,
    microbatches: int | None = None,
) -> tuple[Floats, ...]:
    """Shape (splits, stages) each: load, compute, transfers in, transfers out, synchronisation."""
    graph = splits.graph
    slow = np.array([[slowness(devices, one, other) for other in stages] for one in stages])
    into, out = (each.copy() for each in splits.transfers(slow, devices.link_latency))
    compute, sync, load = np.zeros(into.shape), np.zeros(into.shape), np.zeros(into.shape)
    weights = splits.total(graph.parts[0] if graph.parts.any() else graph.size)
    for i, stage in enumerate(stages):
        kind, r = devices.kinds[stage.kind], len(stage.devices)
        factor = kind.transfer_factor if kind.pays_communication else 0.0
        factor *= 0.5 if devices.route == "direct" else 1.0  # in and out share the time of one of them
        into[:, i] *= factor
        out[:, i] *= factor
        if row_of(graph, kind) is not None:
            compute[:, i] = kind.time_factor * splits.time[:, row_of(graph, kind), i]
        if r > 1 and kind.bandwidth is not None:
            link = kind.bandwidth / slow[i, i]
            delay = devices.link_latency * slow[i, i]
            sync[:, i] = exchange_of(devices, weights[:, i], r, link, delay, schedule, microbatches)
        mean = combined(devices.communication, compute[:, i], into[:, i], out[:, i]) / r
        added = devices.synchronisation == "added"
        load[:, i] = mean + sync[:, i] if added else np.maximum(mean, sync[:, i])
    return load, compute, into, out, sync


def memory_of_stages(
    splits: Splits, stages: list[Stage], schedule: str | None, microbatches: int | None, zero: int = 0
) -> Floats:
    """Shape (splits, stages): what each device of a stage holds; r devices divide what `zero` says."""
    devices = np.array([len(stage.devices) for stage in stages], dtype=np.float64)
    gradients = splits.parts[1] / (devices if zero >= 2 else 1.0)
    optimizer = splits.parts[2] / (devices if zero >= 1 else 1.0)
    if schedule is None:
        rest = splits.parts[0] + splits.parts[3] + splits.parts[4]
        return np.asarray(splits.size + gradients + optimizer + rest)
    memory = splits.size + gradients + optimizer + splits.workspace
    for i, stage in enumerate(stages):
        r, from_here = len(stage.devices), sum(len(later.devices) for later in stages[i:])
        batch = math.inf if microbatches is None else math.ceil(microbatches / r)
        pipelined = math.ceil(from_here / r)
        samples = {"inference": 1.0, "gpipe": batch, "1f1b": min(pipelined, batch), "1f1b_async": pipelined}
        versions = pipelined if schedule == "1f1b_async" else 1
        memory[:, i] += versions * splits.parts[0][:, i] + samples[schedule] * splits.parts[3][:, i]
    return np.asarray(memory)


def row_of(graph: Graph, kind: DeviceKind) -> int | None:
    """The row of the graph's times that a kind takes; None if it has none."""
    name = kind.times or kind.name
    return graph.kinds.index(name) if name in graph.kinds else None


def objective_of(load: Floats, objective: str, microbatches: int | None) -> Floats:
    """Shape (splits,): the largest load, or the time of a batch that fills and drains the pipeline."""
    largest = load.max(axis=1)
    if objective == "throughput":
        return np.asarray(largest)
    assert microbatches is not None
    return np.asarray(load.sum(axis=1) + (microbatches - 1) * largest)
