"""Recommendations: every line is what the simulation says of its plan, and all of them fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partitioner import Constraints, DeviceKind, Devices, Graph, OptionError, load_plan, recommend
from partitioner.cli.command_line import main
from partitioner.planning.comparison.copies import Spread, spreads
from partitioner.schedule import simulate
from partitioner.workload.levels import Level


def line(nodes: int = 6) -> Graph:
    """A path with backward nodes that mirror it."""
    count = 2 * nodes
    return Graph.from_arrays(
        {"gpu": [1.0 + i % 3 for i in range(count)]},
        [(i, i + 1) for i in range(count - 1)],
        0.25,
        activations=1.0,
        parameters=0.5,
        backward=[i >= nodes for i in range(count)],
        color=[min(i, count - 1 - i) for i in range(count)],
    )


def gpus(count: int = 4, memory: float | None = None) -> Devices:
    return Devices((DeviceKind("gpu", count, memory, bandwidth=4.0),))


def test_every_line_is_simulated_and_the_fastest_comes_first() -> None:
    graph, devices = line(), gpus()
    found = recommend(graph, devices, 8, schedules=["gpipe", "1f1b", "zb_h1"], time_limit=5)
    usable = [one for one in found.choices if not one.against]
    assert usable and [one.makespan for one in usable] == sorted(one.makespan for one in usable)
    assert found.best is usable[0]
    for one in usable:
        assert one.plan is not None and one.timeline is not None
        again = simulate(graph, devices, one.plan, one.recipe.schedule, 8)
        assert one.makespan == one.plan.value == again.makespan
        assert one.plan.bound <= one.makespan and again.fits.all()
    assert {one.copies for one in usable} >= {"1", "2"}


def test_the_trade_has_no_line_that_another_one_beats() -> None:
    found = recommend(line(), gpus(), 8, schedules=["gpipe", "1f1b"], time_limit=4)
    for one in found.trade:
        assert not any(
            other.makespan <= one.makespan and other.full < one.full
            for other in found.choices
            if not other.against
        )


def test_what_does_not_fit_is_named_with_the_reason() -> None:
    found = recommend(line(), gpus(memory=22.0), 8, schedules=["gpipe", "1f1b"], time_limit=4)
    against = [one for one in found.choices if one.against]
    assert {one.schedule for one in against} >= {"gpipe"}
    reason = "not used, no stages fit the memory and the constraints: gpipe x"
    assert reason in found.summary(80) and reason in found.summary(160)
    nothing = recommend(line(), gpus(memory=3.0), 8, schedules=["gpipe"], time_limit=2)
    assert nothing.best is None and "no pipeline can be used" in nothing.summary()


def test_constraints_hold_for_every_line() -> None:
    two = Constraints(stages=2)
    found = recommend(line(), gpus(), 4, schedules=["1f1b"], constraints=two, time_limit=3)
    for one in found.choices:
        assert one.against or (one.plan is not None and len(one.plan.stages) == 2)


def test_copies_are_powers_of_two_that_divide_the_groups() -> None:
    assert list(spreads(gpus(6), 32)) == [Spread(4), Spread(2), Spread(1), Spread(1, 6)]
    assert list(spreads(gpus(8), 3)) == [Spread(2), Spread(1), Spread(1, 3)]
    servers = Devices((DeviceKind("gpu", 6),), levels=(Level("server", {"gpu": 3}, 4.0),))
    assert list(spreads(servers, 32)) == [Spread(1), Spread(1, 6)]


@pytest.mark.parametrize(
    ("microbatches", "schedules", "message"),
    [
        (0, None, "microbatches = 0: must be an integer of at least 1"),
        (4, ["inference"], "schedules = 'inference': must be"),
        (4, ["waltz"], "schedules = 'waltz': must be"),
    ],
)
def test_what_cannot_be_asked(microbatches: int, schedules: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        recommend(line(), gpus(), microbatches, schedules=schedules)


def test_the_command_line_writes_the_fastest_plan(workload_file: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "plan.json"
    words = ["recommend", str(workload_file), "--microbatches", "4", "--schedules", "1f1b,gpipe"]
    assert main([*words, "--time-limit", "2", "--output", str(path)]) == 0
    assert "is the fastest" in capsys.readouterr().out
    assert main([*words, "--time-limit", "2", "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    best = record["choices"][0]
    assert load_plan(path).value == pytest.approx(best["makespan"], rel=0.2)
    assert main(["simulate", str(workload_file), str(path)]) == 0
