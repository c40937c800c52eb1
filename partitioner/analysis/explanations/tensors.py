"""The tensors that a device receives and sends, with the time of each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from partitioner.evaluation.costs import tensors
from partitioner.evaluation.links import links_of
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.workload.graph import Floats, Ints, NodeId

FROM, TO = "from", "to"


@dataclass(frozen=True)
class TensorTime:
    """A tensor that a device receives or sends.

    Parameters
    ----------
    node, name
        The node that produces it.
    direction
        ``"from"`` if it is received, ``"to"`` if it is sent.
    devices
        The names of the devices that it is received from or sent to.
    time
        The time per sample of the transfer between the device and host memory, on average over the devices
        that share the stage.
    backward
        Whether it belongs to the backward pass: for a tensor that is received, whether all its consumers on
        the device do; for one that is sent, whether its producer does.
    """

    node: NodeId
    name: str
    direction: str
    devices: tuple[str, ...]
    time: float
    backward: bool


def tensors_of(placed: Placed, copies: Replicas, device: str, by_edge: bool) -> list[TensorTime]:
    """Return the tensors that a device receives or sends, the slowest first.

    With `by_edge` every edge carries a tensor of its own, as in Piper's model.
    """
    graph, here = placed.graph, placed.names.index(device)
    number = np.arange(len(graph.edges)) if by_edge else tensors(graph)[0]
    ends = placed.device[graph.edges]
    cut = np.flatnonzero((ends[:, 0] != ends[:, 1]) & (ends == here).any(axis=1))
    slowdown = np.ones(len(ends))
    slowdown[cut] = links_of(placed, copies).slow(ends[cut, 0], ends[cut, 1])
    edges_of: dict[tuple[str, int], list[int]] = defaultdict(list)
    for edge in cut.tolist():
        edges_of[FROM if ends[edge, 1] == here else TO, int(number[edge])].append(edge)
    share = float(placed.transfer_factor[here] / copies.count[here])
    found = [
        _tensor(placed, direction, np.array(edges), slowdown[edges], share)
        for (direction, _), edges in edges_of.items()
    ]
    return sorted(found, key=lambda tensor: -tensor.time)


def _tensor(placed: Placed, direction: str, edges: Ints, slowdown: Floats, share: float) -> TensorTime:
    """Return the tensor that some edges carry to a device, or from it to others.

    A tensor that is sent to several devices takes the time of the slowest link; `share` is the time of a
    transfer of cost 1.
    """
    graph, received = placed.graph, direction == FROM
    makers, users = graph.edges[edges, 0], graph.edges[edges, 1]
    added = (placed.surcharge[0 if received else 1, edges] * slowdown).sum()
    others = placed.device[makers if received else users].tolist()
    late = graph.backward[users].all() if received else graph.backward[makers[0]]
    maker = int(makers[0])
    return TensorTime(
        node=graph.ids[maker],
        name=graph.names[maker],
        direction=direction,
        devices=tuple(placed.names[i] for i in dict.fromkeys(others)),
        time=float(graph.cost[edges[0]] * slowdown.max() + added) * share,
        backward=bool(late),
    )
