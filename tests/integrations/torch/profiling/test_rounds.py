"""Rounds end when the medians agree, an empty call counts nothing, and clocks measure what they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="timers of torch's operators need torch")
from partitioner.integrations.torch.profiling.rounds import (
    FEWEST,
    RoundsStopped,
    TimedRounds,
    timed_rounds,
)
from partitioner.integrations.torch.profiling.timers import empty_call, timer_of

EMPTY = 0.25


class Scripted:
    """A program of two operators, and the timer that says how long each takes in each round."""

    names = ("large", "small")

    def __init__(self, times: Iterator[tuple[float, float]]) -> None:
        self._times = times
        self._kept: list[float] = []

    def run(self, *given: Any) -> None:
        """Run as the program (two arguments) or as the timer (three)."""
        if len(given) == 3:
            self._kept.append(EMPTY)
            return
        _, check = given
        for spent in next(self._times):
            check()
            self._kept.append(spent + EMPTY)

    def milliseconds(self) -> Any:
        kept, self._kept = self._kept, []
        return np.array(kept)


def rounds_of(
    times: Iterator[tuple[float, float]],
    warm_up: int = 0,
    time_limit: float = 60.0,
    check: Callable[[], None] = lambda: None,
    load: Callable[[], float | None] | None = None,
) -> TimedRounds | None:
    script: Any = Scripted(times)
    return timed_rounds(script, script, warm_up, 0.05, time_limit, check, lambda *report: None, load)


def test_under_foreign_load_rounds_repeat_and_the_faster_half_counts() -> None:
    """Rounds that are stable go on while others use the cores; a load that is not known changes nothing."""
    loads = iter([0.5] * 8)
    times = [(10.0, 1.0), (30.0, 1.0)] * 20
    found = rounds_of(iter(times), load=lambda: next(loads, 0.5), time_limit=0.0)
    assert found is not None and found.foreign == 0.5 and found.rounds == FEWEST
    assert found.times["large"] == 10.0
    asked = iter([0.5, 0.5])
    ending = rounds_of(iter([(10.0, 1.0)] * 20), load=lambda: next(asked, 0.0))
    assert ending is not None and ending.foreign == 0.0 and ending.rounds > FEWEST
    for load in (lambda: None, lambda: 0.1):
        quiet = rounds_of(iter([(10.0, 1.0)] * 20), load=load)
        assert quiet is not None and quiet.rounds == FEWEST and quiet.foreign == load()


def test_stable_times_end_with_the_fewest_rounds() -> None:
    found = rounds_of(iter([(9.0, 9.0)] * 2 + [(10.0, 0.1)] * FEWEST), warm_up=2)
    assert found is not None
    assert (found.rounds, found.stable) == (FEWEST, True)
    assert found.times == pytest.approx({"large": 10.0, "small": 0.1})


def test_a_small_operator_may_change_but_not_a_large_one() -> None:
    assert rounds_of(iter([(10.0, 0.1)] * 3 + [(10.0, 0.104)] * 3)) is not None
    drift = iter([(10.0, 0.1)] * 3 + [(12.0, 0.1)] * 100)
    found = rounds_of(drift)
    assert found is not None
    assert found.stable
    assert found.rounds == 14  # the first seven have three of the old times, so that their median is new
    assert found.times["large"] == 12.0


def test_the_time_limit_ends_rounds_that_are_not_stable() -> None:
    found = rounds_of(((10.0 * 2**n, 1.0) for n in range(100)), time_limit=0.0)
    assert found is not None
    assert (found.rounds, found.stable) == (FEWEST, False)


def test_a_stop_in_the_middle_of_a_round_leaves_the_whole_rounds() -> None:
    for operators, whole in ((1, None), (2, 1), (3, 1), (9, 4)):
        left = iter(range(operators))

        def check(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise RoundsStopped

        found = rounds_of(iter([(10.0, 1.0)] * 9), check=check)
        assert (None if found is None else found.rounds) == whole


@pytest.mark.parametrize(("clock", "least", "most"), [("elapsed", 20.0, 5e3), ("thread", 0.0, 10.0)])
def test_the_clock_of_a_thread_does_not_count_what_waits(clock: str, least: float, most: float) -> None:
    timer = timer_of("cpu", clock)
    timer.run(time.sleep, (0.02,), {})
    (spent,) = timer.milliseconds()
    assert least <= spent <= most


def test_an_empty_call_is_measured_and_forgotten() -> None:
    timer = timer_of("cpu", "thread")
    assert 0 < empty_call(timer) < 1
    assert len(timer.milliseconds()) == 0
