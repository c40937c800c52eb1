"""The data of a contracted graph that replicas, levels, schedules and limits need."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.precedence import distinct
from partitioner.workload.constraints import Range
from partitioner.workload.devices import Devices
from partitioner.workload.exchange import FOR_EVERY_SAMPLE, exchanges_per_sample, is_once_a_batch
from partitioner.workload.graph import Graph
from partitioner.workload.groups import link_slowdowns
from partitioner.workload.in_flight import samples_in_flight as stash
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.resolved_constraints import Demands, neighbour_edges

UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class PipelineLimits:
    """The user's limits on each stage, and on all stages together.

    Parameters
    ----------
    nodes, layers
        Least and most nodes and distinct layers of a stage.
    stages
        The required number of stages, 0 for any number.
    all_devices, neighbours
        Whether every device must be used. Whether only neighbouring stages may exchange tensors.
    equal
        Whether all stages must have the same number of devices.
    """

    nodes: tuple[int, int] = (1, UNLIMITED)
    layers: tuple[int, int] = (0, UNLIMITED)
    stages: int = 0
    all_devices: bool = False
    neighbours: bool = False
    equal: bool = False

    @property
    def rigid(self) -> bool:
        """Whether a stage counts for the limits even if it takes no time."""
        ranges = self.nodes, self.layers
        return ranges != ((1, UNLIMITED), (0, UNLIMITED)) or self.stages > 0 or self.all_devices


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The extended model of a pipeline (paper, Appendices H.2 and H.3) over `n` supernodes and K kinds.

    Parameters
    ----------
    weights
        Shape (n,): size of the weights that replicas exchange.
    parameters, activations, workspace
        Shape (n,): memory for one version of the weights, for one sample, and while the supernode runs. With
        a schedule `Problem.size` is the memory that does not depend on it.
    nodes
        Shape (n,): how many nodes a supernode has.
    layers
        For each supernode its distinct layers.
    pinned
        For each supernode the indices, among the devices of its kind, of those it is pinned to.
    adjacent
        For each supernode those that share an edge with it, in either direction.
    bandwidth
        Shape (K,): the bandwidth at which sending (r - 1) / r of the weights takes the mean time for a sample
        of the exchange among r replicas; infinity if that takes no time.
    message
        Shape (K,): the weights that are sent in the latency of a message: an exchange of W takes as long as
        one of W + r `message` without latency, if W is above 0.
    added
        Whether the exchange follows the processing; else both overlap.
    closing
        Whether it takes place once a batch, after the last pass of a device; else for every sample.
    group
        Shape (L, K): devices of each kind in a group of each level, the smallest groups first.
    slowdown
        Shape (L,): factor for the cost of a transfer out of such a group.
    held, link
        Shapes (G, K) and (G, G): devices of each kind in each explicit group, which are numbered group by
        group, and the factor for the cost of a transfer between devices of two groups; empty without groups.
    replicas, schedule, microbatches, virtual_stages
        See :class:`partitioner.workload.pipeline_settings.Regime`.
    limits
        The user's limits.
    fewest
        The least number of devices of a stage.
    divided
        Shape (n,): memory that the copies of a stage divide, in addition to `Problem.size`; empty if none.
    spans
        Shape (P, K - P): the last P kinds have no devices of their own, a stage on one has these numbers of
        devices of the other kinds (:mod:`partitioner.methods.dp.pipeline_links`); empty if all have devices.
    """

    weights: Floats
    parameters: Floats
    activations: Floats
    workspace: Floats
    nodes: Ints
    layers: Rows
    pinned: Rows
    adjacent: Rows
    bandwidth: Floats
    message: Floats
    added: bool
    closing: bool
    group: Ints
    slowdown: Floats
    replicas: int = 1
    schedule: str | None = None
    microbatches: int | None = None
    virtual_stages: int | None = None
    limits: PipelineLimits = field(default_factory=PipelineLimits)
    fewest: int = 1
    divided: Floats = field(default_factory=lambda: np.zeros(0))
    held: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    link: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    spans: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    @property
    def behind_matters(self) -> bool:
        """Whether the memory that a stage needs depends on the devices behind it."""
        if self.schedule is None:
            return False
        alone, last = (stash(self.schedule, behind, 1, self.microbatches) for behind in (0, 1))
        return alone != last

    @property
    def unknown_links(self) -> tuple[Floats, Floats]:
        """The least and the largest factor of a link from each group to another device, shape (G,) each.

        A link inside a group counts only if the group has several devices.
        """
        link, held = self.link, self.held.sum(axis=1)
        real = np.where(np.eye(len(link), dtype=bool), held >= 2, True) & (held > 0)
        least = np.where(real, link, np.inf).min(axis=1)
        most = np.where(real, link, 0.0).max(axis=1)
        alone = ~real.any(axis=1)
        return np.where(alone, 1.0, least), np.where(alone, 1.0, most)

    def memory_of(self, size: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the memory of supernodes that is counted once, by versions and by samples, shape (n,) each.

        Memory that r copies divide is counted as one r-th version. Parameters are then counted with what does
        not depend on the schedule, or with the activations where every sample in flight has its own version
        of them. `size` has shape (n,): memory that does not depend on the schedule.
        """
        if self.schedule is None:
            none = np.zeros(len(size))
            return size, self.divided if len(self.divided) else none, none
        if not len(self.divided):
            return size, self.parameters, self.activations
        if self.schedule in FOR_EVERY_SAMPLE:
            return size, self.divided, self.activations + self.parameters
        return size + self.parameters, self.divided, self.activations

    def turned(self) -> Pipeline:
        """Return the same data if supernode v becomes n - 1 - v."""
        return self.taken(np.arange(len(self.nodes))[::-1])

    def taken(self, order: Ints) -> Pipeline:
        """Return the same data for some supernodes: number i for ``order[i]``."""
        number = np.full(len(self.nodes), -1)
        number[order] = np.arange(len(order))
        ends = number[np.stack((self.adjacent.owners(), self.adjacent.items), axis=1)]
        return replace(
            self,
            weights=self.weights[order],
            divided=self.divided[order] if len(self.divided) else self.divided,
            parameters=self.parameters[order],
            activations=self.activations[order],
            workspace=self.workspace[order],
            nodes=self.nodes[order],
            layers=self.layers.taken(order),
            pinned=self.pinned.taken(order),
            adjacent=_adjacent(ends[(ends >= 0).all(axis=1)], len(order)),
        )

    def sharing(self, count: Ints) -> Ints:
        """Return how many devices may share a stage by kind, of kinds with these numbers; both shape (K,)."""
        if not len(self.spans):
            return count
        real = count[: self.spans.shape[1]]
        together = np.eye(len(real), dtype=bool) | ((self.spans.T @ self.spans) > 0)
        return np.concatenate((together @ real, self.spans.sum(axis=1)))

    def merged(self, block: Ints, count: int) -> Pipeline:
        """Return the same data for `count` blocks of supernodes; `block` has shape (n,)."""
        largest = np.zeros(count)
        np.maximum.at(largest, block, self.workspace)
        return replace(
            self,
            weights=sums(block, self.weights, count),
            parameters=sums(block, self.parameters, count),
            activations=sums(block, self.activations, count),
            workspace=largest,
            nodes=np.bincount(block, self.nodes, count).astype(np.int64),
            divided=sums(block, self.divided, count) if len(self.divided) else self.divided,
            layers=_rows(block[self.layers.owners()], self.layers.items, count),
            pinned=_rows(block[self.pinned.owners()], self.pinned.items, count),
            adjacent=_adjacent(block[np.stack((self.adjacent.owners(), self.adjacent.items), axis=1)], count),
        )


def pipeline_of(
    graph: Graph,
    devices: Devices,
    regime: Regime,
    demands: Demands,
    member: Ints,
    count: int,
    piper: bool = False,
) -> Pipeline:
    """Return the data of a graph's `count` supernodes; without what copies divide.

    Parameters
    ----------
    graph, devices
        The workload.
    regime, demands
        The settings of the pipeline, and the constraints by node.
    member
        Shape (N,): the supernode of every node.
    piper
        Whether costs are those of Piper's model.
    """
    parameters, _, _, activations, workspace = graph.parts
    largest = np.zeros(count)
    np.maximum.at(largest, member, workspace)
    index = np.concatenate([np.arange(kind.count) for kind in devices.kinds])
    fixed = np.flatnonzero(demands.device >= 0)
    kinds = devices.kinds
    return Pipeline(
        weights=sums(member, graph.weights, count),
        parameters=sums(member, parameters, count),
        activations=sums(member, activations, count),
        workspace=largest,
        nodes=np.bincount(member, minlength=count),
        layers=_rows(member[graph.layer >= 0], graph.layer[graph.layer >= 0], count),
        pinned=_rows(member[fixed], index[demands.device[fixed]], count),
        adjacent=_adjacent(member[neighbour_edges(graph, regime.constraints)], count),
        bandwidth=_bandwidths(devices, regime, piper),
        message=_messages(devices),
        added=devices.synchronisation == "added",
        closing=is_once_a_batch(devices.exchange, regime.schedule, regime.microbatches),
        group=np.array(
            [[level.size(kind.name) for kind in kinds] for level in devices.levels], dtype=np.int64
        ).reshape(len(devices.levels), len(kinds)),
        slowdown=np.array([level.slowdown for level in devices.levels]),
        replicas=regime.replicas,
        schedule=regime.schedule,
        microbatches=regime.microbatches,
        virtual_stages=regime.virtual_stages,
        limits=limits_of(regime),
        held=np.array(
            [[group.size(kind.name) for kind in kinds] for group in devices.groups], dtype=np.int64
        ).reshape(len(devices.groups), len(kinds)),
        link=link_slowdowns(devices.groups, devices.links),
    )


def _bandwidths(devices: Devices, regime: Regime, piper: bool) -> Floats:
    """Return the bandwidths of :class:`Pipeline`, shape (K,); Piper's model counts exchanges itself."""
    given = np.array([np.inf if kind.bandwidth is None else kind.bandwidth for kind in devices.kinds])
    often = exchanges_per_sample(devices.exchange, regime.schedule, regime.microbatches)
    return given if piper else given / often


def _messages(devices: Devices) -> Floats:
    """Return what is sent in the time of a message's latency, shape (K,); 0 without an exchange."""
    given = np.array([0.0 if kind.bandwidth is None else kind.bandwidth for kind in devices.kinds])
    return given * devices.link_latency


def sums(member: Ints, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each supernode's nodes, shape (count,)."""
    return np.bincount(member, values, count).astype(np.float64)


def limits_of(regime: Regime) -> PipelineLimits:
    """Return the limits of a pipeline that the user's constraints set."""
    demanded = regime.constraints
    return PipelineLimits(
        nodes=_range(demanded.nodes_per_stage, 1),
        layers=_range(demanded.layers_per_stage, 0),
        stages=demanded.stages or 0,
        all_devices=demanded.use_all_devices,
        neighbours=bool(demanded.neighbours_only),
        equal=demanded.equal_replicas,
    )


def _range(given: Range, least: int) -> tuple[int, int]:
    low, high = given
    return least if low is None else low, UNLIMITED if high is None else high


def _adjacent(ends: Ints, count: int) -> Rows:
    both = np.concatenate((ends, ends[:, ::-1]))
    both = both[both[:, 0] != both[:, 1]]
    return _rows(both[:, 0], both[:, 1], count)


def _rows(owner: Ints, item: Ints, count: int) -> Rows:
    """Return the distinct pairs as rows."""
    pairs = distinct(np.stack((owner, item), axis=1))
    return rows_of(pairs[:, 0], pairs[:, 1], count)
