"""Which devices of two plans correspond: equal devices may have other names in another plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import networkx as nx

from partitioner.workload.devices import Devices
from partitioner.workload.graph import NodeId


def matched(
    before: Mapping[NodeId, str], after: Mapping[NodeId, str], devices: Devices, others: Devices
) -> dict[str, str]:
    """Return for each device of the second placement the device of the first one that it corresponds to.

    Devices of a kind are equal unless they are in levels or groups; they are matched such that the most nodes
    stay. Devices in levels or groups correspond by name. A device of the second placement whose nodes are on
    no equal device of the first one has its own name, or another one that is free.

    Examples
    --------
    >>> pool = Devices.accelerated(2, cpus=1)
    >>> matched({0: "accelerator0", 1: "cpu0"}, {0: "accelerator1", 1: "accelerator1"}, pool, pool)
    {'accelerator1': 'accelerator0'}
    """
    if any((each.levels or each.groups) for each in (devices, others)):
        return {name: name for name in after.values()}
    kept = Counter((name, before[node]) for node, name in after.items())
    graph: nx.Graph[tuple[str, str]] = nx.Graph()
    for (new, old), count in kept.items():
        if _kind(others, new) == _kind(devices, old):
            graph.add_edge(("after", new), ("before", old), weight=len(before) * count + (new == old))
    pairs = [sorted(pair) for pair in nx.max_weight_matching(graph)]
    found = {new: old for (_, new), (_, old) in sorted(pairs)}
    for new in dict.fromkeys(after.values()):
        if new not in found:
            equal = [name for name in (new, *others.names) if _kind(others, name) == _kind(others, new)]
            found[new] = next(name for name in equal if name not in found.values())
    return found


def _kind(devices: Devices, name: str) -> str | None:
    """Return the name of the kind of a device, None for a name of no kind."""
    found = devices.kind_of(name)
    return None if found is None else devices.kinds[found[0]].name
