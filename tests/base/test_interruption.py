"""Ctrl-C ends a run with the plan in hand, and leaves the program's handler as it was."""

from __future__ import annotations

import signal
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, Progress, solve
from partitioner.base.interruption import CompilationStopped, Interruption


def wide_graph() -> Graph:
    """Four chains of ten nodes between two joints: 14,643 ideals, and transfers that matter."""
    rng = np.random.default_rng(0)
    edges, ends = [], []
    for branch in range(4):
        chain = [0, *range(1 + 10 * branch, 11 + 10 * branch)]
        edges += list(pairwise(chain))
        ends.append(chain[-1])
    edges += [(end, 41) for end in ends]
    return Graph.from_arrays({"accelerator": rng.uniform(1, 3, 42)}, edges, rng.uniform(0.5, 2, len(edges)))


def test_the_plan_in_hand_is_returned() -> None:
    """A signal during the exact search gives the incumbent, its bound, and the reason."""
    pressed: list[Progress] = []

    def press(progress: Progress) -> None:
        if np.isfinite(progress.value) and not pressed:
            pressed.append(progress)
            signal.raise_signal(signal.SIGINT)

    plan = solve(wide_graph(), Devices.accelerated(5), on_progress=press)
    assert plan.stop_reason == "interrupted"
    assert plan.status == "feasible"
    assert plan.bound < plan.value
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_before_the_method_has_a_plan_it_is_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal before the method begins gives the plan that needs no method."""

    def entered(self: Interruption) -> Interruption:
        self.by_keyboard = True
        return self

    monkeypatch.setattr(Interruption, "__enter__", entered)
    plan = solve(wide_graph(), Devices.accelerated(5))
    assert plan.stop_reason == "interrupted"
    assert plan.value >= plan.bound > 0
    monkeypatch.setattr("partitioner.planning.run.find_first_plan", lambda *_: None)
    monkeypatch.setattr("partitioner.methods.dp.exact.best_linear", _nothing)
    with pytest.raises(KeyboardInterrupt):
        solve(wide_graph(), Devices.accelerated(5))


def _nothing(*_: Any) -> None:
    raise CompilationStopped


def test_a_second_signal_interrupts_at_once() -> None:
    """The first Ctrl-C is a wish, the second one an order."""
    with pytest.raises(KeyboardInterrupt), Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.asked
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_stays() -> None:
    """Where the program handles Ctrl-C itself, nothing is changed."""
    caught: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *_: caught.append(True))
    try:
        with Interruption() as interruption:
            signal.raise_signal(signal.SIGINT)
        assert caught == [True]
        assert not interruption.asked
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_can_solve() -> None:
    """Signals belong to the main thread; elsewhere a run just does not listen."""
    plans = []
    devices = Devices.accelerated(2)
    thread = threading.Thread(target=lambda: plans.append(solve(wide_graph(), devices, method="dpl")))
    thread.start()
    thread.join()
    assert plans[0].value > 0
