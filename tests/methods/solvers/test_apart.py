"""Solvers that run in this process do so where no signal handler of the user's can raise."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest
from ortools.math_opt.python import mathopt

from partitioner import Devices
from partitioner.methods.bounds.cover import Covering
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.method import Settings
from partitioner.methods.placers import m_sct
from partitioner.methods.solvers.backends.backend import apart
from partitioner.methods.solvers.backends.mathopt import solve_highs
from partitioner.methods.solvers.program import Builder
from tests.methods.ip.cases import hard_graph, problem_of


class FromHandlerError(Exception):
    """What the user's signal handler raises."""


def raises(number: int, frame: FrameType | None) -> None:
    raise FromHandlerError


@pytest.fixture
def alarm() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, raises)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def test_an_exception_of_a_handler_comes_out_when_the_call_has_ended(alarm: None) -> None:
    """The call swallows whatever is raised in it, as callbacks of native code do."""
    ended: list[bool] = []

    def swallowing() -> None:
        for _ in range(30):
            try:
                time.sleep(0.01)
            except Exception:
                return
        ended.append(True)

    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(FromHandlerError):
        apart(swallowing)
    assert ended == [True]


def test_what_the_call_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0)


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def test_the_covering_bound_solves_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[bool] = []
    solve = mathopt.solve

    def watched(*words: Any, **options: Any) -> Any:
        where.append(in_main_thread())
        return solve(*words, **options)

    monkeypatch.setattr(mathopt, "solve", watched)
    problem = problem_of(hard_graph(), Devices.accelerated(4))
    relaxation = relax(problem)
    covering = Covering(problem, relaxation)
    covering.rise(1.6 * relaxation.bound, 0.0, lambda: len(where) > 2, lambda bound: None)
    assert where and not any(where)


def test_favourite_children_are_found_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[bool] = []
    solve = solve_highs

    def watched(*words: Any) -> Any:
        where.append(in_main_thread())
        return solve(*words)

    monkeypatch.setattr(m_sct, "solve_highs", watched)
    builder = Builder()
    column = builder.variables(1, np.inf)
    builder.add(builder.new_rows(1, 2.0, np.inf), column, 1.0)
    answer = m_sct.optimum(builder.program(column), Settings())
    assert answer is not None and answer[0] == pytest.approx(2.0)
    assert where == [False]
