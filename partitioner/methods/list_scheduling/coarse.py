"""Coarser tasks: clusters that run as one, and the way back to their members."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np

from partitioner.methods.list_scheduling.found import Found
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.tasks import Tasks


def merged(tasks: Tasks, cluster: Ints) -> Tasks:
    """Each cluster as one task.

    Times and sizes add up. An output that other clusters read stays a tensor of its own, read once by each
    of them. Clusters that hold members of one group share a device.

    Parameters
    ----------
    tasks
        The tasks.
    cluster
        Shape (n,): the cluster of every task, numbered from 0 without gaps in a topological order, see
        :func:`numbered`.

    Returns
    -------
    Tasks
        Task `c` is cluster `c`; its `node` is that of its first member. `cost` lists only tensors that
        some cluster reads.

    Raises
    ------
    ValueError
        If an edge leads from a cluster to one of a smaller number.
    """
    count = int(cluster.max(initial=-1)) + 1
    in_edges = cluster[tasks.before.items], cluster[tasks.before.owners()]
    out_edges = cluster[tasks.after.owners()], cluster[tasks.after.items]
    if (in_edges[0] > in_edges[1]).any():
        raise ValueError("an edge leads from a cluster to one of a smaller number")
    read = np.unique(tasks.before_tensor[in_edges[0] != in_edges[1]])
    new = np.full(len(tasks.cost), -1, dtype=np.int64)
    new[read] = np.arange(len(read))
    before, before_tensor = _rows(in_edges[1], in_edges[0], new[tasks.before_tensor], count)
    after, after_tensor = _rows(out_edges[0], out_edges[1], new[tasks.after_tensor], count)
    return replace(
        tasks,
        node=tasks.node[np.unique(cluster, return_index=True)[1]],
        time=_sums(tasks.time, cluster, count),
        size=_sums(tasks.size[None], cluster, count)[0],
        group=_united(tasks.group, cluster, count),
        before=before,
        before_tensor=before_tensor,
        after=after,
        after_tensor=after_tensor,
        cost=tasks.cost[read],
    )


def expanded(found: Found, cluster: Ints, tasks: Tasks) -> Found:
    """What was found for clusters, for their members: all where the cluster is, in topological order.

    Parameters
    ----------
    found
        For ``merged(tasks, cluster)``.
    cluster, tasks
        As given to :func:`merged`.
    """
    place = np.argsort(found.order)
    order = np.lexsort((np.arange(tasks.n), place[cluster]))
    return replace(found, device=found.device[cluster], order=order)


def numbered(tasks: Tasks, label: Ints) -> Ints:
    """Clusters of any labels, numbered as :func:`merged` needs them: by their first members if edges allow.

    Raises
    ------
    ValueError
        If clusters wait for one another in a circle.
    """
    first, cluster = np.unique(label, return_index=True, return_inverse=True)[1:]
    pairs = np.column_stack((cluster[tasks.before.items], cluster[tasks.before.owners()]))
    quotient: nx.DiGraph[int] = nx.DiGraph()
    quotient.add_nodes_from(range(len(first)))
    quotient.add_edges_from(pairs[pairs[:, 0] != pairs[:, 1]].tolist())
    position = np.empty(len(first), dtype=np.int64)
    try:
        order = list(nx.lexicographical_topological_sort(quotient, key=first.tolist().__getitem__))
    except nx.NetworkXUnfeasible:
        raise ValueError("clusters wait for one another in a circle") from None
    position[order] = np.arange(len(first))
    return np.asarray(position[cluster])


def _rows(owner: Ints, item: Ints, tensor: Ints, count: int) -> tuple[Rows, Ints]:
    """The edges between clusters, the first of those with one tensor, and their tensors."""
    apart = np.flatnonzero(owner != item)
    triples = np.column_stack((owner, item, tensor))[apart]
    kept = apart[np.sort(np.unique(triples, axis=0, return_index=True)[1])]
    by_owner = kept[np.argsort(owner[kept], kind="stable")]
    return rows_of(owner[kept], item[kept], count), tensor[by_owner]


def _sums(values: Floats, cluster: Ints, count: int) -> Floats:
    """The last axis added up by cluster."""
    total = np.zeros((count, len(values)))
    np.add.at(total, cluster, values.T)
    return np.ascontiguousarray(total.T)


def _united(group: Ints, cluster: Ints, count: int) -> Ints:
    """Shape (count,): groups of clusters, where clusters that touch one group are in one."""
    label, least = np.arange(count), np.full(int(group.max(initial=-1)) + 1, count)
    while True:
        np.minimum.at(least, group, label[cluster])
        lower = label.copy()
        np.minimum.at(lower, cluster, least[group])
        if (lower == label).all():
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        label = lower[lower]
