"""A step that a plan can do without ends where it would compile on and on, and the plan says so."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product
from threading import Event
from typing import Any

import pytest

from partitioner import Devices, Graph, solve
from partitioner.base.clock import Clock
from partitioner.base.interruption import CompilationStopped, Interruption
from partitioner.methods.dispensable import dispensable, note_on
from partitioner.methods.method import Settings
from partitioner.methods.placers import portfolio
from partitioner.methods.placers.method import ListMethod
from tests.base.test_clock import fresh_kernel

ENOUGH = Settings(clock=Clock(60.0, compiling=-1.0))


def attempt(settings: Settings, known: bool = True) -> tuple[list[str], list[float]]:
    """What is left out of a step that compiles a kernel, and what the step found."""
    left_out: list[str] = []
    found: list[float] = []
    with dispensable(settings, "doubling", left_out, known):
        found.append(fresh_kernel()(2.0))
    return left_out, found


@pytest.mark.parametrize(
    ("settings", "known", "ends"),
    [
        (ENOUGH, True, True),
        (ENOUGH, False, False),
        (replace(ENOUGH, deterministic=True), True, False),
        (replace(ENOUGH, clock=Clock(60.0, compiling=1e9)), True, False),
        (Settings(), True, False),
    ],
)
def test_a_step_ends_only_if_it_would_compile_for_too_long(
    settings: Settings, known: bool, ends: bool
) -> None:
    assert attempt(settings, known) == ((["doubling"], []) if ends else ([], [4.0]))


def test_a_step_whose_kernels_are_compiled_is_never_left_out() -> None:
    kernel = fresh_kernel()
    kernel(2.0)
    left_out: list[str] = []
    with dispensable(ENOUGH, "doubling", left_out):
        assert kernel(3.0) == 6.0
    assert left_out == [] and note_on(left_out, ENOUGH) == ()


def test_a_step_that_is_left_out_twice_is_named_once() -> None:
    (note,) = note_on(["local search", "m-sct", "local search"], ENOUGH)
    assert ": local search, m-sct; `partitioner warm-up`" in note


def test_a_run_that_should_end_is_not_taken_for_a_step_that_is_left_out() -> None:
    stop = Event()
    stop.set()
    with pytest.raises(CompilationStopped):
        attempt(replace(ENOUGH, interruption=Interruption(stop)))


def test_a_part_of_the_time_has_what_is_left_for_compiling() -> None:
    part = replace(ENOUGH, clock=Clock(60.0, compiling=5.0)).within(1.0)
    assert part.clock.compiling == pytest.approx(5.0) and not part.compiled_enough
    assert ENOUGH.within(1.0).compiled_enough
    assert Settings().within(1.0).clock.compiling == math.inf


def test_a_plan_names_the_placers_that_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the placers before them, and a deterministic run leaves out none."""
    heft = portfolio.placers()["heft"]

    def slow(tasks: Any, settings: Settings) -> Any:
        fresh_kernel()(2.0)
        return heft.place(tasks, settings)

    placers = {"heft": heft, "slow": ListMethod(slow)}
    monkeypatch.setattr(portfolio, "placers", lambda: placers)
    graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0, 2.0]}, [(0, 1), (0, 2), (1, 3)], 1.0)
    ask = partial(solve, graph, Devices.accelerated(2), "makespan", method="portfolio")
    ask()  # compiles what the other calls share
    for enough, deterministic in product((True, False), repeat=2):
        monkeypatch.setattr(Clock, "may_compile", not enough)
        notes = " ".join(ask(deterministic=deterministic).notes)
        left = enough and not deterministic
        assert ("slow; `partitioner warm-up` compiles all kernels" in notes) == left
        assert ("heft, slow" in notes) != left
