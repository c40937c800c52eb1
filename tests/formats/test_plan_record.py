"""A plan file knows its devices and the question it answers, and no command forgets them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner.cli.command_line import main
from partitioner.schedule import simulate
from tests.instances import write

GRAPH = pt.Graph.from_arrays(
    {"A100": [3.0, 1.0, 2.0, 2.0, 2.0, 4.0], "cpu": [30.0, 9.0, 9.0, 9.0, 9.0, 40.0]},
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
    cost=0.25,
    backward=[False, False, False, True, True, True],
    color=[0, 1, 2, 2, 1, 0],
    names=[f"block{i}" for i in range(6)],
    parameters=2.0,
    activations=1.0,
)
FORWARD = pt.Graph.from_arrays({"A100": [1.0, 2.0, 4.0], "cpu": [9.0, 9.0, 9.0]}, [(0, 1), (1, 2)], 0.5)
DEVICES = pt.Devices(
    (
        pt.DeviceKind("A100", 4, memory=30, bandwidth=5.0),
        pt.DeviceKind("cpu", 1, pays_communication=False),
    ),
    communication="overlapped",
    levels=(pt.Level("server", {"A100": 4, "cpu": 1}, 3),),
)
FLAT = replace(DEVICES, levels=())
ASKED: list[tuple[pt.Graph, pt.Devices, dict[str, Any]]] = [
    (GRAPH, DEVICES, {}),
    (GRAPH, FLAT, {"schedule": "1f1b"}),
    (GRAPH, FLAT, {"objective": "throughput", "schedule": "gpipe", "microbatches": 3, "replicas": 2}),
    (GRAPH, FLAT, {"objective": "batch", "microbatches": 7}),
    (GRAPH, FLAT, {"constraints": pt.Constraints(pin={0: "A100:2"}, stages=2, nodes_per_stage=(2, 4))}),
    (GRAPH, FLAT, {"objective": "latency", "subgraphs_per_accelerator": 2, "method": "greedy"}),
    (FORWARD, FLAT, {"objective": "makespan", "method": "heft", "transfers": pt.Transfers(slope=2.0)}),
    (FORWARD, FLAT, {"objective": "gpipe", "method": "single_device"}),
]


def solved(graph: pt.Graph, devices: pt.Devices, asked: dict[str, Any]) -> pt.Plan:
    return pt.solve(graph, devices, **{"time_limit": 60.0, **asked})


def saved(tmp_path: Path, **asked: Any) -> tuple[Path, Path, pt.Plan]:
    """A workload file, a plan of it on other devices than the file's, and the plan."""
    nodes = [
        {"id": i, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1 + i, "isBackwardNode": i > 2}
        | {"colorClass": min(i, 5 - i), "parameters": 1e9, "activations": 2e9}
        for i in range(6)
    ]
    edges = [{"sourceId": i, "destId": i + 1, "cost": 0.25} for i in range(5)]
    content = {"maxSizePerFPGA": 9e9, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges}
    path, out = write(tmp_path, content, "work.json"), tmp_path / "plan.json"
    kinds = (pt.DeviceKind("accelerator", 3, memory=64e9), pt.DeviceKind("cpu", 1, pays_communication=False))
    plan = pt.solve(pt.load(path).graph, pt.Devices(kinds, "duplex"), **asked)
    plan.save(out)
    return path, out, plan


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(("graph", "devices", "asked"), ASKED)
def test_a_plan_is_evaluated_as_it_was_made(
    graph: pt.Graph, devices: pt.Devices, asked: dict[str, Any], tmp_path: Path
) -> None:
    """By the plan alone, in the session that made it and in one that reads its file."""
    plan = solved(graph, devices, asked)
    plan.save(tmp_path / "plan.json")
    for known in (plan, pt.load_plan(tmp_path / "plan.json")):
        assert known.hardware == devices
        found = pt.evaluate(graph, None, known)
        assert (found.objective, found.value, found.loads) == (plan.objective, plan.value, plan.devices)
        assert found.feasible


def test_what_is_given_goes_before_what_the_plan_knows() -> None:
    plan = solved(GRAPH, FLAT, {"schedule": "1f1b"})
    sequential = replace(FLAT, communication="sequential")
    other = pt.evaluate(GRAPH, sequential, plan, "gpipe")
    assert other == pt.evaluate(GRAPH, sequential, plan.placement, "gpipe")
    inference = pt.evaluate(GRAPH, None, plan, schedule="inference")
    assert sum(load.memory for load in inference.loads) < sum(load.memory for load in plan.devices)


def test_a_simulation_takes_devices_schedule_and_batch_of_the_plan() -> None:
    plan = solved(GRAPH, FLAT, {"objective": "batch", "schedule": "gpipe", "microbatches": 5})
    found = simulate(GRAPH, None, plan)
    assert (found.schedule, found.table.microbatches) == ("gpipe", 5)
    assert found.makespan == simulate(GRAPH, FLAT, plan.placement, "gpipe", 5).makespan
    assert simulate(GRAPH, None, plan, "1f1b", 9).table.microbatches == 9
    assert pt.compare_schedules(GRAPH, None, plan).microbatches == 5


def test_the_commands_take_devices_and_schedule_of_the_plan(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, out, plan = saved(tmp_path, objective="throughput", schedule="1f1b", microbatches=6)
    code, text, _ = run(capsys, "evaluate", path, out, "--format", "json")
    record = json.loads(text)
    assert code == 0 and record["value"] == plan.value and record["feasible"]
    assert [load["memory"] for load in record["loads"]] == [load.memory for load in plan.devices]
    code, text, _ = run(capsys, "simulate", path, out, "--format", "json")
    record = json.loads(text)
    assert code == 0 and (record["schedule"], record["microbatches"]) == ("1f1b", 6)
    for what in ("loads", "memory"):
        assert run(capsys, "plot", path, out, "--what", what, "--output", tmp_path / "a.svg")[0] == 0


def test_the_commands_take_what_the_user_gives(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, out, plan = saved(tmp_path, schedule="1f1b")
    words = ("--accelerators", "1", "--communication", "sequential", "--schedule", "inference")
    code, text, _ = run(capsys, "evaluate", path, out, *words, "--format", "json")
    record = json.loads(text)
    devices = replace(
        plan.hardware or DEVICES,
        kinds=(pt.DeviceKind("accelerator", 1, memory=64e9), pt.DeviceKind("cpu", 1, None, False)),
        communication="sequential",
    )
    expected = pt.evaluate(pt.load(path).graph, devices, plan.placement, schedule="inference")
    assert code == 0 and record["value"] == expected.value and not record["feasible"]
    assert record["violations"] == list(expected.violations)


@pytest.mark.parametrize("same_nodes", [True, False])
@pytest.mark.parametrize("words", [("evaluate",), ("simulate",), ("plot", "--output", "a.svg")])
def test_the_plan_of_another_workload_is_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    same_nodes: bool,
) -> None:
    """Also if its nodes have the same ids, and whatever devices are asked for."""
    monkeypatch.chdir(tmp_path)
    path, out, _ = saved(tmp_path)
    content = json.loads(path.read_text())
    content["nodes"][0] |= {"fpgaLatency": 8} if same_nodes else {"id": 99}
    content["edges"][0]["sourceId"] = content["nodes"][0]["id"]
    other = write(tmp_path, content, "other.json")
    code, text, said = run(capsys, words[0], other, out, *words[1:], "--accelerators", "5")
    assert (code, text, said.count("\n")) == (2, "", 1)
    assert said.startswith(f"partitioner: {out}: made for another workload (workload_sha256 ")
    with pytest.raises(pt.WorkloadError, match="made for another workload"):
        pt.load_placement(out, pt.load(other).graph)


def test_in_python_a_plan_may_be_tried_on_other_times_but_not_on_other_nodes() -> None:
    plan = solved(GRAPH, FLAT, {})
    faster = replace(GRAPH, time=GRAPH.time / 2)
    assert pt.evaluate(faster, None, plan).value < plan.value
    for refused in (lambda: pt.evaluate(FORWARD, None, plan), lambda: simulate(FORWARD, FLAT, plan)):
        with pytest.raises(pt.WorkloadError) as caught:
            refused()
        assert str(caught.value).startswith("plan: made for another workload (workload_sha256 ")
        assert "\n" not in str(caught.value)


def test_an_older_file_without_devices_still_loads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its nodes decide whether it is the workload's; it is evaluated on the devices of the workload."""
    path, out, plan = saved(tmp_path)
    record = json.loads(out.read_text())
    del record["hardware"]
    out.write_text(json.dumps(record), encoding="utf-8")
    assert pt.load_plan(out) == replace(plan, hardware=None)
    workload = pt.load(path)
    assert pt.load_placement(out, workload.graph, workload.devices) == plan.placement
    with pytest.raises(pt.WorkloadError, match="devices: must be given: the plan does not contain"):
        pt.load_placement(out, workload.graph)
    assert run(capsys, "evaluate", path, out)[0] == 0
    _, text, said = run(capsys, "evaluate", "instances/bert24_training.json", out)
    assert text == "" and said.count("\n") == 1 and "made for another workload" in said


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"hardware": []}, "file: hardware = []: must be a JSON object"),
        ({"hardware": {}}, "hardware: kinds: is missing"),
        ({"hardware": {"kinds": [{"name": "a"}]}}, "hardware.kinds[0]: count: is missing"),
        ({"options": {"constraints": {"pins": {}}}}, "options.constraints: pins: is not a field"),
        ({"options": {"schedule": 5}}, "schedule = 5: must be one of inference, gpipe"),
    ],
)
def test_what_is_no_plan_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    path, out, _ = saved(tmp_path)
    out.write_text(json.dumps(json.loads(out.read_text()) | change), encoding="utf-8")
    code, _, said = run(capsys, "evaluate", path, out)
    assert code == 2 and text in said


def test_every_command_reads_the_plan_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out, _ = saved(tmp_path, schedule="1f1b")
    read: list[str] = []
    inner = Path.read_text

    def noted(file: Path, **how: Any) -> str:
        read.append(file.name)
        return inner(file, **how)

    monkeypatch.setattr(Path, "read_text", noted)
    assert run(capsys, "evaluate", path, out)[0] == 0
    assert run(capsys, "simulate", path, out, "--microbatches", 4)[0] == 0
    assert run(capsys, "plot", path, out, "--output", tmp_path / "a.svg")[0] == 0
    assert read.count("plan.json") == 3
