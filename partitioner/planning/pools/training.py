"""Pipelines of unlike GPUs that train a model side by side: the time of a batch, and its bound."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from partitioner.base.units import MS_PER_SECOND
from partitioner.formats.llm.decoder import Decoder
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.planning.layouts.costs import LayerCosts, ModelCosts
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.layouts.timing import LayoutRun
from partitioner.planning.pools.pool import PooledKind, PoolPart
from partitioner.workload.graph import Floats

STATES = ("parameters", "gradients", "optimizer")


@dataclass(frozen=True)
class PoolLayout:
    """How a pool trains: parts whose pipelines are replicas of the model and share the batch by their speed.

    Parameters
    ----------
    parts
        The copies of a pipeline in every part.
    microbatch
        Sequences of a microbatch.
    recompute
        What layers compute again in the backward pass.
    zero
        1 if all replicas divide the optimizer's state among them, else 0.
    """

    parts: tuple[PoolPart, ...]
    microbatch: int = 1
    recompute: str = "none"
    zero: int = 0

    @property
    def replicas(self) -> int:
        """How many pipelines there are."""
        return sum(part.copies for part in self.parts)

    @property
    def name(self) -> str:
        """A short name, such as ``"1 x (A100-80 TP4 PP1) + 2 x (RTX 4090 TP2 PP1) MB2 Z1 full"``."""
        words = [" + ".join(part.name for part in self.parts), f"MB{self.microbatch}"]
        words += ["Z1"] * (self.zero > 0) + [self.recompute] * (self.recompute != "none")
        return " ".join(words)

    def on(self, part: PoolPart, kind: int) -> ClusterLayout:
        """Return the layout of a part's pipelines if all of their stages were on one of its kinds."""
        return ClusterLayout(
            part.tensor[kind], part.stages, self.replicas, self.microbatch, recompute=self.recompute,
            zero=self.zero,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PoolCosts:
    """The costs of a model on every kind of a pool."""

    decoder: Decoder
    sequence: int
    dtype: str
    network: float
    latency: float
    options: LayoutOptions = field(default_factory=LayoutOptions)
    _known: dict[str, ModelCosts] = field(default_factory=dict)

    def of(self, kind: PooledKind) -> ModelCosts:
        """Return the costs on a kind, whose servers are a cluster."""
        if kind.name not in self._known:
            device = kind.device
            peer = device.peer or device.host or self.network
            cluster = Cluster(kind.count, device, kind.node, peer, self.network, self.latency, kind.memory)
            self._known[kind.name] = ModelCosts(
                self.decoder, cluster, self.sequence, self.dtype, self.options
            )
        return self._known[kind.name]

    def layers(self, layout: PoolLayout, part: PoolPart, kind: int) -> LayerCosts:
        """Return the costs of the layers on a GPU of one of the kinds of a part."""
        return self.of(part.kinds[kind]).layers(layout.on(part, kind))


@dataclass(frozen=True, eq=False)
class PartRun(LayoutRun):
    """A pipeline of a part with its layers dealt to stages, and the microbatches that it runs of a batch.

    Parameters
    ----------
    part
        The part.
    kinds
        The number of the kind of each stage, among those of the part.
    alike
        For each of these kinds a run in which all stages are on it.
    share
        The microbatches of a batch that this pipeline runs.
    """

    part: PoolPart
    kinds: tuple[int, ...]
    alike: tuple[LayoutRun, ...]
    share: int

    @property
    def microbatches(self) -> int:
        """The microbatches that the pipeline runs of a batch."""
        return self.share

    @property
    def tensor(self) -> tuple[int, ...]:
        """The GPUs of each stage."""
        return tuple(self.part.tensor[k] for k in self.kinds)

    @cached_property
    def stages(self) -> LayerCosts:
        """The costs of the stages, each of shape (stages,)."""
        each = [run.stages for run in self.alike]
        return LayerCosts(
            *(
                np.array([getattr(each[k], name)[i] for i, k in enumerate(self.kinds)])
                for name in LayerCosts._fields
            )
        )

    @cached_property
    def transfers(self) -> Floats:
        """Milliseconds of a tensor from each stage to the next one, shape (stages - 1,).

        The stage with fewer GPUs sends or receives more bytes with each of them, and decides.
        """
        found = []
        for i, (here, there) in enumerate(zip(self.kinds, self.kinds[1:], strict=False)):
            nbytes = max(float(self.alike[k].stages.output[i]) for k in (here, there))
            cluster = self.alike[here].costs.cluster
            span = cluster.node + 1 if here != there else self.tensor[i] * self.part.copies + 1
            found.append(nbytes / cluster.bandwidth(span) * MS_PER_SECOND + cluster.delay(span))
        return np.array(found, dtype=np.float64)

    @cached_property
    def step(self) -> Floats:
        """Milliseconds of the optimizer's step on each device, shape (stages,)."""
        each = [run.update(run.stages) for run in self.alike]
        return np.array([each[k][i] for i, k in enumerate(self.kinds)])

    @property
    def full(self) -> float:
        """The largest part of a GPU's usable memory that is taken."""
        limits = [self.part.kinds[k].memory for k in self.kinds]
        return float((self.memory / np.array(limits)).max())

    @property
    def fits(self) -> bool:
        """Whether every GPU has the memory that it needs."""
        return self.full <= 1

    @property
    def used(self) -> dict[str, int]:
        """How many GPUs of each kind all copies take."""
        counts = dict.fromkeys((kind.name for kind in self.part.kinds), 0)
        for k in self.kinds:
            counts[self.part.kinds[k].name] += self.part.copies * self.part.tensor[k]
        return {name: count for name, count in counts.items() if count}

    def rough(self, share: int) -> float:
        """Return the milliseconds until the slowest stage has run some microbatches, in closed form."""
        before = np.cumsum(self.loads) - self.loads
        return float((before + share * self.loads).max()) if share else 0.0


@dataclass(frozen=True, eq=False)
class PoolRun:
    """A layout with the pipelines of all parts, and what a batch takes."""

    costs: PoolCosts
    layout: PoolLayout
    parts: tuple[PartRun, ...]

    @cached_property
    def _rings(self) -> list[Floats]:
        """Milliseconds in which the gradients of every layer are exchanged, for each part."""
        nbytes = np.zeros(len(self.parts[0].costs.layer_names))
        for run in self.parts:
            kind = np.repeat(run.kinds, np.diff(run.borders))
            each = np.array([alike.costs.layers(alike.layout).gradients for alike in run.alike])
            nbytes = np.maximum(nbytes, each[kind, np.arange(len(kind))])
        replicas = self.layout.replicas
        found = []
        for run in self.parts:
            kind = np.repeat(run.kinds, np.diff(run.borders))
            links = [
                link(run.alike[k].costs.cluster, len(self.parts) > 1, run.part.tensor[k] * run.part.copies)
                for k in range(len(run.part.kinds))
            ]
            rate, delay = (np.array([link[i] for link in links])[kind] for i in (0, 1))
            ring = 2 * (replicas - 1) / replicas * nbytes / rate * MS_PER_SECOND
            waits = 2 * (replicas - 1) * delay / np.diff(run.borders).repeat(np.diff(run.borders))
            found.append(ring + waits)
        return found

    @cached_property
    def simulated(self) -> tuple[float, float]:
        """Milliseconds of a batch, and until the last pass of all pipelines ends.

        The gradients of a layer are exchanged when the stages that hold it have ended in all pipelines.
        """
        ready = np.max([np.repeat(run.passes[0], np.diff(run.borders)) for run in self.parts], axis=0)
        last, steps = 0.0, 0.0
        for run, rings in zip(self.parts, self._rings, strict=True):
            starts = np.array(run.borders[:-1])
            ends = np.maximum.reduceat(ready, starts) + np.add.reduceat(rings, starts)
            last, steps = max(last, float(ends.max())), max(steps, float(run.step.max()))
        return last + steps, max(float(run.passes[0].max()) for run in self.parts)

    @property
    def seconds(self) -> float:
        """Seconds of a batch, simulated."""
        return self.simulated[0] / MS_PER_SECOND

    @property
    def full(self) -> float:
        """The largest part of a GPU's usable memory that is taken."""
        return max(run.full for run in self.parts)

    @property
    def shares(self) -> tuple[int, ...]:
        """The sequences of a batch that each pipeline of every part runs."""
        return tuple(run.share * self.layout.microbatch for run in self.parts)


def link(cluster: Cluster, among_kinds: bool, span: int) -> tuple[float, float]:
    """Return the bytes a second between replicas of a stage, and the milliseconds in addition."""
    span = cluster.node + 1 if among_kinds else span
    return cluster.bandwidth(span), cluster.delay(span)


def pipeline_of(
    costs: PoolCosts,
    layout: PoolLayout,
    part: PoolPart,
    kinds: tuple[int, ...],
    borders: tuple[int, ...],
    share: int,
) -> PartRun:
    """Return a pipeline of a part with given stages: the number of each one's kind, and where it begins."""
    alike = tuple(
        LayoutRun(
            costs.of(kind), replace(layout.on(part, k), pipeline=len(kinds)), layout.replicas * share, borders
        )
        for k, kind in enumerate(part.kinds)
    )
    first = alike[0]
    return PartRun(first.costs, first.layout, first.global_batch, borders, part, kinds, alike, share)
