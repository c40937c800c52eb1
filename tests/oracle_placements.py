"""All placements of a small graph and what they cost, from the definition; half of the oracle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partitioner import DeviceKind, Devices, Graph

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
Tensors = list[tuple[int, list[int], float]]


@dataclass(frozen=True)
class Placements:
    """Placements of the nodes of a graph.

    Parameters
    ----------
    graph, communication
        What is placed, and how transfers count.
    kinds
        The kind of every device.
    device
        Shape (placements, n): the device of every node.
    """

    graph: Graph
    communication: str
    kinds: list[DeviceKind]
    device: Rows

    def only(self, keep: NDArray[np.bool_]) -> Placements:
        """Those with a True in `keep`."""
        return replace(self, device=self.device[keep])


def feasible_placements(graph: Graph, devices: Devices) -> Placements:
    """Every placement that keeps colours together, fits memory and puts nodes where they may run."""
    atom, atoms = _atoms(graph)
    kinds = [kind for kind in devices.kinds for _ in range(kind.count)]
    placed = _assignments(atoms, [kind.count for kind in devices.kinds])[:, atom]
    may = np.array([graph.allowed[graph.kinds.index(kind.row)] for kind in kinds])
    keep = may[placed, np.arange(len(graph))].all(axis=1)
    for d, kind in enumerate(kinds):
        if kind.memory is not None:
            keep &= (placed == d) @ graph.size <= kind.memory * (1 + 1e-9)
    return Placements(graph, devices.communication, kinds, placed[keep])


def _atoms(graph: Graph) -> tuple[Rows, int]:
    """The unit that each node is placed with."""
    names = [("color", c) if c >= 0 else ("node", i) for i, c in enumerate(graph.color.tolist())]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names]), len(number)


def _assignments(atoms: int, counts: list[int]) -> Rows:
    """All assignments in which a device is used only after its equals of lower index."""
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    rows = np.zeros((1, 0), dtype=np.int64)
    used = np.zeros((1, len(counts)), dtype=np.int64)
    for _ in range(atoms):
        grown, grown_used = [], []
        for k, count in enumerate(counts):
            for index in range(count):
                may = used[:, k] >= index
                chosen = np.full((int(may.sum()), 1), first[k] + index)
                after = used[may].copy()
                after[:, k] = np.maximum(after[:, k], index + 1)
                grown.append(np.concatenate((rows[may], chosen), axis=1))
                grown_used.append(after)
        rows, used = np.concatenate(grown), np.concatenate(grown_used)
    return rows


def values(placements: Placements, objective: str) -> Floats:
    """The objective of each placement.

    Throughput: the largest load; GPipe: the largest forward plus the largest backward load, where a
    transfer out belongs to the pass of the maker, a transfer in to the backward pass if only backward
    nodes use the tensor on that device.
    """
    largest = np.zeros((2, len(placements.device)))
    tensors = tensors_of(placements.graph)
    for d, kind in enumerate(placements.kinds):
        here = placements.device == d
        shares = np.stack(
            (_compute(placements.graph, kind, here), *_transfers(placements, kind, here, tensors))
        )
        if objective == "throughput":
            shares = shares.sum(axis=1, keepdims=True)
        largest = np.maximum(largest, combined(placements.communication, *shares))
    return np.asarray(largest[0] if objective == "throughput" else largest.sum(axis=0))


def combined(communication: str, compute: Floats, into: Floats, out: Floats) -> Floats:
    if communication == "sequential":
        return np.asarray(compute + into + out)
    busiest = into + out if communication == "overlapped" else np.maximum(into, out)
    return np.asarray(np.maximum(compute, busiest))


def _compute(graph: Graph, kind: DeviceKind, here: NDArray[np.bool_]) -> Floats:
    time = graph.time[graph.kinds.index(kind.row)] * kind.time_factor
    return np.stack((here @ (time * ~graph.backward), here @ (time * graph.backward)))


def _transfers(
    placements: Placements, kind: DeviceKind, here: NDArray[np.bool_], tensors: Tensors
) -> tuple[Floats, Floats]:
    """Shape (2, placements) each: transfers in and out, forward and backward."""
    backward = placements.graph.backward
    into, out = np.zeros((2, len(here))), np.zeros((2, len(here)))
    for maker, users, cost in tensors if kind.pays_communication else []:
        used = here[:, users]
        made = here[:, maker]
        forward = used[:, ~backward[users]].any(axis=1)
        into[0] += cost * (~made & forward)
        into[1] += cost * (~made & used.any(axis=1) & ~forward)
        out[int(backward[maker])] += cost * (made & ~used.all(axis=1))
    return into * kind.transfer_factor, out * kind.transfer_factor


def tensors_of(graph: Graph) -> Tensors:
    """Edges of one cost out of a node carry one tensor; once two costs differ, each carries its own."""
    tensors: Tensors = []
    for u in range(len(graph)):
        out = [(v, c) for (s, v), c in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True) if s == u]
        if len({c for _, c in out}) == 1:
            tensors.append((u, [v for v, _ in out], out[0][1]))
        else:
            tensors += [(u, [v], c) for v, c in out]
    return tensors
