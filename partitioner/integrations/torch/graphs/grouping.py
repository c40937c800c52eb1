"""Operations in groups, each of which becomes a node: runs of one label in the order of the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import networkx as nx

from partitioner.integrations.torch.graphs.operation import AtenOperation, Capture

BACKWARD = "/backward"
Classes = dict[str, str]


@dataclass(frozen=True)
class OperationGroup:
    """Operations that become a node.

    Parameters
    ----------
    name
        The node's id.
    layer
        The path of the module that they are counted to.
    backward
        Whether they belong to the backward pass.
    operations
        The operations in their order.
    """

    name: str
    layer: str
    backward: bool
    operations: tuple[AtenOperation, ...]


def grouped(capture: Capture, layers: Mapping[str, str], by_operator: bool) -> list[OperationGroup]:
    """Return the groups: maximal runs of operations of one label, so that no cycle can arise.

    The label of a forward operation is its operator or its layer, that of a backward operation the group of
    the forward operations that it differentiates. A label that comes again, such as that of a module that is
    called twice, is followed by ``#`` and a number.
    """
    label = {op.operator: op.operator if by_operator else layers[op.operator] for op in capture.operations}
    forward = _named_runs([op for op in capture.operations if not op.backward], label, "")
    partner = {op.operator: name for name, members in forward for op in members}
    backward = _named_runs([op for op in capture.operations if op.backward], {**label, **partner}, BACKWARD)
    return [
        OperationGroup(name, layers[members[0].operator], members[0].backward, tuple(members))
        for name, members in (*forward, *backward)
    ]


def _named_runs(
    operations: Iterable[AtenOperation], label: Mapping[str, str], suffix: str
) -> list[tuple[str, list[AtenOperation]]]:
    seen: Counter[str] = Counter()
    found = []
    for name, run in groupby(operations, lambda op: label[op.operator]):
        again = f"#{seen[name]}" if seen[name] else ""
        seen[name] += 1
        found.append((name + again + suffix, list(run)))
    return found


def colour_classes(groups: Sequence[OperationGroup], joined: Iterable[tuple[str, str]]) -> Classes:
    """Return the class of each group, by names: groups with operations of one operator share a device."""
    together: nx.Graph[tuple[str, str]] = nx.Graph()
    for group in groups:
        for op in group.operations:
            together.add_edge(("group", group.name), ("operator", op.operator))
    together.add_edges_from((("operator", a), ("operator", b)) for a, b in joined)
    position = {group.name: i for i, group in enumerate(groups)}
    classes: Classes = {}
    for component in nx.connected_components(together):
        names = [name for what, name in component if what == "group"]
        classes |= dict.fromkeys(names, min(names, key=position.__getitem__, default=""))
    return classes
