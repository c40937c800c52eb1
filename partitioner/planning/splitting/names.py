"""Ids of the nodes that splitting and replicas add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partitioner.methods.placers.dpos_draft import CONCATENATE, PART, SPLIT, Draft
from partitioner.planning.splitting.dimension import Dimension
from partitioner.workload.graph import NodeId


def names_of(
    ids: Sequence[NodeId], draft: Draft, splits: Mapping[int, tuple[Dimension, int]]
) -> tuple[NodeId, ...]:
    """Return the id of every task: that of its node, or a new one such as ``conv/batch/0of2``."""
    taken, names = set(map(str, ids)), []
    for node, role, i in zip(
        draft.tasks.node.tolist(), draft.role.tolist(), draft.number.tolist(), strict=True
    ):
        if role not in (SPLIT, PART, CONCATENATE):
            names.append(ids[node])
            continue
        dimension, count = splits[node]
        word = {SPLIT: f"split{i}", PART: f"{i}of{count}", CONCATENATE: "concatenate"}[role]
        names.append(unused(f"{ids[node]}/{dimension.name}/{word}", taken))
    return tuple(names)


def unused(name: str, taken: set[str]) -> str:
    """Return the name, or a similar one that is not taken, and mark it as taken."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name
