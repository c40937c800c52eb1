"""Plans for tied weights: the better of copies and of one device, in every verb and on the command line."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partitioner as pt
from partitioner.cli.command_line import main


def graph_of(times: list[float], weights: float, output: float = 1e5) -> pt.Graph:
    """A chain whose first and last layer share weights."""
    ends = {0, len(times) - 1}
    return pt.Graph.chain(
        [
            pt.Layer(
                f"l{i}",
                time,
                2 * time,
                output=output,
                parameters=weights if i in ends else 1e6,
                shared={"word": weights} if i in ends else {},
            )
            for i, time in enumerate(times)
        ],
        bandwidth=1e9,
    )


DEEP = graph_of([1.0] * 6, 1e6)


def placements(count: int, devices: pt.Devices) -> Any:
    """All placements of the layers of a chain."""
    for names in product(devices.names, repeat=count):
        yield {f"l{i}{end}": name for i, name in enumerate(names) for end in ("", "/backward")}


WEIGHTS, MEMORY = st.floats(1e4, 2e7), st.one_of(st.none(), st.floats(1e6, 1e8))


def check_auto(times: list[int], weights: float, memory: float | None) -> None:
    """Compare `auto` with all placements.

    Those with all readers on one device hold the weights once; the others have copies.
    """
    graph, devices = (
        graph_of([float(each) for each in times], weights),
        pt.Devices.accelerated(2, memory=memory),
    )
    best = float("inf")
    for tied in ("together", "copied"):
        other = pt.with_training_states(graph, tied=tied)
        for placement in placements(len(times), devices):
            found = pt.evaluate(other, devices, placement)
            torn = len({placement["l0"], placement[f"l{len(times) - 1}"]}) > 1 and tied == "together"
            if found.feasible and not torn:
                best = min(best, found.value)
    try:
        plan = pt.solve(graph, devices, split="free", tied="auto", workers=1, gap=0.0)
    except pt.InfeasibleError:
        assert best == float("inf")
        return
    assert plan.value == pytest.approx(best) and plan.bound <= plan.value * (1 + 1e-9)
    assert pt.evaluate(graph, devices, plan).value == plan.value
    assert plan.options["tied"] in ("copied", "together")


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=3, max_size=4), WEIGHTS, MEMORY)
def test_auto_is_the_best_of_all_placements(times: list[int], weights: float, memory: float | None) -> None:
    check_auto(times, weights, memory)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=3, max_size=5), WEIGHTS, MEMORY)
def test_auto_is_the_best_of_all_longer_placements(
    times: list[int], weights: float, memory: float | None
) -> None:
    check_auto(times, weights, memory)


def test_copies_cost_an_exchange_and_one_device_a_part_of_the_balance() -> None:
    light, heavy = (graph_of([1.0] * 6, weights) for weights in (1e5, 1e8))
    devices = pt.Devices.accelerated(3)
    cheap, dear = (pt.solve(each, devices, tied="auto") for each in (light, heavy))
    assert cheap.options["tied"] == "copied" and dear.options["tied"] == "together"
    assert cheap.status == dear.status == "optimal"
    assert any(
        "tied weights are copied: on one device the best plan found has" in note for note in cheap.notes
    )
    assert any("tied weights are on one device: copied the best plan" in note for note in dear.notes)
    untied = pt.solve(
        pt.Graph.chain([pt.Layer(f"l{i}", 1.0, 2.0, output=1e5) for i in range(6)], bandwidth=1e9), devices
    )
    assert cheap.value <= 1.05 * untied.value


def test_a_note_says_what_tying_costs() -> None:
    devices = pt.Devices.accelerated(3)
    whole = pt.Constraints(whole=("training_ties",))
    for options in ({"tied": "together"}, {"constraints": whole}):
        plan = pt.solve(DEEP, devices, **options)
        (note,) = [each for each in plan.notes if "all that reads tied weights" in each]
        copied = pt.solve(DEEP, devices, tied="copied")
        assert f"has {copied.value:.6g}, {1 - copied.value / plan.value:.0%} less" in note
    assert not any("tied" in note for note in pt.solve(DEEP, devices, tied="copied").notes)
    dear = graph_of([1.0] * 6, 1e8)
    assert not any("tied" in note for note in pt.solve(dear, devices, tied="together").notes)


def test_memory_for_one_kind_of_plans_only() -> None:
    """Where all readers do not fit on one device, copies are taken; where copies do not, one device."""
    heavy = pt.Graph.chain(
        [
            pt.Layer("a", 1.0, 2.0, output=1e4, parameters=8e6, shared={"word": 1e6}),
            pt.Layer("b", 1.0, 2.0, output=1e4, parameters=1e6),
            pt.Layer("c", 1.0, 2.0, parameters=8e6, shared={"word": 1e6}),
        ],
        bandwidth=1e9,
    )
    assert pt.solve(heavy, pt.Devices.accelerated(2, memory=20e6), tied="auto").options["tied"] == "copied"
    tight = graph_of([1.0] * 3, 10e6)
    plan = pt.solve(tight, pt.Devices.accelerated(1, memory=24e6), tied="auto")
    assert plan.options["tied"] == "together"
    with pytest.raises(pt.InfeasibleError):
        pt.solve(tight, pt.Devices.accelerated(1, memory=10e6), tied="auto")


def test_every_verb_takes_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Evaluation, certificate, simulation and explanation have the exchange, from Python and from files."""
    devices = pt.Devices.accelerated(3)
    copied = pt.with_training_states(DEEP, tied="copied")
    plan = pt.solve(DEEP, devices, tied="auto")
    assert pt.certify(DEEP, devices, plan).value == plan.value
    assert (
        pt.schedule.simulate(DEEP, devices, plan, "1f1b", 4).makespan
        == pt.schedule.simulate(copied, devices, plan.placement, "1f1b", 4).makespan
        > pt.schedule.simulate(DEEP, devices, plan.placement, "1f1b", 4).makespan
    )
    assert pt.explain(DEEP, devices, plan).value == plan.value
    workload, file = tmp_path / "workload.json", tmp_path / "plan.json"
    pt.Workload(DEEP, devices).save(workload)
    assert main(["solve", str(workload), "--tied", "auto", "--output", str(file), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == plan.value
    for command in ("evaluate", "explain", "simulate"):
        more = ["--schedule", "1f1b", "--microbatches", "4"] if command == "simulate" else []
        assert main([command, str(workload), str(file), "--format", "json", *more]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found.get("value", plan.value) == plan.value


def test_auto_is_for_solve() -> None:
    devices = pt.Devices.accelerated(3)
    with pytest.raises(pt.OptionError, match=r"tied = 'auto': is for solve; here must be copied or together"):
        pt.recommend(DEEP, devices, 4, tied="auto")
    with pytest.raises(pt.OptionError, match="tied = 'auto'"):
        pt.compare_methods(DEEP, devices, tied="auto")
    assert pt.compare_methods(DEEP, devices, methods=["dp"], tied="copied").best is not None


def test_sizes_are_those_of_the_better_kind() -> None:
    """The fewest devices for a load, and the least memory with which there is a plan."""
    devices, slow = pt.Devices.accelerated(3), 11.5
    assert pt.fewest_devices(DEEP, devices, max_time_per_sample=slow, tied="auto").count == 2
    found = [pt.least_memory(DEEP, devices, tied=tied).memory for tied in ("auto", "copied", "together")]
    assert found[0] == pytest.approx(min(found[1:]))
