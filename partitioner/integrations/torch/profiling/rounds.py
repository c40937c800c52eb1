"""Rounds of a program until the times of its operators are stable, and the median of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.estimation.operations import OperationTimes, is_stable
from partitioner.integrations.torch.profiling.runnable import RunnableGraph
from partitioner.integrations.torch.profiling.timers import OperatorTimer, empty_call
from partitioner.workload.graph import Floats

FEWEST = 6  # rounds that are timed
LARGE = 0.05  # the part of the whole time from which on an operator must be stable by itself


@dataclass(frozen=True)
class TimedRounds:
    """The times of a program's operators.

    Parameters
    ----------
    times
        The median time of each operator in ms, by name.
    rounds
        How many rounds were timed.
    stable
        Whether the times were stable at the end.
    """

    times: Mapping[str, float]
    rounds: int
    stable: bool


class RoundsStopped(Exception):  # noqa: N818 - not an error
    """A request to stop that arrived during a round."""


def timed_rounds(
    program: RunnableGraph,
    timer: OperatorTimer,
    warm_up: int,
    tolerance: float,
    time_limit: float,
    check: Callable[[], None],
    report: Callable[[str, int, int, float], None],
) -> TimedRounds | None:
    """Return the median time of each operator, without that of an empty call.

    After `warm_up` rounds, rounds are timed until the medians of the first and the last half of them differ
    by at most the fraction `tolerance`, or `time_limit` seconds have passed. If `check`, which is called
    before each operator, raises `RoundsStopped`, the rounds until then count; None is returned if there is
    none.
    """
    rounds: list[Floats] = []
    try:
        for number in range(warm_up):
            report("warm-up", number, warm_up, np.inf)
            program.run(timer.run, check)
            timer.milliseconds()
        ends = time.perf_counter() + time_limit
        while len(rounds) < FEWEST or (time.perf_counter() < ends and not _enough(rounds, tolerance)):
            report("profiling", len(rounds), 0, float(rounds[-1].sum()) if rounds else np.inf)
            rounds.append(_one_round(program, timer, check))
    except RoundsStopped:
        timer.milliseconds()
    if not rounds:
        return None
    times = dict(zip(program.names, np.median(rounds, axis=0).tolist(), strict=True))
    return TimedRounds(times, len(rounds), _enough(rounds, tolerance))


def _one_round(program: RunnableGraph, timer: OperatorTimer, check: Callable[[], None]) -> Floats:
    empty = empty_call(timer)
    program.run(timer.run, check)
    found: Floats = np.maximum(timer.milliseconds() - empty, 0.0)
    return found


def _enough(rounds: Sequence[Floats], tolerance: float) -> bool:
    """Whether there are at least the fewest rounds, and the medians of both halves of them agree."""
    if len(rounds) < FEWEST or len(rounds) % 2:
        return False
    half = len(rounds) // 2
    overall = np.median(rounds, axis=0)
    first, last = (_entries(np.median(part, axis=0), overall) for part in (rounds[:half], rounds[half:]))
    return is_stable(first, last, tolerance)


def _entries(times: Floats, overall: Floats) -> OperationTimes:
    """Return the times of the operators that take much of the whole, and the sum of the other ones.

    The time of an operator of some microseconds never repeats within a few per cent.
    """
    large = overall >= LARGE * overall.sum()
    return OperationTimes({"all": np.append(times[large], times[~large].sum())}, ())
