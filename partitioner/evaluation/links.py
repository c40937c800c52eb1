"""Transfers over links that are slower between groups of devices (paper, Appendix H.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.evaluation.costs import tensors
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.graph import Floats, Ints


@dataclass(frozen=True, eq=False)
class Links:
    """Which groups the stages reach into.

    Parameters
    ----------
    slowdown
        Shape (levels,): how much slower links between groups of a level are than inside the smallest.
    first, last
        Shape (levels, devices): first and last group of each level among all devices of the stage that
        the device stands for.
    """

    slowdown: Floats
    first: Ints
    last: Ints

    def slow(self, one: Ints, other: Ints) -> Floats:
        """How much slower the link of two stages each is: that of the last level which parts them."""
        found = np.ones(len(one))
        for slowdown, first, last in zip(self.slowdown, self.first, self.last, strict=True):
            low, high = np.minimum(first[one], first[other]), np.maximum(last[one], last[other])
            found[low != high] = slowdown
        return found


def links_of(placed: Placed, replicas: Replicas) -> Links:
    """The groups of every stage."""
    devices = placed.devices
    index = [found[1] for name in placed.names if (found := devices.kind_of(name)) is not None]
    sizes = [[max(1, level.size(kind.name)) for kind in devices.kinds] for level in devices.levels]
    shape = len(devices.levels), len(placed.names)
    group = np.array([np.array(index) // np.array(of_kind)[placed.kind] for of_kind in sizes]).reshape(shape)
    first, last = group.copy(), group.copy()
    np.minimum.at(first.T, replicas.lead, group.T)
    np.maximum.at(last.T, replicas.lead, group.T)
    return Links(np.array([level.slowdown for level in devices.levels]), first, last)


def linked_transfer_times(placed: Placed, links: Links) -> tuple[Floats, Floats]:
    """Shape (2, devices) each: transfer time in and out of every stage, forward and backward.

    As :func:`partitioner.evaluation.costs.transfer_times`, but each transfer in takes as long as the link
    to the tensor's maker is slow, and one out as long as the slowest link to a consumer.
    """
    graph, device, count = placed.graph, placed.device, len(placed.names)
    into, out = np.zeros((2, count)), np.zeros((2, count))
    tensor, cost = tensors(graph)
    maker, user = graph.edges[:, 0], graph.edges[:, 1]
    cut = device[maker] != device[user]
    tensor, maker, user = tensor[cut], maker[cut], user[cut]
    slow = links.slow(device[maker], device[user])
    sent, first, which = np.unique(tensor, return_index=True, return_inverse=True)
    slowest = np.zeros(len(sent))
    np.maximum.at(slowest, which, slow)
    source = maker[first]
    np.add.at(out, (graph.backward[source].astype(int), device[source]), cost[sent] * slowest)
    arrival, first, which = np.unique(tensor * count + device[user], return_index=True, return_inverse=True)
    only_backward = np.ones(len(arrival), dtype=bool)
    np.logical_and.at(only_backward, which, graph.backward[user])
    np.add.at(into, (only_backward.astype(int), arrival % count), cost[arrival // count] * slow[first])
    return into * placed.fare, out * placed.fare


def exchange_times(placed: Placed, replicas: Replicas, links: Links) -> Floats:
    """Shape (devices,): what the exchange of weights among replicas takes a sample, on average.

    It is 0 for stages on one device and for kinds that need no exchange (paper, Appendix H.2).
    """
    kinds = placed.devices.kinds
    pace = np.array([0.0 if kind.bandwidth is None else 1 / kind.bandwidth for kind in kinds])
    weights = np.bincount(placed.device, placed.graph.weights, len(placed.names))
    stages, count = np.arange(len(placed.names)), replicas.count
    return np.asarray(weights * pace[placed.kind] * (count - 1) / count * links.slow(stages, stages))
