"""What a graph is contracted for: measure, split, and what they ask of stages.

Without replicas, levels, schedules and limits, nodes that cost nothing may join their neighbour without loss.
With them it matters what such nodes weigh, where they are pinned, and whether a stage without work counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.problem.arrays import Bools, Floats, Ints, rows_of
from partitioner.problem.measure import Measure
from partitioner.problem.pipeline import Pipeline, PipelineLimits, limits_of, pipeline_of, sums
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.in_flight import samples_in_flight as stash
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.resolved_constraints import Demands
from partitioner.workload.transfers import Transfers


@dataclass(frozen=True, eq=False)
class Goal:
    """The measure, the split and the options that a graph is contracted for.

    Parameters
    ----------
    measure, split
        The definition of a solution's value, and the shape of the split as in :func:`partitioner.solve`.
    classes
        Shape (N,) each: nodes to keep together in addition to the colour classes: layers
        (:func:`partitioner.problem.layers.whole_layers`) or by constraints
        (:func:`partitioner.problem.fit.companions`).
    contiguous_cpus
        Whether a convex split must be contiguous also on kinds that do not pay for transfers.
    contiguous_backward
        Whether the backward part of a convex split must be contiguous too.
    subgraphs
        For latency: how many subgraphs of each pass an accelerator may hold.
    regime, demands
        Replicas, schedule and limits, and the constraints by node; no demands if stages of one device each on
        equal links are asked for, without limits.
    transfers
        The model of transfer times, for methods that place operators one by one; None for others.
    sequence
        Nodes in the order in which the stages of a chain must hold them; empty if there is none.
    apart
        Whether groups that cost nothing are not merged: for values that depend on more than loads, such as
        the number of stages.
    alternatives
        Whether nodes are to be run by one of their alternatives; nothing that costs nothing is merged then.
    piper
        Whether costs are those of Piper's model.
    """

    measure: Measure = Measure.LARGEST_LOAD
    split: str = "chain"
    classes: tuple[Ints, ...] = ()
    contiguous_cpus: bool = True
    contiguous_backward: bool = False
    subgraphs: int = 1
    regime: Regime = field(default_factory=Regime)
    demands: Demands | None = None
    transfers: Transfers | None = None
    sequence: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    apart: bool = False
    alternatives: bool = False
    piper: bool = False

    @property
    def extended(self) -> bool:
        """Whether replicas, levels, schedules or limits are asked for."""
        return self.demands is not None

    @property
    def rigid(self) -> bool:
        """Whether a stage counts for the limits even if it takes no time."""
        return self.extended and (limits_of(self.regime).rigid or self.regime.has_virtual_stages)

    def needs_all(self, devices: Devices) -> bool:
        """Whether more devices than supernodes can be useful, or it matters which devices are used."""
        shared = self.regime.replicas > 1 or self.regime.constraints.use_all_devices
        return self.extended and (shared or bool(devices.levels or devices.groups))

    def counted(self, graph: Graph, devices: Devices, group: Ints, groups: int) -> Bools:
        """Return which groups need memory, so that merging them may lose an optimum; shape (groups,).

        They are none where every device has room for all nodes and replicas exchange weights in no time.
        """
        if not self.extended or (self.is_roomy(graph, devices) and self._weightless(devices)):
            return np.zeros(groups, dtype=bool)
        heavy = graph.size + graph.parts.sum(axis=0) > 0
        return np.bincount(group, heavy, groups) > 0

    def fixed(self, group: Ints, groups: int) -> Bools:
        """Return which groups are pinned to a device and must not be merged, shape (groups,)."""
        if self.demands is None:
            return np.zeros(groups, dtype=bool)
        return np.bincount(group, self.demands.device >= 0, groups) > 0

    def _weightless(self, devices: Devices) -> bool:
        """Whether it takes replicas no time to exchange weights."""
        return self.regime.replicas == 1 or all(kind.bandwidth is None for kind in devices.kinds)

    def is_roomy(self, graph: Graph, devices: Devices) -> bool:
        """Whether every device has memory for all nodes at once, however many samples it holds."""
        limits = [kind.memory_limit for kind in devices.kinds if kind.count]
        held = self._most_held(graph, devices) if self.extended else 0.0
        return bool(graph.size.sum() + held <= min(limits))

    def _most_held(self, graph: Graph, devices: Devices) -> float:
        """Return the most memory that depends on the schedule, for a device that holds all nodes.

        It is infinity where devices have several stages, of which no device can hold all nodes.
        """
        divided = float(self._divided(graph).sum())
        if self.regime.schedule is None:
            return divided
        if self.regime.has_virtual_stages:
            return np.inf
        behind = sum(kind.count for kind in devices.kinds)
        held, versions = stash(self.regime.schedule, behind, 1, self.regime.microbatches)
        parameters, _, _, activations, workspace = graph.parts
        kept = versions * parameters.sum() + held * activations.sum()
        return float(kept + workspace.max(initial=0.0)) + divided

    def _divided(self, graph: Graph) -> Floats:
        """Return the memory of each node that the copies of its stage divide; empty without such memory."""
        copied = self.regime.replicas > 1 and graph.divided.any()
        return graph.divided if copied else np.zeros(0)

    def torn(self, member: Ints, count: int) -> Bools:
        """Return which supernodes are pinned to more devices than a stage may have, shape (count,)."""
        if self.demands is None:
            return np.zeros(count, dtype=bool)
        fixed = self.demands.device >= 0
        pairs = np.unique(np.stack((member[fixed], self.demands.device[fixed])), axis=1)
        return np.bincount(pairs[0], minlength=count) > self.regime.replicas

    def pipeline(self, graph: Graph, devices: Devices, member: Ints, count: int) -> Pipeline | None:
        """Return the data of the extended model for `count` supernodes; None if it is not asked for.

        `member` has shape (N,).
        """
        if self.demands is None:
            return None
        found = pipeline_of(graph, devices, self.regime, self.demands, member, count, self.piper)
        divided = self._divided(graph)
        return replace(found, divided=sums(member, divided, count)) if len(divided) else found

    def lightened(
        self, graph: Graph, devices: Devices, member: Ints, count: int, heavy: Bools
    ) -> Pipeline | None:
        """Return the same without limits and pins, and with weights and memory of `heavy` nodes only."""
        light = replace(graph, parts=np.where(heavy, graph.parts, 0.0), size=np.where(heavy, graph.size, 0.0))
        pipeline = self.pipeline(light, devices, member, count)
        weights = sums(member, np.where(heavy, graph.weights, 0.0), count)
        none = np.zeros(0, dtype=np.int64)
        return pipeline and replace(
            pipeline, weights=weights, pinned=rows_of(none, none, count), limits=PipelineLimits()
        )


CHAIN = Goal()
