"""Plans under recompute, zero and optimizer are those of the graph that these make, in every call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partitioner as pt
from partitioner.cli.command_line import main

LAYERS = [
    pt.Layer(f"l{i}", 1.0 + i, 2.0, parameters=8e6, activations=20e6, output=1e6, optimizer=16e6)
    for i in range(5)
]
GRAPH = pt.Graph.chain(LAYERS, bandwidth=1e9)
DEVICES = pt.Devices.accelerated(3)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "recompute": st.sampled_from(["none", "full"]),
        "zero": st.integers(0, 3),
        "data_parallel": st.integers(1, 8),
        "optimizer": st.sampled_from(["adam", "adam_8bit", "momentum", "sgd"]),
    },
)


@settings(max_examples=25, deadline=None)
@given(OPTIONS)
def test_plan_evaluation_certificate_and_simulation_agree(options: dict[str, Any]) -> None:
    """With the graph as it was, and with the one that the options make."""
    other = pt.with_training_states(GRAPH, **options)
    plan = pt.solve(GRAPH, DEVICES, schedule="1f1b", microbatches=6, objective="throughput", **options)
    direct = pt.solve(other, DEVICES, schedule="1f1b", microbatches=6, objective="throughput")
    assert plan.value == direct.value and plan.workload_sha256 == direct.workload_sha256
    assert [one.memory for one in plan.devices] == [one.memory for one in direct.devices]
    for graph in (GRAPH, other):
        found = pt.evaluate(graph, DEVICES, plan)
        assert found.value == plan.value and [x.memory for x in found.loads] == [
            x.memory for x in plan.devices
        ]
        assert pt.certify(graph, DEVICES, plan, schedule="1f1b", microbatches=6).value == plan.value
        assert pt.schedule.simulate(graph, DEVICES, plan).makespan == (
            pt.schedule.simulate(other, DEVICES, direct, "1f1b", 6).makespan
        )


def test_sizes_and_recommendations_follow() -> None:
    options: dict[str, Any] = {"recompute": "full", "optimizer": "sgd"}
    other = pt.with_training_states(GRAPH, **options)
    less = pt.least_memory(GRAPH, DEVICES, schedule="1f1b", **options).memory
    assert less == pt.least_memory(other, DEVICES, schedule="1f1b").memory
    assert less < pt.least_memory(GRAPH, DEVICES, schedule="1f1b").memory
    small = pt.Devices.accelerated(3, memory=less)
    with pytest.raises(pt.InfeasibleError):
        pt.fewest_devices(GRAPH, small, schedule="1f1b")
    assert pt.fewest_devices(GRAPH, small, schedule="1f1b", **options).count == 3
    found = pt.recommend(GRAPH, small, 4, schedules=["1f1b"], **options)
    assert found.best is not None and found.best.plan is not None
    assert pt.evaluate(GRAPH, small, found.best.plan).feasible
    assert pt.recommend(GRAPH, small, 4, schedules=["1f1b"]).best is None
    with pytest.raises(pt.OptionError, match="option 'zeros' is unknown"):
        pt.recommend(GRAPH, small, 4, zeros=1)


def test_the_command_line_takes_them_for_any_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan that is written is evaluated with the options or without them, to the same values."""
    workload, plan = tmp_path / "workload.json", tmp_path / "plan.json"
    pt.Workload(GRAPH, DEVICES).save(workload)
    given = ["--recompute-layers", "full", "--zero", "2", "--data-parallel", "4", "--optimizer", "sgd"]
    assert main(["solve", str(workload), *given, "--schedule", "1f1b", "--output", str(plan)]) == 0
    capsys.readouterr()
    shown = []
    for more in ([], given):
        assert main(["evaluate", str(workload), str(plan), "--format", "json", *more]) == 0
        shown.append(json.loads(capsys.readouterr().out))
    assert shown[0] == shown[1]
    options: dict[str, Any] = {"recompute": "full", "zero": 2, "data_parallel": 4, "optimizer": "sgd"}
    direct = pt.solve(GRAPH, DEVICES, schedule="1f1b", **options)
    assert shown[0]["value"] == direct.value == pt.load_plan(plan).value
    for command in ("least-memory", "fewest-devices"):
        assert main([command, str(workload), *given, "--schedule", "1f1b"]) == 0
    assert main(["recommend", str(workload), "--microbatches", "4", "--schedules", "1f1b", *given]) == 0
