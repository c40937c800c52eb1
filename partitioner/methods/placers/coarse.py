"""Clusters of tasks as single tasks, and the expansion of their placement to the members."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np

from partitioner.methods.placers.found import Found
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.tasks import Tasks


def merged(tasks: Tasks, cluster: Ints) -> Tasks:
    """Return tasks of which each is a cluster of the given ones.

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
        If an edge leads from a cluster to another with a smaller number.
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
    """Return the placement of clusters as one of their members, which run in topological order.

    Parameters
    ----------
    found
        The placement of ``merged(tasks, cluster)``.
    cluster, tasks
        As given to :func:`merged`.
    """
    place = np.argsort(found.order)
    order = np.lexsort((np.arange(tasks.n), place[cluster]))
    return replace(found, device=found.device[cluster], order=order)


def numbered(tasks: Tasks, label: Ints) -> Ints:
    """Return clusters renumbered for :func:`merged`: by their first members, as far as edges allow, (n,).

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
    """Return the edges between clusters, once for each tensor, and their tensors."""
    apart = np.flatnonzero(owner != item)
    triples = np.column_stack((owner, item, tensor))[apart]
    kept = apart[np.sort(np.unique(triples, axis=0, return_index=True)[1])]
    by_owner = kept[np.argsort(owner[kept], kind="stable")]
    return rows_of(owner[kept], item[kept], count), tensor[by_owner]


def _sums(values: Floats, cluster: Ints, count: int) -> Floats:
    """Return the sums over the last axis for each cluster."""
    total = np.zeros((count, len(values)))
    np.add.at(total, cluster, values.T)
    return np.ascontiguousarray(total.T)


def _united(group: Ints, cluster: Ints, count: int) -> Ints:
    """Return the group of each cluster, shape (count,); clusters with members of one group are in one."""
    label, least = np.arange(count), np.full(int(group.max(initial=-1)) + 1, count)
    while True:
        np.minimum.at(least, group, label[cluster])
        lower = label.copy()
        np.minimum.at(lower, cluster, least[group])
        if (lower == label).all():
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        label = lower[lower]
