"""Transfers over links that are slower between groups of devices (paper, Appendix H.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.workload.exchange import ring_all_reduce
from partitioner.workload.graph import Bools, Floats, Ints
from partitioner.workload.groups import group_numbers, link_slowdowns


class StageLinks(Protocol):
    """The links between the devices of stages."""

    def slow(self, one: Ints, other: Ints) -> Floats:
        """Return the slowdown between pairs of stages, given by the positions of their first devices."""
        ...


@dataclass(frozen=True, eq=False)
class LinksOfLevels:
    """The groups of equal levels that the stages extend over.

    Parameters
    ----------
    slowdown
        Shape (levels,): slowdown of links between groups of a level, relative to links inside the smallest.
    first, last
        Shape (levels, devices): first and last group of each level among the devices of a stage, stored at
        the stage's first device.
    """

    slowdown: Floats
    first: Ints
    last: Ints

    def slow(self, one: Ints, other: Ints) -> Floats:
        """Return the slowdown between pairs of stages: that of the last level that separates them."""
        found = np.ones(len(one))
        for slowdown, first, last in zip(self.slowdown, self.first, self.last, strict=True):
            low, high = np.minimum(first[one], first[other]), np.maximum(last[one], last[other])
            found[low != high] = slowdown
        return found


@dataclass(frozen=True, eq=False)
class LinksOfGroups:
    """The explicit groups that the stages have devices in.

    Parameters
    ----------
    slowdown
        Shape (groups, groups): the slowdown between a device of one group and one of another.
    member
        Shape (devices, groups): whether a stage has a device in a group, stored at the stage's first device.
    """

    slowdown: Floats
    member: Bools

    def slow(self, one: Ints, other: Ints) -> Floats:
        """Return the slowdown between pairs of stages: the largest between a device of each."""
        found = np.ones(len(one))
        for here, there in np.argwhere(self.slowdown > 1).tolist():
            linked = self.member[one, here] & self.member[other, there]
            found[linked] = np.maximum(found[linked], self.slowdown[here, there])
        return found


def links_of(placed: Placed, replicas: Replicas) -> StageLinks:
    """Return the links between the stages, by the groups of devices that every stage extends over."""
    devices = placed.devices
    index = [found[1] for name in placed.names if (found := devices.kind_of(name)) is not None]
    if devices.groups:
        return _links_of_groups(placed, replicas, index)
    sizes = [[max(1, level.size(kind.name)) for kind in devices.kinds] for level in devices.levels]
    shape = len(devices.levels), len(placed.names)
    group = np.array([np.array(index) // np.array(of_kind)[placed.kind] for of_kind in sizes]).reshape(shape)
    first, last = group.copy(), group.copy()
    np.minimum.at(first.T, replicas.lead, group.T)
    np.maximum.at(last.T, replicas.lead, group.T)
    return LinksOfLevels(np.array([level.slowdown for level in devices.levels]), first, last)


def _links_of_groups(placed: Placed, replicas: Replicas, index: Sequence[int]) -> LinksOfGroups:
    """Return the links between explicit groups; `index` has the number of each device among its kind."""
    devices = placed.devices
    group = [group_numbers(devices.groups, kind.name, kind.count + 1) for kind in devices.kinds]
    member = np.zeros((len(placed.names), len(devices.groups)), dtype=bool)
    for device, (kind, i) in enumerate(zip(placed.kind.tolist(), index, strict=True)):
        member[replicas.lead[device], group[kind][min(i, devices.kinds[kind].count)]] = True
    return LinksOfGroups(link_slowdowns(devices.groups, devices.links), member)


def exchange_times(placed: Placed, replicas: Replicas, links: StageLinks) -> Floats:
    """Return the average time for a sample of the exchange of weights among replicas, shape (devices,).

    The time is 0 for stages on one device and for kinds that need no exchange (paper, Appendix H.2).
    """
    weights, bandwidth, latency = _ring(placed, links)
    sent = weights * (replicas.count - 1) / (replicas.count * bandwidth)
    return np.asarray(sent + (replicas.count - 1) * latency)


def batch_exchange_times(placed: Placed, replicas: Replicas, links: StageLinks) -> Floats:
    """Return the time of one exchange of weights among all replicas of a stage, shape (devices,).

    It is an all-reduce in a ring over the slowest link between replicas. The time is 0 for stages on one
    device and for kinds that need no exchange.
    """
    weights, bandwidth, latency = _ring(placed, links)
    return ring_all_reduce(weights, replicas.count.astype(np.float64), bandwidth, latency)


def _ring(placed: Placed, links: StageLinks) -> tuple[Floats, Floats, Floats]:
    """Return the weights of each stage, and bandwidth and latency between its replicas, shape (devices,)."""
    kinds, stages = placed.devices.kinds, np.arange(len(placed.names))
    bandwidth = np.array([np.inf if kind.bandwidth is None else kind.bandwidth for kind in kinds])[
        placed.kind
    ]
    weights = np.bincount(placed.device, placed.graph.weights, len(placed.names)).astype(np.float64)
    slow = links.slow(stages, stages)
    exchanged = (weights > 0) & np.isfinite(bandwidth)
    return weights, bandwidth / slow, placed.devices.link_latency * slow * exchanged
