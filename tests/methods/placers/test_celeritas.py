"""The four methods: memory and groups hold, no task is lost, estimates are kept, clusters come apart.

Adjusting Placement: worked by hand, equal to Algorithm 2 in plain Python, and what the paper proves.

One device after another: worked by hand, and equal to the rule in plain Python.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest

from partitioner import (
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Transfers,
    WorkloadError,
    evaluate,
    solve,
)
from partitioner.methods.method import Settings
from partitioner.methods.placers.celeritas import (
    adjust,
    back_cost,
    breakpoints,
    ccr,
    cpd_topo,
    critical_path,
    dfs_topo,
    fill,
    fused,
    place_celeritas,
    place_cpd_topo,
    place_dfs_topo,
    place_order_place,
    taken_apart,
    untied,
)
from partitioner.methods.placers.coarse import merged
from partitioner.methods.placers.found import PlaceTasks
from partitioner.methods.placers.ranks import mean_time, mean_transfer
from partitioner.methods.placers.task_arrays import (
    NOWHERE,
    PartialSchedule,
    arrays_of,
    book,
    new_state,
    start_times,
)
from partitioner.methods.placers.timing import makespan
from partitioner.methods.placing import Placing
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from tests.methods.placers.celeritas_by_hand import tasks_by_hand
from tests.methods.placers.celeritas_drawn import drawn, few_and_many
from tests.methods.placers.plain_adjusting import PlainAdjusting
from tests.methods.placers.small_tasks import some_tasks
from tests.random_workloads import random_workload

IN_FILE_ORDER = np.arange(4)


def begin_places(tasks: Tasks, most: int, memory: float = np.inf) -> list[int]:
    return np.flatnonzero(breakpoints(tasks, IN_FILE_ORDER, most, memory)).tolist()


def test_a_chain_with_a_shortcut() -> None:
    """At most two tasks a cluster.

    S(1) = cost(0, 1) = 5 + 2 = 7; S(2) = min(7 + cost(1, 2) = 8, cost(0, 2) = 1 + 2 = 3) = 3;
    S(3) = min(3 + 4, 7 + cost(1, 3) = 7 + 4) = 7; S(4) = min(7 + 0, 3 + 0) = 3: clusters 0-1 and 2-3.
    """
    tasks = tasks_by_hand([1.0] * 4, {(0, 1): 5.0, (1, 2): 1.0, (2, 3): 4.0, (0, 3): 2.0})
    assert begin_places(tasks, 2) == [0, 2]
    assert begin_places(tasks, 4) == [0]
    assert begin_places(tasks, 1) == [0, 1, 2, 3]
    # three: {0} {1 2 3} costs 7, {0 1 2} {3} costs 4 + 2 = 6, {0 1} {2 3} costs 3
    assert begin_places(tasks, 3) == [0, 2]


def test_memory_limits_clusters() -> None:
    """Sizes 3, 1, 1, 3: within 4, {0 1} {2 3} costs 9, {0} {1 2} {3} only 2; within 5, {0} {1 2 3} 1."""
    edges = {(0, 1): 1.0, (1, 2): 9.0, (2, 3): 1.0}
    assert begin_places(tasks_by_hand([1.0] * 4, edges, size=[3.0, 1.0, 1.0, 3.0]), 4, 4.0) == [0, 1, 3]
    assert begin_places(tasks_by_hand([1.0] * 4, edges, size=[3.0, 1.0, 1.0, 3.0]), 4, 5.0) == [0, 1]


def test_of_equal_clusters_the_longest_at_the_end() -> None:
    """Without edges every choice costs nothing: the last two, then the first two."""
    assert begin_places(tasks_by_hand([1.0] * 4, {}), 3) == [0, 1]


def test_tasks_count_with_their_group() -> None:
    """Tasks 0 and 3 share a device: {0 1} ties 3 + 3 + 2 to it, {1 2} takes only 2 + 2, {1 2 3} all.

    Within 8, {0 1} {2 3} costs 1 as {0} {1 2} {3} does, and its last cluster is longer.
    """
    tasks = tasks_by_hand(
        [1.0] * 4, {(0, 1): 1.0, (1, 2): 1.0}, size=[3.0, 2.0, 2.0, 3.0], group=[0, 1, 2, 0]
    )
    assert begin_places(tasks, 4, 7.0) == [0, 1, 3]
    assert begin_places(tasks, 4, 8.0) == [0, 2]
    assert begin_places(tasks, 4, 10.0) == [0]


def best_of_all(tasks: Tasks, order: Ints, most: int, memory: float) -> list[int]:
    """The cheapest of all choices; among equals the one whose last cluster is longest, and so on."""
    choices = []
    for inner in product([False, True], repeat=tasks.n - 1):
        begins = np.array([True, *inner])
        cluster = np.empty(tasks.n, dtype=np.int64)
        cluster[order] = np.cumsum(begins) - 1
        if all(allowed(tasks, np.flatnonzero(cluster == c), most, memory) for c in range(cluster.max() + 1)):
            cut = cluster[tasks.before.items] != cluster[tasks.before.owners()]
            cost = mean_transfer(tasks)[tasks.before_tensor][cut].sum()
            choices.append((round(float(cost), 9), np.flatnonzero(begins).tolist()[::-1]))
    return min(choices)[1][::-1]


def allowed(tasks: Tasks, members: Ints, most: int, memory: float) -> bool:
    groups = np.unique(tasks.group[members])
    held = tasks.size[np.isin(tasks.group, groups)].sum()
    somewhere = np.isfinite(tasks.time[:, np.isin(tasks.group, groups)]).all(axis=1).any()
    return bool(len(members) <= most and (len(groups) == 1 or (held <= memory and somewhere)))


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 60), *(pytest.param(first, 200, marks=pytest.mark.slow) for first in range(0, 2000, 200))],
)
def test_the_best_of_all_choices(first: int, count: int) -> None:
    whole = tight = 0
    for seed, tasks in some_tasks(first, count, most=7):
        rng = np.random.default_rng(seed)
        most = int(rng.integers(1, tasks.n + 2))
        memory = float(rng.choice([np.inf, float(rng.integers(0, 12))]))
        order = cpd_topo(tasks)
        found = np.flatnonzero(breakpoints(tasks, order, most, memory)).tolist()
        assert found == best_of_all(tasks, order, most, memory), seed
        whole += found == [0]
        tight += found != np.flatnonzero(breakpoints(tasks, order, most, np.inf)).tolist()
    assert whole < count * 3 / 4 and tight > count / 10, (whole, tight)


def check(tasks: Tasks, cluster: Ints, most: int, memory: float) -> int:
    """Whether the clusters keep their rules; how many unite several groups."""
    assert np.bincount(cluster).min() > 0 and np.bincount(cluster).max() <= most
    quotient = nx.DiGraph(
        zip(cluster[tasks.before.items].tolist(), cluster[tasks.before.owners()].tolist(), strict=True)
    )
    quotient.remove_edges_from(list(nx.selfloop_edges(quotient)))
    assert nx.is_directed_acyclic_graph(quotient)
    assert (np.diff(cluster[cpd_topo(tasks)]) >= 0).all()
    bonds = nx.Graph(zip(cluster.tolist(), (-1 - tasks.group).tolist(), strict=True))
    several = 0
    for united in nx.connected_components(bonds):
        groups = [-1 - g for g in united if g < 0]
        members = np.isin(tasks.group, groups)
        if len(groups) > 1:
            several += 1
            assert tasks.size[members].sum() <= memory
            assert np.isfinite(tasks.time[:, members]).all(axis=1).any()
    return several


@few_and_many(*range(8))
def test_clusters_keep_their_rules(first: int, count: int) -> None:
    united = 0
    for seed, tasks in drawn(first, count):
        rng = np.random.default_rng(seed)
        most, fraction = int(rng.integers(1, 9)), float(rng.choice([0.1, 0.25, 0.5, 1.0]))
        memory = fraction * min(tasks.limit.min(), tasks.size.sum())
        united += check(tasks, fused(tasks, most, fraction), most, memory)
    assert united > count / 2, united


@few_and_many(2)
def test_without_colour_classes_no_breakpoint_is_added(first: int, count: int) -> None:
    cut = 0
    for seed, tasks in drawn(first, count):
        order = cpd_topo(tasks)
        memory = float(np.random.default_rng(seed).integers(0, 12))
        begins = breakpoints(tasks, order, 5, memory)
        added = untied(tasks, order, begins, memory) & ~begins
        if len(tasks.group_size) == tasks.n:
            assert not added.any(), seed
        cut += int(added.any())
    assert cut > count / 25, cut


def test_groups_tied_in_a_row_are_cut() -> None:
    """Clusters {0 1} {2 3} of groups a b, b c tie sizes 2 + 4 + 2 to one device; with 7 the second is cut."""
    tasks = tasks_by_hand([1.0] * 4, {}, size=2.0, group=[0, 1, 1, 2])
    begins = np.array([True, False, True, False])
    order = np.arange(4)
    assert untied(tasks, order, begins, 8.0).tolist() == [True, False, True, False]
    assert untied(tasks, order, begins, 7.0).tolist() == [True, False, True, True]
    assert untied(tasks, order, begins, 5.0).tolist() == [True, True, True, True]


def test_a_large_graph_without_limits_is_not_one_cluster() -> None:
    """A quarter of all memory is the most of a cluster, also where every device would hold everything."""
    tasks = tasks_by_hand([1.0] * 8, {(v, v + 1): 1.0 for v in range(7)}, size=1.0)
    assert fused(tasks, 200, 0.25).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_ratio_of_communication_to_computing() -> None:
    """Before: edges 5 + 1 + 4 over times 2 + 3; with the first two fused only 1 + 4 is left."""
    tasks = tasks_by_hand([1.0, 1.0, 2.0, 1.0], {(0, 1): 5.0, (1, 2): 1.0, (2, 3): 4.0})
    assert ccr(tasks) == 2.0
    assert ccr(merged(tasks, np.array([0, 0, 1, 2]))) == 1.0
    assert ccr(tasks_by_hand([0.0, 0.0], {(0, 1): 5.0})) == 0.0


def queue_order(tasks: Tasks, urgency: Floats) -> list[int]:
    """Algorithm 1, CPD_Topo, line by line."""
    edges = nx.DiGraph(zip(tasks.before.items.tolist(), tasks.before.owners().tolist(), strict=True))
    edges.add_nodes_from(range(tasks.n))
    queue = deque(sorted((v for v in edges if not edges.in_degree(v)), key=lambda v: (-urgency[v], v)))
    order = []
    while queue:
        current = queue.popleft()
        order.append(current)
        children = sorted(edges.successors(current), key=lambda v: (urgency[v], -v))
        edges.remove_node(current)
        for child in children:
            if not edges.in_degree(child):
                queue.appendleft(child)
    return order


def cut_edges(tasks: Tasks, order: list[int], each: int) -> int:
    """How many edges are cut when each device takes the next `each` tasks."""
    device = np.argsort(order) // each
    return int((device[tasks.before.items] != device[tasks.before.owners()]).sum())


def test_depth_first_cuts_nothing_where_first_in_first_out_cuts_all() -> None:
    """Figure 3's point: four pairs, listed producers first, on two devices of four tasks."""
    tasks = tasks_by_hand([1.0] * 8, {(v, v + 4): 1.0 for v in range(4)})
    assert dfs_topo(tasks).tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert cut_edges(tasks, dfs_topo(tasks).tolist(), 4) == 0
    assert cut_edges(tasks, [0, 1, 2, 3, 4, 5, 6, 7], 4) == 4


def test_the_longest_path_comes_first() -> None:
    """By hand.

    tlevel: 0, 1 + 1 = 2, 1 + 5 = 6, 0, and of the last max(2 + 2 + 1, 6 + 3 + 1, 9) = 10.
    blevel: 1 + max(1 + 4, 5 + 5) = 11, 2 + 1 + 1 = 4, 3 + 1 + 1 = 5, 9 + 0 + 1 = 10, and 1.
    """
    edges = {(0, 1): 1.0, (0, 2): 5.0, (1, 4): 1.0, (2, 4): 1.0, (3, 4): 0.0}
    tasks = tasks_by_hand([1.0, 2.0, 3.0, 9.0, 1.0], edges)
    assert critical_path(tasks).tolist() == [11.0, 6.0, 11.0, 10.0, 11.0]
    assert cpd_topo(tasks).tolist() == [0, 2, 1, 3, 4]
    assert dfs_topo(tasks).tolist() == [0, 1, 2, 3, 4]


def test_the_queue_starts_with_the_longest_path() -> None:
    tasks = tasks_by_hand([1.0, 3.0, 1.0, 1.0], {(0, 2): 0.0, (1, 3): 0.0})
    assert cpd_topo(tasks).tolist() == [1, 3, 0, 2]


@few_and_many(1)
@pytest.mark.parametrize("name", ["dfs", "cpd"])
def test_equal_to_the_queue(name: str, first: int, count: int) -> None:
    different = 0
    for seed, tasks in drawn(first, count):
        urgency = critical_path(tasks) if name == "cpd" else np.zeros(tasks.n)
        order: Ints = cpd_topo(tasks) if name == "cpd" else dfs_topo(tasks)
        assert order.tolist() == queue_order(tasks, urgency), seed
        different += order.tolist() != list(range(tasks.n))
    assert different > count * 2 / 5, different


def test_critical_paths_are_the_longest_of_all_paths() -> None:
    for seed, tasks in some_tasks(5000, 150, most=8):
        time, transfer = mean_time(tasks), mean_transfer(tasks)
        edges: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        edges.add_nodes_from(range(tasks.n))
        for u, v, tensor in zip(
            tasks.before.items.tolist(), tasks.before.owners().tolist(), tasks.before_tensor, strict=True
        ):
            edges.add_edge(u, v, cost=transfer[tensor])
        longest = np.zeros(tasks.n)
        for path in _all_paths(edges):
            steps = pairwise(path)
            along = sum(max(e["cost"] for e in edges[u][v].values()) for u, v in steps)
            longest[path] = np.maximum(longest[path], time[path].sum() + along)
        assert critical_path(tasks) == pytest.approx(longest), seed


def _all_paths(edges: nx.MultiDiGraph[int]) -> list[list[int]]:
    """Every path from an entry to an exit."""
    paths, open_paths = [], [[v] for v in edges if not edges.in_degree(v)]
    while open_paths:
        path = open_paths.pop()
        onward = list(set(edges.successors(path[-1])))
        open_paths += [[*path, v] for v in onward]
        paths += [path] if not onward else []
    return paths


def adjusted(tasks: Tasks, order: Ints, reserve: bool = True) -> tuple[int, PartialSchedule]:
    state = new_state(tasks)
    return int(adjust(arrays_of(tasks, reserve), state, order, back_cost(tasks))), state


def three(cost: float) -> Tasks:
    """Task 0 takes 10; tasks 0 and 1 feed 2, at costs of 1 and `cost`."""
    return tasks_by_hand([10.0, 2.0, 1.0], {(0, 2): 1.0, (1, 2): cost})


def test_a_task_moves_where_waiting_costs_more_than_sending_back() -> None:
    """Task 1: EST 10 on device 0, 0 on device 1; 10 - 0 > back_cost 3, so it moves.

    Task 2 comes from device 1: EST there max(10 + 1, 2) = 11, on device 0 max(10, 2 + 3) = 10, and
    11 - 10 > 0.
    """
    tasks = three(3.0)
    ended, state = adjusted(tasks, np.arange(3))
    assert back_cost(tasks).tolist() == [1.0, 3.0, 0.0]
    assert (ended, state.device.tolist()) == (NOWHERE, [0, 1, 0])
    assert (state.start.tolist(), state.finish.tolist()) == ([0.0, 0.0, 10.0], [10.0, 2.0, 11.0])


@pytest.mark.parametrize("cost", [10.0, 12.0])
def test_a_task_stays_where_sending_back_costs_as_much(cost: float) -> None:
    """Task 1: 10 - 0 is not larger than its back_cost."""
    _, state = adjusted(three(cost), np.arange(3))
    assert state.device.tolist() == [0, 0, 0]
    assert state.finish.tolist() == [10.0, 12.0, 13.0]


def test_a_task_goes_into_an_idle_slot() -> None:
    """Task 2 waits on device 0 for task 1 until 5; task 3 takes 3 of the time before, from 1 to 4."""
    tasks = tasks_by_hand([1.0, 4.0, 1.0, 3.0], {(0, 2): 9.0, (1, 2): 1.0, (0, 3): 9.0})
    order = np.array([1, 0, 2, 3])
    _, state = adjusted(tasks, order)
    plain = PlainAdjusting(tasks, True)
    plain.run(order)
    assert state.device.tolist() == [plain.device[v] for v in range(4)]
    assert state.start.tolist() == [plain.start[v] for v in range(4)]


def test_a_full_device_is_passed_over() -> None:
    """Devices of 3: tasks 0 and 1 fill device 0; task 2 goes to device 1; 3 fits nowhere."""
    tasks = tasks_by_hand([1.0] * 4, {(0, 1): 9.0, (1, 2): 9.0}, size=[2.0, 1.0, 2.0, 2.0], memory=3.0)
    ended, state = adjusted(tasks, np.arange(4))
    assert (ended, state.device.tolist()) == (3, [0, 0, 1, NOWHERE])


@few_and_many(*range(8))
def test_equal_to_plain_python(first: int, count: int) -> None:
    """On clusters that take time, with groups, forbidden devices, tight memory and contention."""
    moved = failed = 0
    for seed, tasks in drawn(first, count):
        coarse = merged(tasks, fused(tasks, 1 + seed % 4, 0.5))
        coarse = replace(coarse, time=coarse.time + 1.0)
        order, reserve = cpd_topo(coarse), seed % 3 > 0
        ended, state = adjusted(coarse, order, reserve)
        plain = PlainAdjusting(coarse, reserve)
        assert (plain.run(order) is None) == (ended == NOWHERE), seed
        for v in plain.device:
            found = state.device[v], state.start[v], state.finish[v]
            assert found == (plain.device[v], plain.start[v], plain.end[v]), (seed, v)
        moved += len(set(plain.device.values())) > 1
        failed += ended != NOWHERE
    assert moved > count * 3 / 10 and failed > count / 250, (moved, failed)


@few_and_many(0, 1)
def test_a_move_never_delays_consumers(first: int, count: int) -> None:
    """The proof of Section 5.2: even if all consumers sit on the previous device they have it no later."""
    moves = 0
    for seed, tasks in drawn(first, count):
        if tasks.contention:
            continue
        order, back = cpd_topo(tasks), back_cost(tasks)
        state, arrays, replay = adjusted(tasks, order)[1], arrays_of(tasks), new_state(tasks)
        previous, start = 0, np.empty(len(tasks.limit))
        for v in order[state.device[order] != NOWHERE]:
            d = int(state.device[v])
            start_times(arrays, replay, v, start)
            if d != previous and start[previous] < np.inf:
                stays = start[previous] + tasks.time[previous, v]
                assert state.finish[v] + back[v] < stays, (seed, v)
                moves += 1
            book(arrays, replay, v, d)
            previous = d
        assert replay.finish.tolist() == state.finish.tolist(), seed
    assert moves > count * 3 / 10, moves


def filled(tasks: Tasks, order: Ints, reserve: bool = True) -> tuple[int, PartialSchedule]:
    state = new_state(tasks)
    return int(fill(arrays_of(tasks, reserve), state, order)), state


def test_a_full_device_is_left_until_all_are_full() -> None:
    """Devices of 4: 3 to the first; 2 makes it full, to the second; 1 there; 2 makes that full, fits nowhere.

    With twice 1 instead, the second is full after one, and the best effort is the first, with 1 left.
    """
    ended, state = filled(tasks_by_hand([1.0] * 4, {}, size=[3.0, 2.0, 1.0, 2.0], memory=4.0), np.arange(4))
    assert (ended, state.device.tolist()) == (3, [0, 1, 1, NOWHERE])
    ended, state = filled(
        tasks_by_hand([1.0] * 5, {}, size=[3.0, 2.0, 1.0, 1.0, 1.0], memory=4.0), np.arange(5)
    )
    assert (ended, state.device.tolist()) == (NOWHERE, [0, 1, 1, 1, 0])


def test_best_effort_takes_the_most_room() -> None:
    """Devices of 4: 1; 4 fills the second; 2 makes that full and goes to the first, then 1 as well."""
    tasks = tasks_by_hand([1.0] * 4, {}, size=[1.0, 4.0, 2.0, 1.0], memory=4.0)
    ended, state = filled(tasks, np.arange(4))
    assert (ended, state.device.tolist()) == (NOWHERE, [0, 1, 0, 0])


def plain_fill(tasks: Tasks, order: Ints, reserve: bool) -> list[int]:
    """The device of every task up to the first that fits nowhere."""
    room, full = tasks.limit.copy(), 0
    home: dict[int, int] = {}
    device: list[int] = []
    for v in order.tolist():
        mates = np.flatnonzero(np.equal(tasks.group, tasks.group[v]))
        may = np.asarray(np.isfinite(tasks.time[:, mates]).all(axis=1))
        new = tasks.group[v] not in home
        need = tasks.size[mates].sum() if new else (0.0 if reserve else tasks.size[v])
        fitting = [d for d in range(len(room)) if may[d] and need <= room[d]]
        if new:
            while full < len(room) and may[full] and need > room[full]:
                full += 1
            best = sorted(fitting, key=lambda d: (d < full, d if d >= full else -room[d], d))
        else:
            best = [d for d in fitting if d == home[tasks.group[v]]]
        if not best:
            break
        home[tasks.group[v]] = best[0]
        taken = need if reserve or not new else tasks.size[v]
        room[best[0]] -= taken
        device.append(best[0])
    return device


@few_and_many(3)
def test_equal_to_the_rule_in_plain_python(first: int, count: int) -> None:
    failed = back = 0
    for seed, tasks in drawn(first, count):
        reserve, order = seed % 2 == 0, dfs_topo(tasks)
        ended, state = filled(tasks, order, reserve)
        expected = plain_fill(tasks, order, reserve)
        assert state.device[order][: len(expected)].tolist() == expected, seed
        assert (ended == NOWHERE) == (len(expected) == tasks.n), seed
        failed += ended != NOWHERE
        back += bool((np.diff(expected) < 0).any())
    assert failed > count / 250 and back > count / 40, (failed, back)


PLACERS = {
    "dfs-topo": place_dfs_topo,
    "cpd-topo": place_cpd_topo,
    "order-place": place_order_place,
    "celeritas": place_celeritas,
}


@few_and_many(0)
@pytest.mark.parametrize("place", PLACERS.values(), ids=PLACERS)
def test_placements_obey_every_limit(place: PlaceTasks, first: int, count: int) -> None:
    found_none = several = 0
    for seed, tasks in drawn(first, count):
        placing = Placing(fusion_range=1 + seed % 5, fusion_memory=0.5, reserve_memory=seed % 3 > 0)
        found = place(tasks, Settings(placing=placing))
        if found is None:
            assert np.isfinite(tasks.limit).any() or not tasks.group_allowed.any(axis=0).all(), seed
            found_none += 1
            continue
        device, position = found.device, np.argsort(found.order)
        assert (np.bincount(device, tasks.size, len(tasks.limit)) <= tasks.limit).all(), seed
        assert np.isfinite(tasks.time[device, np.arange(tasks.n)]).all(), seed
        assert all(len(set(device[tasks.group == g].tolist())) == 1 for g in range(len(tasks.group_size)))
        assert (position[tasks.before.items] < position[tasks.before.owners()]).all(), seed
        if not tasks.contention and (tasks.time > 0).all():
            assert makespan(tasks, device, found.order) <= found.estimate * (1 + 1e-12), seed
        several += len(set(device.tolist())) > 1
    assert found_none < count * 2 / 5 and several > count * 2 / 25, (found_none, several)


def test_clusters_come_apart_where_they_fit_nowhere() -> None:
    """Devices of 5 with a task of 3 each: the cluster of 2 + 2 fits on neither, but one task on either."""
    tasks = tasks_by_hand(
        [1.0] * 4, {(0, 1): 1.0, (2, 3): 9.0, (1, 2): 1.0}, size=[3.0, 3.0, 2.0, 2.0], memory=5.0
    )
    for place in (place_order_place, place_celeritas):
        found = place(tasks, Settings(placing=Placing(fusion_range=2, fusion_memory=0.8)))
        assert found is not None
        assert np.bincount(found.device, tasks.size).tolist() == [5.0, 5.0]
        assert found.statistics["clusters"] == 4


def test_taken_apart_clusters_keep_their_place() -> None:
    cluster, single = np.array([0, 0, 1, 1, 2]), np.array([False, False, True, True, False])
    assert taken_apart(cluster, single).tolist() == [0, 0, 1, 2, 3]
    assert taken_apart(np.array([0, 1, 0, 1]), np.array([True, False, True, False])).tolist() == [0, 2, 1, 2]


def test_figures_of_the_fusion() -> None:
    """Ratio (5 + 1 + 4) / 4 before, 1 / 4 after fusing two pairs."""
    tasks = tasks_by_hand([1.0] * 4, {(0, 1): 5.0, (1, 2): 1.0, (2, 3): 4.0}, size=1.0)
    found = place_celeritas(tasks, Settings(placing=Placing(fusion_memory=0.5)))
    assert found is not None
    assert found.statistics == {"clusters": 2.0, "ccr": 2.5, "ccr_fused": 0.25}


@pytest.mark.parametrize(("first", "count"), [(70_000, 6), pytest.param(70_006, 19, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PLACERS)
def test_solve_and_evaluator_agree(name: str, first: int, count: int) -> None:
    plans = 0
    for seed, contention in product(range(first, first + count), (False, True)):
        graph, devices = random_workload(np.random.default_rng(seed), 12, 4)
        transfers = Transfers(contention=contention)
        try:
            plan = solve(graph, devices, "makespan", method=name, transfers=transfers, fusion_range=3)
        except (InfeasibleError, NoPlanFound, WorkloadError):
            continue
        again = evaluate(
            graph,
            devices,
            plan.placement,
            "makespan",
            transfers=transfers,
            execution_order=plan.execution_order,
        )
        assert again.feasible and again.value == pytest.approx(plan.value), seed
        assert plan.bound <= plan.value * (1 + 1e-9)
        plans += 1
    assert plans > count * 12 / 25, plans


def test_two_devices_are_better_than_one_where_transfers_are_cheap() -> None:
    """Two chains of 10 steps side by side: Adjusting sends one away, Order-Place never does."""
    edges = [(v, v + 2) for v in range(18)]
    graph = Graph.from_arrays({"accelerator": [1.0] * 20}, edges, 0.5, size=1.0)
    two = Devices.accelerated(2)
    plans = {name: solve(graph, two, "makespan", method=name, fusion_range=5) for name in PLACERS}
    assert plans["order-place"].value == 20.0
    assert plans["celeritas"].value == 10.0
