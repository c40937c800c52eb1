"""Placers look at the clock between portions of the tasks, which changes nothing in what they find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import Devices, Placer, Transfers
from partitioner.base.clock import Clock
from partitioner.methods.method import OutOfTimeError, Settings
from partitioner.methods.placers import queues
from partitioner.methods.placers.found import PORTION, PlaceTasks
from partitioner.methods.placers.heft import place_composed, place_heft
from partitioner.methods.placers.m_etf import place_etf, place_m_etf
from partitioner.methods.placers.method import as_method
from partitioner.methods.placers.portfolio import solve_portfolio
from partitioner.methods.placing import Choice, Placing
from partitioner.problem.variants import OperatorNodes
from tests.large_graphs import large_graph
from tests.methods.placers.cases import problem_of


def last_fitting(choice: Choice) -> int:
    """Return a device of the user's choice."""
    return int(np.flatnonzero(choice.fits)[-1])


OWN = Settings(placing=Placing(placer=Placer(choose=last_fitting)))
FILL = Settings(placing=Placing(placer=Placer(choose="fill")))
PLACERS = [
    (place_heft, Settings()),
    (place_etf, Settings()),
    (place_m_etf, Settings()),
    (place_composed, OWN),
    (place_composed, FILL),
]
NAMES = ["heft", "etf", "m-etf", "own", "fill"]


def problem(n: int, shape: str = "sparse") -> OperatorNodes:
    devices = Devices.accelerated(3, memory=0.4 * n)
    return problem_of(large_graph(shape, n), devices, Transfers())


@pytest.mark.parametrize(("place", "settings"), PLACERS, ids=NAMES)
def test_portions_change_nothing(
    monkeypatch: pytest.MonkeyPatch, place: PlaceTasks, settings: Settings
) -> None:
    tasks = problem(300).tasks
    whole = place(tasks, settings)
    monkeypatch.setattr("partitioner.methods.placers.found.PORTION", 7)
    parts = place(tasks, settings)
    assert whole is not None and parts is not None
    assert parts.estimate == whole.estimate
    np.testing.assert_array_equal(parts.device, whole.device)
    np.testing.assert_array_equal(parts.order, whole.order)


@pytest.mark.parametrize(("place", "settings"), PLACERS, ids=NAMES)
def test_a_large_graph_is_given_up_when_the_time_is_over(place: PlaceTasks, settings: Settings) -> None:
    """More than one portion; the scheduler that lets time pass takes some more at once."""
    large = problem(3 * queues.VISITS // queues.EACH // 2 if place is place_m_etf else PORTION + 1)
    late = replace(settings, clock=Clock(0.0))
    with pytest.raises(OutOfTimeError):
        place(large.tasks, late)
    outcome = as_method(place)(large, late)
    assert (outcome.parts, outcome.stop_reason, outcome.infeasible) == (None, "time_limit", False)
    assert 0 < outcome.bound < np.inf


def test_the_portfolio_of_a_large_graph_ends_when_the_time_is_over() -> None:
    outcome = solve_portfolio(problem(PORTION + 1), Settings(clock=Clock(0.0)))
    assert (outcome.parts, outcome.stop_reason, outcome.notes) == (None, "time_limit", ())


def test_a_small_graph_is_placed_however_little_time_there_is() -> None:
    for place, settings in PLACERS:
        tasks = problem(50).tasks
        assert place(tasks, replace(settings, clock=Clock(0.0))) is not None
