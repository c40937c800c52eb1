"""A run's deadline moves by the time in which kernels compile, and nothing listens once no run goes on."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
from numba.core import event

from partitioner.base import compiled
from partitioner.base.clock import METER, OBJECTS, Clock, collect_seldom
from partitioner.base.interruption import CompilationStopped


def fresh_kernel() -> Callable[[float], float]:
    """A kernel of the package that is not compiled yet."""

    def twice(x: float) -> float:
        return 2 * x

    twice.__module__ = "partitioner.twice"
    kernel: Callable[[float], float] = compiled.njit()(twice)
    return kernel


def listeners() -> list[Any]:
    """The listeners to compilations of this package."""
    return [
        one for one in event._registered["numba:compile"] if type(one).__module__.startswith("partitioner")
    ]


def test_compiling_takes_nothing_of_the_limit() -> None:
    """What is left before and after a compilation differs by less than the compilation took."""
    seen: list[float] = []
    with METER.watched(lambda: seen.append(time.perf_counter())):
        clock = Clock(60.0)
        deadline = clock.deadline
        began = time.perf_counter()
        assert fresh_kernel()(2.0) == 4.0
        took = time.perf_counter() - began
        assert deadline is not None and clock.deadline == pytest.approx(deadline + clock.compiled)
        assert 0 < clock.compiled <= took
        assert 60.0 - clock.left <= time.perf_counter() - clock.started - clock.compiled + 0.01
        before = clock.compiled
        fresh_kernel()
        assert clock.compiled == before
    assert len(seen) == 1


def test_it_listens_during_runs_only() -> None:
    """Runs within runs too; outside of them compilations are not counted."""
    assert listeners() == []
    with METER.watched(lambda: None):
        with METER.watched(lambda: None):
            assert len(listeners()) == 1
        assert len(listeners()) == 1
    assert listeners() == []
    before = METER.seconds
    fresh_kernel()(1.0)
    assert METER.seconds == before


def test_cycles_are_searched_for_as_the_process_asked() -> None:
    """By runs that compile; only what a program of the package's own calls makes that rare."""
    asked, seen = gc.get_threshold(), []
    with METER.watched(lambda: seen.append((gc.isenabled(), gc.get_threshold()))):
        fresh_kernel()(1.0)
    assert seen == [(True, asked)] and gc.get_threshold() == asked
    try:
        collect_seldom()
        assert gc.get_threshold()[0] == OBJECTS
    finally:
        gc.set_threshold(*asked)


def test_a_run_that_should_end_compiles_nothing_more() -> None:
    """An exception before a compilation passes through, and the meter is at rest."""
    kernel = fresh_kernel()

    def refuse() -> None:
        raise CompilationStopped

    with METER.watched(refuse), pytest.raises(CompilationStopped):
        kernel(1.0)
    first = METER.seconds
    time.sleep(0.02)
    assert METER.seconds == first
    assert kernel(1.0) == 2.0


def test_a_clock_within_a_clock_ends_no_later() -> None:
    assert Clock(1.0).at_most(5.0).limit <= 1.0
    assert Clock().at_most(5.0).limit == 5.0
    assert Clock(0.0).expired and not Clock().expired
