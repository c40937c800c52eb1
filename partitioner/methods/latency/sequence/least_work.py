"""Additive lower bounds on sequences of blocks."""

from __future__ import annotations

import numpy as np

from partitioner.methods.latency.sequence.chains import BlockCosts
from partitioner.problem.arrays import Floats

PATHS = 16


def additive_weights(costs: BlockCosts) -> Floats:
    """Return weights of supernodes, shape (n,), whose sum over a block is a lower bound on its length.

    On kinds that pay, a block takes the time of all its nodes; on others that of its longest path, which is
    at least the mean over any paths through its nodes. The paths are chosen one by one so that the weights,
    the lesser of both for each half, become large.
    """
    owner = np.empty(len(costs.backward), dtype=np.int64)
    owner[costs.node] = np.repeat(np.arange(len(costs.size)), np.diff(costs.node_start))
    weight = np.zeros(len(costs.size))
    allowed = np.isfinite(costs.work[:, 0])
    for w in (0, 1):
        busy = np.where(allowed, costs.work[:, w], np.inf)
        paying = busy[costs.pays].min(axis=0, initial=np.inf)
        alone = np.where(allowed[:, owner], costs.time, np.inf)[~costs.pays].min(axis=0, initial=np.inf)
        alone[costs.backward != w] = 0.0
        share = np.zeros(len(weight))
        for _ in range(PATHS):
            lacking = np.where(np.isfinite(alone), alone, 0.0) * (share < paying)[owner]
            path = _heaviest_path(costs, w, lacking)
            np.add.at(share, owner[path], alone[path] / PATHS)
        barred = ~allowed[~costs.pays].any(axis=0)
        weight += np.where(barred, paying, np.minimum(share, paying))
    return np.where(np.isfinite(weight), weight, 0.0)


def _heaviest_path(costs: BlockCosts, w: int, gain: Floats) -> list[int]:
    total, origin, best = gain.tolist(), [-1] * len(gain), -1
    for u in costs.node.tolist():
        if costs.backward[u] != w:
            continue
        for b in costs.before[costs.before_start[u] : costs.before_start[u + 1]].tolist():
            if origin[u] < 0 or total[b] > total[origin[u]]:
                origin[u] = b
        total[u] += total[origin[u]] if origin[u] >= 0 else 0.0
        best = u if best < 0 or total[u] > total[best] else best
    path = []
    while best >= 0:
        path.append(best)
        best = origin[best]
    return path
