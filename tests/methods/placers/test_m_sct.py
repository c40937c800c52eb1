"""The linear program of m-SCT has its true value, and rounding leaves each task at most one favourite.

A large linear program ends when the user wants it to, and a worker says what this process would.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from ortools.linear_solver import pywraplp

from partitioner import Devices, Graph, Transfers
from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption
from partitioner.methods.method import Settings
from partitioner.methods.placers import m_sct
from partitioner.methods.placers.m_sct import (
    SMALL,
    TaskPairs,
    favourite_children,
    links_of,
    optimum,
    place_m_sct,
    relaxation,
    rounded,
)
from partitioner.methods.placers.queues import place_by_events
from partitioner.methods.placers.task_arrays import NOWHERE
from partitioner.methods.placing import Placing
from partitioner.problem.tasks import Tasks, tasks_of
from tests.methods.placers.small_tasks import some_tasks

AT_ONCE = 6.0  # seconds, on a machine that does other work


def large_tasks(n: int = 20_000, window: int = 60) -> Tasks:
    """Tasks that read three of those shortly before them, each; their program takes long."""
    rng = np.random.default_rng(0)
    edges = {(int(u), v) for v in range(window, n) for u in rng.integers(v - window, v, 3)}
    sent = rng.lognormal(0.0, 1.5, n)
    graph = Graph.from_arrays(
        {"accelerator": rng.lognormal(0.0, 1.5, n)}, sorted(edges), [sent[u] for u, _ in sorted(edges)]
    )
    return tasks_of(graph, Devices.accelerated(2), np.arange(n), Transfers(), np.arange(n))


def test_a_deadline_and_ctrl_c_end_it() -> None:
    tasks = large_tasks()
    assert len(links_of(tasks).tail) > SMALL
    began = time.perf_counter()
    late = favourite_children(tasks, Settings(clock=Clock(0.3)))
    assert 0.3 <= time.perf_counter() - began < 0.3 + AT_ONCE
    assert len(late.notes) == 1 and "not solved in time" in late.notes[0]
    stop = threading.Event()
    interruption = Interruption(stop)
    ctrl_c = threading.Timer(0.3, stop.set)
    began = time.perf_counter()
    ctrl_c.start()
    assert len(favourite_children(tasks, Settings(interruption=interruption)).notes) == 1
    assert 0.3 <= time.perf_counter() - began < 0.3 + AT_ONCE


@pytest.mark.parametrize(("first", "count"), [(0, 1), pytest.param(1, 2, marks=pytest.mark.slow)])
def test_a_worker_finds_what_this_process_finds(
    monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    for _, tasks in some_tasks(first, count):
        program = relaxation(tasks, links_of(tasks))
        here = optimum(program, Settings())
        with monkeypatch.context() as patch:
            patch.setattr(m_sct, "SMALL", 0)
            there = optimum(program, Settings())
        assert here is not None and there is not None
        assert here[0] == there[0] and here[1].tolist() == there[1].tolist()


def value_by_glop(tasks: Tasks) -> float:
    """The program as Baechi's paper has it, for another solver."""
    devices = range(len(tasks.limit))
    time_of = [max((t for t in column if np.isfinite(t)), default=0.0) for column in tasks.time.T.tolist()]
    costs: dict[tuple[int, int], float] = {}
    for u in range(tasks.n):
        for e in range(tasks.after.start[u], tasks.after.start[u + 1]):
            c = float(tasks.cost[tasks.after_tensor[e]])
            longest = max(
                (tasks.slope[a, b] * c + tasks.intercept[a, b] for a in devices for b in devices if a != b),
                default=0.0,
            )
            pair = u, int(tasks.after.items[e])
            costs[pair] = costs.get(pair, 0.0) + float(longest)
    solver = pywraplp.Solver.CreateSolver("GLOP")
    x = {pair: solver.NumVar(0, 1, "") for pair in costs}
    s = [solver.NumVar(0, solver.infinity(), "") for _ in range(tasks.n)]
    w = solver.NumVar(0, solver.infinity(), "")
    for (i, j), c in costs.items():
        solver.Add(s[i] + time_of[i] + c * x[i, j] <= s[j])
    for i in range(tasks.n):
        solver.Add(s[i] + time_of[i] <= w)
        outgoing = [x[pair] for pair in costs if pair[0] == i]
        incoming = [x[pair] for pair in costs if pair[1] == i]
        for several in (outgoing, incoming):
            if several:
                solver.Add(solver.Sum(several) >= len(several) - 1)
    solver.Minimize(w)
    assert solver.Solve() == pywraplp.Solver.OPTIMAL
    return float(solver.Objective().Value())


@pytest.mark.parametrize(("first", "count"), [(0, 60), pytest.param(60, 240, marks=pytest.mark.slow)])
def test_the_value_is_that_of_another_solver(first: int, count: int) -> None:
    larger = 0
    for _, tasks in some_tasks(first, count):
        value = favourite_children(tasks, Settings()).statistics["lp_value"]
        assert value == pytest.approx(value_by_glop(tasks), abs=1e-6)
        larger += value > 0
    assert larger > count * 5 / 6


@pytest.mark.parametrize(("first", "count"), [(1_000, 60), pytest.param(1_060, 240, marks=pytest.mark.slow)])
def test_each_task_has_one_favourite_and_one_parent_at_most(first: int, count: int) -> None:
    chosen = 0
    for seed, tasks in some_tasks(first, count):
        placing = Placing(sct_threshold=float(np.random.default_rng(seed).choice([0.0, 0.1, 0.5, 1.0])))
        child = favourite_children(tasks, Settings(placing=placing)).child
        heads = child[child != NOWHERE].tolist()
        assert len(heads) == len(set(heads))
        assert all(child[u] == NOWHERE or child[u] in tasks.after.row(u) for u in range(tasks.n))
        chosen += len(heads)
    assert chosen > count


def test_rounding_keeps_what_the_threshold_allows_where_no_two_links_clash() -> None:
    """Of random fractions: a link at most the threshold without rivals is kept, others never appear."""
    kept = 0
    for seed, tasks in some_tasks(2000, 300):
        links = links_of(tasks)
        x = np.random.default_rng(seed).random(len(links.tail))
        child = rounded(links, x, tasks.n, 0.4)
        small = x <= 0.4
        for u, v, yes in zip(links.tail.tolist(), links.head.tolist(), small.tolist(), strict=True):
            assert yes or child[u] != v
            alone = small[links.tail == u].sum() == 1 and small[links.head == v].sum() == 1
            if yes and alone:
                assert child[u] == v
                kept += 1
    assert kept > 200


def test_a_displaced_child_forgets_its_parent() -> None:
    """0 -> 2, then 0 -> 3 displaces it, then 1 -> 2: 0 keeps 3, for 2 is no longer its child."""
    links = TaskPairs(np.array([0, 0, 1]), np.array([2, 3, 2]), np.ones(3))
    assert rounded(links, np.zeros(3), 4, 0.1).tolist() == [3, 2, NOWHERE, NOWHERE]


def test_without_time_there_are_no_favourites_and_a_note() -> None:
    """Then m-SCT is m-ETF."""
    same = 0
    for _, tasks in some_tasks(3000, 20):
        late = Settings(clock=Clock(0.0))
        favourites = favourite_children(tasks, late)
        assert (favourites.child == NOWHERE).all()
        assert len(favourites.notes) == 1 and "not solved in time" in favourites.notes[0]
        found = place_m_sct(tasks, late)
        plain = place_by_events(tasks, np.full(tasks.n, NOWHERE), True)
        assert (found is None) == (plain is None)
        if found is not None and plain is not None:
            assert found.notes == favourites.notes
            assert found.device.tolist() == plain.device.tolist()
            same += 1
    assert same > 5


def test_the_favourites_are_the_same_every_time() -> None:
    for _, tasks in some_tasks(4000, 50):
        first, second = (favourite_children(tasks, Settings()).child.tolist() for _ in range(2))
        assert first == second
