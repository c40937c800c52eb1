"""Merging of nodes that cost nothing into their only neighbour, so that there are fewer ideals."""

from __future__ import annotations

import numpy as np

from partitioner.problem.groups import Groups


def merge_free_nodes(groups: Groups, roomy: bool, lossless: bool) -> None:
    """Merge each idle group with at most one neighbour into that neighbour, until none is left.

    On its neighbour's device such a group costs nothing and cuts no tensor. So no optimum is lost if the
    group may run wherever the neighbour may, and memory cannot be a limit (its size is 0, or `roomy`). With
    `lossless=False` other idle groups are merged, too. Idle groups without a neighbour are merged into the
    first group for which this is allowed.

    Parameters
    ----------
    groups
        The groups, which are changed in place.
    roomy
        Whether the whole graph fits into the memory of every device.
    lossless
        Whether to merge only if no optimum and no feasible plan can be lost.
    """
    waiting = [g for g in range(len(groups.parent)) if _is_leaf(groups, g)]
    while waiting:
        leaf = waiting.pop()
        if groups.parent[leaf] != leaf or not _is_leaf(groups, leaf):
            continue
        host = next(iter(groups.neighbours[leaf]), None)
        if host is None:
            continue
        safe = _is_safe(groups, leaf, host, roomy)
        if safe or not lossless:
            _merge(groups, leaf, host, safe)
            waiting.append(host)
    _merge_isolated(groups, roomy, lossless)


def _is_leaf(groups: Groups, g: int) -> bool:
    return bool(groups.idle[g]) and len(groups.neighbours[g]) <= 1


def _is_safe(groups: Groups, leaf: int, host: int, roomy: bool) -> bool:
    """Whether no optimum can be lost by this merge, apart from losses by earlier merges."""
    runs = bool((groups.relaxed_allowed[:, leaf] | ~groups.relaxed_allowed[:, host]).all())
    return runs and (roomy or groups.relaxed_size[leaf] == 0)


def _merge(groups: Groups, leaf: int, host: int, safe: bool) -> None:
    groups.parent[leaf] = host
    groups.size[host] += groups.size[leaf]
    groups.allowed[:, host] &= groups.allowed[:, leaf]
    if safe:
        groups.relaxed_size[host] += groups.relaxed_size[leaf]
        groups.relaxed_allowed[:, host] &= groups.relaxed_allowed[:, leaf]
    groups.neighbours[host].discard(leaf)
    groups.neighbours[leaf].clear()


def _merge_isolated(groups: Groups, roomy: bool, lossless: bool) -> None:
    alone = [g for g in np.flatnonzero(groups.idle).tolist() if not groups.neighbours[g]]
    alone = [g for g in alone if groups.parent[g] == g]
    hosts = np.flatnonzero(groups.parent == np.arange(len(groups.parent)))
    for leaf in alone:
        if lossless and not roomy and groups.size[leaf] > 0:
            continue
        others = (int(h) for h in hosts if h != leaf and groups.parent[h] == h)
        host = next((h for h in others if not lossless or _is_safe(groups, leaf, h, roomy)), None)
        if host is not None:
            _merge(groups, leaf, host, _is_safe(groups, leaf, host, roomy))
