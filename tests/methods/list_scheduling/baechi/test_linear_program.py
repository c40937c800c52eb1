"""A large linear program ends when the user wants it to, and a worker says what this process would."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from partitioner import Devices, Graph, Transfers
from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption
from partitioner.methods.list_scheduling.baechi import linear_program
from partitioner.methods.list_scheduling.baechi.favourites import favourite_children, links_of, relaxation
from partitioner.methods.list_scheduling.baechi.linear_program import SMALL, optimum
from partitioner.methods.method import Settings
from partitioner.problem.tasks import Tasks, tasks_of
from tests.methods.list_scheduling.small_tasks import some_tasks

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
            patch.setattr(linear_program, "SMALL", 0)
            there = optimum(program, Settings())
        assert here is not None and there is not None
        assert here[0] == there[0] and here[1].tolist() == there[1].tolist()
