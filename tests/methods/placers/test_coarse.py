"""Clusters as tasks keep times, memory, tensors and groups, and lead back to their members."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.placers.coarse import expanded, merged, numbered
from partitioner.methods.placers.engine import place_in_order
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from tests.methods.placers.small_tasks import some_tasks


def edges_between(tasks: Tasks, cluster: Ints) -> set[tuple[int, int, float]]:
    """Producer's task, reader's cluster and cost of every tensor that crosses a border."""
    found = set()
    for v in range(tasks.n):
        for e in range(tasks.before.start[v], tasks.before.start[v + 1]):
            u, tensor = int(tasks.before.items[e]), int(tasks.before_tensor[e])
            if cluster[u] != cluster[v]:
                found.add((tensor, int(cluster[v]), float(tasks.cost[tensor])))
    return found


def random_clusters(tasks: Tasks, seed: int) -> Ints:
    """Intervals of the topological order."""
    rng = np.random.default_rng(seed)
    return np.cumsum(np.append(0, rng.random(tasks.n - 1) < 0.5)).astype(np.int64)


def test_sums_and_tensors_are_those_of_the_members() -> None:
    """Every coarse edge stands for one tensor that crosses a border to one cluster."""
    for seed, tasks in some_tasks(0, 300):
        cluster = random_clusters(tasks, seed)
        coarse = merged(tasks, cluster)
        for c in range(coarse.n):
            assert (coarse.time[:, c] == tasks.time[:, cluster == c].sum(axis=1)).all()
            assert coarse.size[c] == tasks.size[cluster == c].sum()
        crossing = edges_between(tasks, cluster)
        inner = edges_between(coarse, np.arange(coarse.n))
        assert sorted((c, cost) for _, c, cost in inner) == sorted((c, cost) for _, c, cost in crossing)
        assert len(coarse.after.items) == len(coarse.before.items) == len(crossing)
        assert (coarse.before.items < coarse.before.owners()).all()


def test_both_lists_of_edges_agree() -> None:
    """What a cluster reads from another is what that one sends to it, tensor by tensor."""
    for seed, tasks in some_tasks(300, 200):
        coarse = merged(tasks, random_clusters(tasks, seed))
        read = {(u, v, t) for u, v, t in _listed(coarse, backwards=True)}
        sent = {(u, v, t) for u, v, t in _listed(coarse, backwards=False)}
        assert read == sent


def _listed(tasks: Tasks, backwards: bool) -> list[tuple[int, int, int]]:
    rows, tensor = (tasks.before, tasks.before_tensor) if backwards else (tasks.after, tasks.after_tensor)
    ends = rows.owners().tolist(), rows.items.tolist()
    u, v = (ends[1], ends[0]) if backwards else ends
    return list(zip(u, v, tensor.tolist(), strict=True))


def test_groups_are_united_and_no_more() -> None:
    """Two clusters share a group if and only if a path of shared groups and clusters links them."""
    for seed, tasks in some_tasks(500, 200):
        cluster = random_clusters(tasks, seed)
        label = list(range(tasks.n))
        for _ in range(tasks.n):
            for u in range(tasks.n):
                for v in range(tasks.n):
                    if cluster[u] == cluster[v] or tasks.group[u] == tasks.group[v]:
                        label[u] = label[v] = min(label[u], label[v])
        group = merged(tasks, cluster).group
        for u in range(tasks.n):
            for v in range(tasks.n):
                assert (group[cluster[u]] == group[cluster[v]]) == (label[u] == label[v])


def test_members_follow_their_cluster_in_a_topological_order() -> None:
    done = 0
    for seed, tasks in some_tasks(700, 200):
        cluster = random_clusters(tasks, seed)
        coarse = merged(tasks, cluster)
        found = place_in_order(coarse, np.arange(coarse.n), "earliest_start")
        if found is None:
            continue
        done += 1
        whole = expanded(found, cluster, tasks)
        place = np.argsort(whole.order)
        assert (whole.device == found.device[cluster]).all()
        assert sorted(whole.order.tolist()) == list(range(tasks.n))
        assert (place[tasks.before.items] < place[tasks.before.owners()]).all()
    assert done > 100


def test_labels_are_numbered_along_edges() -> None:
    for _, tasks in some_tasks(900, 100):
        labels = 100 - np.arange(tasks.n)
        assert (numbered(tasks, labels) == np.arange(tasks.n)).all()


def test_circles_are_refused() -> None:
    """Somewhere among random tasks u -> v -> w with u and w in one cluster."""
    refused = 0
    for _, tasks in some_tasks(1000, 50):
        for v in range(tasks.n):
            inputs, outputs = tasks.before.row(v), tasks.after.row(v)
            if len(inputs) and len(outputs):
                labels = np.arange(tasks.n)
                labels[outputs[0]] = labels[inputs[0]]
                with pytest.raises(ValueError, match="circle"):
                    numbered(tasks, labels)
                refused += 1
    assert refused > 50


def test_backward_numbers_are_refused() -> None:
    for _, tasks in some_tasks(1100, 20):
        if len(tasks.before.items):
            with pytest.raises(ValueError, match="smaller number"):
                merged(tasks, np.arange(tasks.n)[::-1])
