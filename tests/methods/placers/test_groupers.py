"""Co-placement and fusion: the groups they should be, no circles, nothing lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import DeviceKind, Devices
from partitioner.methods.method import Settings
from partitioner.methods.placers.around import coplaced, fused
from partitioner.methods.placers.coarse import merged
from partitioner.methods.placers.m_etf import place_m_etf
from partitioner.methods.placers.m_sct import place_m_sct
from partitioner.methods.placers.m_topo import place_m_topo
from partitioner.methods.placing import Placing
from partitioner.problem.tasks import Tasks
from tests.methods.placers.baechi_by_hand import tasks_by_hand
from tests.methods.placers.small_tasks import some_tasks

Pairs = set[tuple[int, int]]


def together(label: list[int]) -> Pairs:
    """All pairs with one label."""
    return {(u, v) for u, a in enumerate(label) for v, b in enumerate(label) if a == b}


def closed(tasks: Tasks) -> Pairs:
    """Groups grown until stable: who has one consumer is with it."""
    label = tasks.group.tolist()
    for _ in range(tasks.n):
        for u in range(tasks.n):
            consumers = set(tasks.after.row(u).tolist())
            if len(consumers) == 1:
                old, new = label[u], label[consumers.pop()]
                label = [new if each == old else each for each in label]
    return together(label)


def test_groups_grow_until_stable_where_all_may_be_together() -> None:
    grown = 0
    for _, tasks in some_tasks(0, 400):
        free = replace(tasks, time=np.ones_like(tasks.time), limit=np.full_like(tasks.limit, np.inf))
        assert together(coplaced(free).group.tolist()) == closed(free)
        grown += closed(free) != together(free.group.tolist())
    assert grown > 200


def test_no_group_grows_too_large_for_every_device() -> None:
    refused = 0
    for _, tasks in some_tasks(500, 400):
        before, after = possible(tasks), possible(coplaced(tasks))
        assert after or not before
        found, whole = together(coplaced(tasks).group.tolist()), closed(tasks)
        assert together(tasks.group.tolist()) <= found <= whole
        refused += found != whole
    assert refused > 20


def possible(tasks: Tasks) -> bool:
    """Is there a device for every group, if it were empty?"""
    fits = tasks.group_allowed & (tasks.group_size <= tasks.limit[:, None])
    return bool(fits.any(axis=0).all())


def test_a_chain_is_one_group_up_to_its_branching() -> None:
    """A -> b -> c and d -> c, c -> e, f: a, b and d join c's group; c has two consumers and joins neither."""
    edges = dict.fromkeys(("ab", "bc", "dc", "ce", "cf"), 1.0)
    tasks = tasks_by_hand(dict.fromkeys("abcdef", 1.0), edges, Devices.accelerated(2))
    group = dict(zip(tasks.node.tolist(), coplaced(tasks).group.tolist(), strict=True))
    assert group[0] == group[1] == group[2] == group[3]
    assert len({group[2], group[4], group[5]}) == 3


def test_fusion_by_hand() -> None:
    """All in one group: a -> b, a -> c, b -> d, c -> d, d -> e.

    a -> b: a has another successor, but b no other predecessor: {a, b}. a -> c: likewise {a, b, c}. Then d
    is its only successor: all five are one.
    """
    edges = dict.fromkeys(("ab", "ac", "bd", "cd", "de"), 1.0)
    tasks = tasks_by_hand(dict.fromkeys("abcde", 1.0), edges, Devices.accelerated(2), together="abcde")
    assert fused(tasks).tolist() == [0] * 5


def test_fusion_makes_no_circle_by_hand() -> None:
    """A and d in one group, a -> d, and a -> b -> d with b outside: nothing is fused."""
    edges = dict.fromkeys(("ad", "ab", "bd"), 1.0)
    tasks = tasks_by_hand(dict.fromkeys("abd", 1.0), edges, Devices.accelerated(2), together="ad")
    assert fused(tasks).tolist() == [0, 1, 2]


def test_fusion_adds_memory() -> None:
    """a, b of 3 and 2 in one group become one of 5, though no output is left."""
    devices = Devices((DeviceKind("accelerator", 2, memory=5.0),))
    tasks = tasks_by_hand({"a": 1.0, "b": 2.0}, {"ab": 1.0}, devices, {"a": 3.0, "b": 2.0}, together="ab")
    coarse = merged(tasks, fused(tasks))
    assert coarse.size.tolist() == [5.0] and coarse.time[:, 0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize(("first", "count"), [(1_000, 150), pytest.param(1_150, 850, marks=pytest.mark.slow)])
def test_clusters_stay_in_their_groups_and_make_no_circle(first: int, count: int) -> None:
    """`merged` refuses clusters that are not in a topological order; a few are larger than one task."""
    smaller = 0
    for _, tasks in some_tasks(first, count):
        cluster = fused(tasks)
        coarse = merged(tasks, cluster)
        for c in range(coarse.n):
            assert len(set(tasks.group[cluster == c].tolist())) == 1
        assert together(coarse.group[cluster].tolist()) == together(tasks.group.tolist())
        smaller += coarse.n < tasks.n
    assert smaller > count / 10


@pytest.mark.parametrize(("first", "count"), [(4_000, 60), pytest.param(4_060, 240, marks=pytest.mark.slow)])
def test_placers_keep_the_groups_and_the_memory_of_the_user(first: int, count: int) -> None:
    """With every combination of grouper and fusion."""
    placed = 0
    for seed, tasks in some_tasks(first, count):
        grouper, fuse = ("none", "coplace")[seed % 2], seed % 4 >= 2
        for place in (place_m_topo, place_m_etf, place_m_sct):
            found = place(tasks, Settings(placing=Placing(grouper=grouper, fuse=fuse)))
            if found is None:
                continue
            placed += 1
            assert (np.bincount(found.device, tasks.size, len(tasks.limit)) <= tasks.limit).all()
            assert np.isfinite(tasks.time[found.device, np.arange(tasks.n)]).all()
            assert together(tasks.group.tolist()) <= together(found.device.tolist())
            place_of = np.argsort(found.order)
            assert (place_of[tasks.before.items] < place_of[tasks.before.owners()]).all()
    assert placed > count * 5 / 3
