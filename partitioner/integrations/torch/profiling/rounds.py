"""Rounds of a program until the times of its operators are stable, and the median of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.estimation.operations import OperationTimes, is_stable
from partitioner.integrations.torch.profiling.runnable import RunnableGraph
from partitioner.integrations.torch.profiling.timers import OperatorTimer, empty_call
from partitioner.integrations.torch.verification.foreign_load import MOST_FOREIGN
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
    foreign
        The part of all cores that other programs used meanwhile; None if it was not asked for or is unknown.
    """

    times: Mapping[str, float]
    rounds: int
    stable: bool
    foreign: float | None = None


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
    load: Callable[[], float | None] | None = None,
) -> TimedRounds | None:
    """Return the median time of each operator, without that of an empty call.

    After `warm_up` rounds, rounds are timed until the medians of the first and the last half of them differ
    by at most the fraction `tolerance`, or `time_limit` seconds have passed. `load` is given for a clock that
    also runs while other programs do, and says what part of all cores these have used so far: while it is
    more than a tenth, rounds go on until the time limit, and of all rounds the faster half counts, since
    other programs can only make a round slower. If `check`, which is called
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
        while len(rounds) < FEWEST or (
            time.perf_counter() < ends and (is_disturbed(_part(load)) or not _enough(rounds, tolerance))
        ):
            report("profiling", len(rounds), 0, float(rounds[-1].sum()) if rounds else np.inf)
            rounds.append(_one_round(program, timer, check))
    except RoundsStopped:
        timer.milliseconds()
    if not rounds:
        return None
    foreign = _part(load)
    counted = faster_half(rounds) if is_disturbed(foreign) else rounds
    times = dict(zip(program.names, np.median(counted, axis=0).tolist(), strict=True))
    return TimedRounds(times, len(rounds), _enough(rounds, tolerance), foreign)


def shared_by_form(times: Mapping[str, float], forms: Sequence[str]) -> dict[str, float]:
    """Return for each operator the mean time of all operators of its form; the sum is the same.

    What they differ by is what else the machine did meanwhile: equal layers are equal, and a plan is cut at
    the same place whenever the model is profiled.

    Examples
    --------
    >>> shared_by_form({"linear": 2.0, "relu": 0.5, "linear_1": 4.0}, ("linear 8", "relu 8", "linear 8"))
    {'linear': 3.0, 'relu': 0.5, 'linear_1': 3.0}
    """
    number_of = {form: number for number, form in enumerate(dict.fromkeys(forms))}
    number = np.array([number_of[form] for form in forms], np.int64)
    mean = np.bincount(number, list(times.values())) / np.bincount(number)
    return dict(zip(times, mean[number].tolist(), strict=True))


def is_disturbed(foreign: float | None) -> bool:
    """Whether other programs used so much of the cores that times of a wall clock say little."""
    return foreign is not None and foreign > MOST_FOREIGN


def faster_half(rounds: Sequence[Floats]) -> list[Floats]:
    """Return the half of the rounds, rounded up, with the least sums.

    Examples
    --------
    >>> [found.sum() for found in faster_half([np.array([3.0, 1.0]), np.array([1.0, 1.0])])]
    [np.float64(2.0)]
    """
    order = np.argsort([one.sum() for one in rounds], kind="stable")
    return [rounds[i] for i in order[: (len(rounds) + 1) // 2].tolist()]


def _part(load: Callable[[], float | None] | None) -> float | None:
    return None if load is None else load()


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
