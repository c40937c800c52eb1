"""The constraints resolved for a graph: which nodes they select, and on which devices these may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.constraints import TRAINING_ONLY, Constraints
from partitioner.workload.device_validation import SEPARATOR
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Graph, Ints
from partitioner.workload.module_groups import edges_of_inputs, whole_groups, with_the_module_before
from partitioner.workload.modules import module_starts


@dataclass(frozen=True, eq=False)
class Demands:
    """The constraints on each of the `n` nodes of a graph.

    Parameters
    ----------
    may
        Shape (kinds of devices, n): whether `pin` and `forbid` allow the node on the kind.
    device
        Shape (n,): position in `Devices.names` of the device that the node is pinned to, or -1.
    together
        For each list of `Constraints.together`, and each group that must be whole, the positions of its
        nodes.
    sequence
        The first node of each module in forward order if the stages of a chain must follow it, else empty.
    no_replicas
        Whether no stage may be on several devices.
    """

    may: Bools
    device: Ints
    together: tuple[Ints, ...]
    sequence: Ints
    no_replicas: bool


def demands_of(graph: Graph, devices: Devices, constraints: Constraints) -> Demands:
    """Return the constraints by node: every pattern is replaced by the nodes that it selects.

    Raises
    ------
    WorkloadError
        If a pattern selects no node, a target is not a kind or device, or pins contradict one another.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0, 2.0]}, names=["embedding", "head"])
    >>> from partitioner.workload.devices import DeviceKind
    >>> demands = demands_of(graph, Devices((DeviceKind("gpu", 2),)), Constraints(pin={"head": "gpu1"}))
    >>> demands.device.tolist()
    [-1, 1]
    """
    flaws: list[Flaw] = []
    may = np.ones((len(devices.kinds), len(graph)), dtype=bool)
    if constraints.own_memory:
        may[[not kind.pays_communication for kind in devices.kinds]] = False
    device = np.full(len(graph), -1, dtype=np.int64)
    for pattern, target in constraints.pin.items():
        nodes, kind, index = _meant(graph, "pin", pattern, flaws), *_target(devices, target)
        if kind is None:
            flaws.append(Flaw("constraints", "pin", shown(target), _known(devices, "kind or device")))
            continue
        may[np.arange(len(may)) != kind, nodes[:, None]] = False
        if index is not None:
            clash = nodes[(device[nodes] >= 0) & (device[nodes] != index)]
            flaws += [_clash(graph, i, devices.names[index], devices.names[device[i]]) for i in clash[:1]]
            device[nodes] = index
    for pattern, kinds in constraints.forbid.items():
        nodes = _meant(graph, "forbid", pattern, flaws)
        for name in kinds:
            known = [kind.name for kind in devices.kinds]
            if name in known:
                may[known.index(name), nodes] = False
            else:
                flaws.append(Flaw("constraints", "forbid", shown(name), _known(devices, "kind")))
    together = tuple(_all_meant(graph, patterns, flaws) for patterns in constraints.together)
    together += tuple(whole_groups(graph, constraints.whole))
    flaws += _several_kinds(devices, may) if constraints.one_kind else []
    if flaws:
        raise WorkloadError(list(dict.fromkeys(flaws)))
    together += tuple(with_the_module_before(graph)) if constraints.in_order else ()
    sequence = module_starts(graph) if constraints.in_order else np.zeros(0, dtype=np.int64)
    return Demands(may, device, together, sequence, constraints.no_replicas)


def neighbour_edges(graph: Graph, constraints: Constraints) -> Ints:
    """Return the edges whose ends must be in one stage or in consecutive ones, shape (edges, 2).

    These are all edges if only neighbours may exchange tensors; with ``"forward"``, those of the forward pass
    whose tensor depends on a parameter; with ``"training"``, the same if there is a backward pass, else none.
    """
    if isinstance(constraints.neighbours_only, bool):
        return graph.edges
    if constraints.neighbours_only == TRAINING_ONLY and not graph.backward.any():
        return graph.edges[:0]
    forward = ~graph.backward[graph.edges].any(axis=1)
    return np.asarray(graph.edges[forward & ~edges_of_inputs(graph)])


def nodes_meant(graph: Graph, pattern: Any) -> Ints:
    """Return the positions of the nodes that a pattern selects: by id, or else by name."""
    if pattern in graph.position:
        return np.array([graph.position[pattern]], dtype=np.int64)
    if not isinstance(pattern, str):
        return np.zeros(0, dtype=np.int64)
    return np.array([i for i, name in enumerate(graph.names) if fnmatchcase(name, pattern)], dtype=np.int64)


def _meant(graph: Graph, field: str, pattern: Any, flaws: list[Flaw]) -> Ints:
    nodes = nodes_meant(graph, pattern)
    if not len(nodes):
        flaws.append(
            Flaw("constraints", field, shown(pattern), "must be the id of a node or match a node's name")
        )
    return nodes


def _all_meant(graph: Graph, patterns: Iterable[Any], flaws: list[Flaw]) -> Ints:
    found: Sequence[Ints] = [_meant(graph, "together", pattern, flaws) for pattern in patterns]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))


def _several_kinds(devices: Devices, may: Bools) -> list[Flaw]:
    """Return a flaw if nodes may be on several kinds of device, or on one without a memory of its own."""
    able = [kind for kind, row in zip(devices.kinds, may, strict=True) if kind.count and row.any()]
    if len(able) == 1 and able[0].pays_communication:
        return []
    names = ", ".join(f"{kind.name} ({kind.count})" for kind in able)
    rule = (
        f"needs one kind with a memory of its own, nodes may be on {names}: pin all, as pin = {{'*': 'gpu'}}"
    )
    return [Flaw("constraints", "one_kind", "True", rule)]


def _target(devices: Devices, target: str) -> tuple[int | None, int | None]:
    """Return the position of the kind, and that of the device if `target` names one; None otherwise."""
    names = [kind.name for kind in devices.kinds]
    if target in names:
        return names.index(target), None
    position = {name: i for i, name in enumerate(devices.names)}
    spelled = {
        f"{kind.name}{SEPARATOR}{i}": kind.device(i) for kind in devices.kinds for i in range(kind.count)
    }
    name = target if target in position else spelled.get(target, "")
    found = devices.kind_of(name) if name in position else None
    return (None, None) if found is None else (found[0], position[name])


def _known(devices: Devices, what: str) -> str:
    kinds = ", ".join(f"{kind.name} ({kind.count})" for kind in devices.kinds)
    return f"is not a {what}; there are {kinds}"


def _clash(graph: Graph, i: int, one: str, other: str) -> Flaw:
    return Flaw(f"node {shown(graph.ids[i])}", "pin", f"{other} and {one}", "can only be on one device")
