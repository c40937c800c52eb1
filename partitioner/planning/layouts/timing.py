"""The time of a batch under a layout: a bound in closed form, and the simulation of its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.device_time import BANDWIDTH_REACHED
from partitioner.evaluation.solution import Solution
from partitioner.planning.layouts.costs import PARAMETERS_DIVIDED, LayerCosts, ModelCosts, summed
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.schedule.simulation import simulate
from partitioner.schedule.timeline import Timeline
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Bools, Floats, Graph, Ints
from partitioner.workload.in_flight import stash
from partitioner.workload.layer import ACCELERATOR, Layer
from partitioner.workload.virtual_stages.in_flight import samples_by_chunk
from partitioner.workload.virtual_stages.schedules import VIRTUAL

BACKWARD = "/backward"
GRADIENTS_DIVIDED = 2  # the ZeRO number from which replicas divide the gradients


@dataclass(frozen=True, eq=False)
class LayoutRun:
    """A layout with the layers of its stages, and what a batch takes.

    Parameters
    ----------
    costs
        The costs of the model's layers.
    layout
        The layout.
    global_batch
        Sequences of a batch.
    borders
        The first layer of every stage, and the number of layers.
    """

    costs: ModelCosts
    layout: ClusterLayout
    global_batch: int
    borders: tuple[int, ...]

    @property
    def microbatches(self) -> int:
        """The microbatches that a pipeline runs of a batch."""
        return self.layout.microbatches(self.global_batch)

    @cached_property
    def stages(self) -> LayerCosts:
        """The costs of the stages, each of shape (stages,)."""
        return summed(self.costs.layers(self.layout), self.borders)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The numbers of blocks of the stages."""
        first, count = self.costs.first_block, len(self.costs.decoder.blocks)
        at = np.clip(np.array(self.borders) - first, 0, count)
        return tuple(np.diff(at).tolist())

    @cached_property
    def device(self) -> Ints:
        """The device of the pipeline, from 0, that has each stage, shape (stages,)."""
        p, v = self.layout.pipeline, self.layout.virtual_stages
        ranks = VIRTUAL[self.layout.schedule].ranks(p, v) if self.layout.schedule in VIRTUAL else range(p)
        return np.array(ranks, dtype=np.int64)

    @cached_property
    def transfers(self) -> Floats:
        """Milliseconds of a tensor from each stage to the next one, shape (stages - 1,)."""
        return np.asarray(self.sent(self.stages.output[:-1]) * (self.device[1:] != self.device[:-1]))

    def sent(self, nbytes: Floats) -> Floats:
        """Return the milliseconds in which tensors of some bytes are sent between neighbouring devices."""
        cluster, apart = self.costs.cluster, self.layout.apart
        return np.asarray(nbytes / cluster.bandwidth(apart) * MS_PER_SECOND + cluster.delay(apart))

    @cached_property
    def exchange(self) -> Floats:
        """Milliseconds in which each device exchanges gradients with its replicas, shape (p,).

        A ring of all replicas and of the devices that divide sequences: an all-reduce, or, if they divide
        states, a reduce-scatter of the gradients and an all-gather of the parameters, which send as much.
        Experts that devices divide have a ring of their own, of the replicas that hold the same ones. With
        ZeRO 3 there is none: the passes gather parameters and sum up gradients.
        """
        gradients, routed = (self._by_device(each) for each in (self.stages.gradients, self.stages.routed))
        return self.ring(gradients, routed, routed > 0)

    def ring(self, gradients: Floats, routed: Floats, waits: Bools | float) -> Floats:
        """Return the milliseconds in which replicas exchange gradients of which each holds some bytes.

        Parameters
        ----------
        gradients, routed
            The bytes that a replica holds, and those of them that belong to experts that devices divide.
        waits
            How many messages a step of the ring of experts sends: 1 where there are experts, else 0.
        """
        if self.layout.zero == PARAMETERS_DIVIDED:
            return np.zeros_like(gradients)
        replicas, alike = self._replicas
        rest, experts = self._undivided(gradients, routed)
        return self._ring(rest, replicas, 1.0) + self._ring(experts, alike, waits)

    def _ring(self, nbytes: Floats, replicas: int, waits: Bools | float) -> Floats:
        layout, cluster = self.layout, self.costs.cluster
        span = layout.tensor * layout.data * layout.context
        sent = 2 * (replicas - 1) / replicas * nbytes / cluster.bandwidth(span) * MS_PER_SECOND
        return np.asarray(sent + 2 * (replicas - 1) * cluster.delay(span) * waits)

    @property
    def _replicas(self) -> tuple[int, int]:
        """How many devices hold the same weights, and how many the same experts."""
        replicas = self.layout.data * self.layout.context
        return replicas, max(1, replicas // self.layout.expert)

    def _undivided(self, gradients: Floats, routed: Floats) -> tuple[Floats, Floats]:
        """Return the gradients before replicas divide them: of all others, of experts that devices divide."""
        replicas, alike = self._replicas if self.layout.zero >= GRADIENTS_DIVIDED else (1, 1)
        return (gradients - routed) * replicas, routed * alike

    @cached_property
    def step(self) -> Floats:
        """Milliseconds of the optimizer's step on each device, shape (p,).

        It reads the gradients, reads and writes its states, and writes the parameters; replicas that divide
        the states divide this work.
        """
        return self._by_device(self.update(self.stages))

    def update(self, held: LayerCosts) -> Floats:
        """Return the milliseconds of the optimizer's step on the states of layers or stages."""
        nbytes = held.updated + 2 * held.optimizer
        return np.asarray(nbytes / (BANDWIDTH_REACHED * self.costs.cluster.device.bandwidth) * MS_PER_SECOND)

    @cached_property
    def memory(self) -> Floats:
        """Bytes that each device of the pipeline needs, shape (p,)."""
        return np.asarray(sum(self.memory_parts.values()))

    @property
    def memory_parts(self) -> dict[str, Floats]:
        """What each device of the pipeline needs memory for, in bytes, each of shape (p,)."""
        work = np.zeros(self.layout.pipeline)
        np.maximum.at(work, self.device, self.stages.workspace)
        states = ("parameters", "gradients", "optimizer")
        held = {name: self._by_device(getattr(self.stages, name)) for name in states}
        return held | {"activations": self._activations(), "workspace": work}

    @property
    def time_parts(self) -> dict[str, Floats]:
        """What each device of the pipeline does during a batch, in milliseconds, each of shape (p,).

        `collectives` are the exchanges inside of layers that processing does not hide, `waiting` lasts until
        the slowest device has ended.
        """
        total = self.simulated[0]
        passes = self._by_device(self.stages.forward + self.stages.backward)
        collectives = self._by_device(self.stages.collectives)
        known = {
            "processing": self.microbatches * (passes - collectives),
            "collectives": self.microbatches * collectives,
            "transfers": self.microbatches * (self.loads - passes),
            "exchange of gradients": self.exchange,
            "optimizer": self.step,
        }
        return known | {"waiting": np.maximum(0.0, total - np.asarray(sum(known.values())))}

    @property
    def fits(self) -> bool:
        """Whether every device has the memory that it needs."""
        return bool((self.memory <= self.costs.cluster.memory).all())

    @cached_property
    def held(self) -> list[Floats]:
        """The microbatches whose activations a device holds, by moment and stage on it.

        One array of shape (moments, virtual stages) for each device; the moments are those in which it may
        hold the most.
        """
        p, v, schedule = self.layout.pipeline, self.layout.virtual_stages, self.layout.schedule
        if schedule not in VIRTUAL:
            return [np.array([[stash(schedule, i, p, self.microbatches).activations]]) for i in range(p)]
        return [np.array(samples_by_chunk(schedule, i, p, v, self.microbatches), float) for i in range(p)]

    def _activations(self) -> Floats:
        kept = self.stages.activations
        return np.array(
            [(held @ kept[self.device == rank]).max() for rank, held in enumerate(self.held)],
            dtype=np.float64,
        )

    @cached_property
    def loads(self) -> Floats:
        """Milliseconds of a microbatch on each device, tensors that it receives included, shape (p,)."""
        received = np.zeros(len(self.device))
        received[1:] += self.transfers
        received[:-1] += self.transfers
        return self._by_device(self.stages.forward + self.stages.backward + received)

    def _by_device(self, values: Floats) -> Floats:
        return np.bincount(self.device, weights=values, minlength=self.layout.pipeline).astype(np.float64)

    @cached_property
    def bound(self) -> float:
        """Milliseconds that a batch takes at least.

        A device begins when the first microbatch has passed the stages before its first one, runs all
        microbatches, and then exchanges gradients.
        """
        first = np.array([np.flatnonzero(self.device == rank)[0] for rank in range(self.layout.pipeline)])
        sent = np.concatenate([[0.0], np.cumsum(self.stages.forward[:-1] + self.transfers) - self.transfers])
        arrival = sent[first]  # when the tensor is there; to fetch it is a part of the load
        ends = arrival + self.microbatches * self.loads + self.exchange
        return float(ends.max() + self.step.max())

    @cached_property
    def passes(self) -> tuple[Floats, float]:
        """When the last pass of each device ends, in milliseconds, and the mean share of time it waits."""
        if self.layout.pipeline == 1:
            return self.microbatches * self.loads, 0.0
        return self._pipeline()

    @cached_property
    def simulated(self) -> tuple[float, Floats, float]:
        """Milliseconds of a batch, of each device's passes until its end, and the share of idle time."""
        ends, bubble = self.passes
        return float((ends + self.exchange).max() + self.step.max()), ends, bubble

    @property
    def seconds(self) -> float:
        """Seconds of a batch, simulated."""
        return self.simulated[0] / MS_PER_SECOND

    @property
    def exposed(self) -> float:
        """The share of the batch in which gradients are exchanged and nothing is processed."""
        total, ends, _ = self.simulated
        return float(((ends + self.exchange).max() - ends.max()) / total)

    def _pipeline(self) -> tuple[Floats, float]:
        """Return when the last pass of each device ends, and the mean share of time in which devices wait."""
        timeline = self.timeline
        rows = [timeline.devices.index(name) for name in _names(self.layout.pipeline)]
        starts = timeline.table.start
        ends = np.array([timeline.end[starts[i] : starts[i + 1]].max() for i in rows])
        return ends, float(1 - self.microbatches * self.loads.sum() / (len(ends) * ends.max()))

    @property
    def timeline(self) -> Timeline:
        """The simulated schedule of one pipeline, without exchange and optimizer."""
        stages, names = self.stages, _names(self.layout.pipeline)
        sent = [*self.transfers.tolist(), 0.0]
        layers = [
            Layer(
                str(i), forward=float(stages.forward[i]), backward=float(stages.backward[i]), output=sent[i]
            )
            for i in range(self.layout.stages)
        ]
        graph = Graph.chain(
            layers, bandwidth=MS_PER_SECOND, training=True
        )  # so that a byte takes a millisecond
        stage = [int(str(node).removesuffix(BACKWARD)) for node in graph.ids]
        order = tuple(names[rank] for rank in self.device)
        placement = {node: order[i] for node, i in zip(graph.ids, stage, strict=True)}
        stage_of = dict(zip(graph.ids, stage, strict=True)) if self.layout.virtual_stages > 1 else None
        solution = Solution(placement, order=order, stage_of=stage_of)
        devices = Devices((DeviceKind(ACCELERATOR, self.layout.pipeline),))
        return simulate(graph, devices, solution, self.layout.schedule, self.microbatches, links="direct")


def _names(count: int) -> tuple[str, ...]:
    """Return the names of the devices of a pipeline."""
    return Devices((DeviceKind(ACCELERATOR, count),)).names
