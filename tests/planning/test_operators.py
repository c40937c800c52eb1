"""Operators one by one through the verbs: command line, plan files, certificates, the path's table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner import Devices, Evaluation, Graph, Plan, Transfers, WorkloadError, certify, load_plan, solve
from partitioner.cli.command_line import main
from partitioner.formats.devices import load_devices, load_transfers
from partitioner.planning.evaluate import evaluate

EDGES = [(v, v + step) for v in range(40) for step in (2, 5) if v + step < 40]
GRAPH = Graph.from_arrays({"accelerator": [1.0 + v % 3 for v in range(40)]}, EDGES, 0.25, size=1.0)
DEVICES = Devices.accelerated(3, memory=14.0)
RECORD = {
    "maxFPGAs": 2,
    "nodes": [
        {
            "id": v,
            "cpuLatency": 9.0,
            "fpgaLatency": (3.0, 1.0, 4.0)[v],
            "size": 0.0,
            "supportedOnFpga": 1,
            "isBackwardNode": 0,
        }
        for v in range(3)
    ],
    "edges": [{"sourceId": 0, "destId": v, "cost": 0.5} for v in (1, 2)],
    "maxSizePerFPGA": 1.0,
    "maxCPUs": 0,
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A plan of HEFT's for the graph above."""
    return solve(GRAPH, DEVICES, "makespan", method="heft")


@pytest.mark.parametrize("width", [80, 160])
def test_the_critical_path_is_a_short_table(plan: Plan, width: int) -> None:
    for table in (plan.summary(width), judged(plan).summary(width)):
        assert max(map(len, table.splitlines())) <= width
        assert "per step" in table
        lines = table.split("the critical path")[1].splitlines()[2:]
        assert 2 <= len(lines) <= 13
        assert "from accelerator" in table


def test_many_runs_leave_out_the_middle() -> None:
    placement = {v: f"accelerator{v % 3}" for v in range(40)}
    table = evaluate(GRAPH, DEVICES, placement, "makespan").summary(80)
    assert "more runs" in table
    assert len(table.split("the critical path")[1].splitlines()) == 15


def judged(plan: Plan) -> Evaluation:
    """The evaluator's word on it."""
    return evaluate(GRAPH, DEVICES, plan.placement, "makespan", execution_order=plan.execution_order)


def test_a_plan_file_has_the_order_and_the_schedule(plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan.json")
    loaded = load_plan(tmp_path / "plan.json")
    assert loaded.execution_order == plan.execution_order
    assert loaded.schedule == plan.schedule is not None
    assert loaded.summary() == plan.summary()
    assert "critical path" in loaded.summary()


@given(ids=st.lists(st.one_of(st.integers(-99, 99), st.text("07-ax", min_size=1)), min_size=1, unique_by=str))
def test_ids_of_the_order_survive(ids: list[int | str], tmp_path_factory: pytest.TempPathFactory) -> None:
    n = len(ids)
    graph = Graph.from_arrays({"accelerator": [1.0] * n}, [], ids=ids)
    plan = solve(graph, Devices.accelerated(2), "makespan", method="heft")
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan.save(path)
    assert load_plan(path).execution_order == plan.execution_order


def test_a_certificate_of_a_makespan(plan: Plan) -> None:
    certificate = certify(GRAPH, DEVICES, plan, "makespan", time_limit=1.0)
    assert certificate.value == plan.value
    assert 0 < certificate.bound <= certificate.value
    slow = certify(GRAPH, DEVICES, plan, "makespan", time_limit=1.0, transfers=Transfers(slope=8.0))
    assert slow.value > plan.value


def test_the_command_line_places_and_evaluates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload, found = tmp_path / "w.json", tmp_path / "plan.json"
    workload.write_text(json.dumps(RECORD))
    links = ["--objective", "makespan", "--contention", "--link-slope", "2", "--link-intercept", "0.25"]
    asked = [*links, "--method", "m-etf", "--refine", "--sct-threshold", "0.2", "--fusion-range", "9"]
    asked += ["--fusion-memory", "0.5", "--grouper", "coplace", "--fuse"]
    assert main(["solve", str(workload), *asked, "--output", str(found)]) == 0
    assert "per step" in capsys.readouterr().out
    made = load_plan(found)
    assert made.options["transfers"] == {"slope": 2.0, "intercept": 0.25, "contention": True}
    assert made.options["grouper"] == "coplace" and made.options["fuse"] is True
    assert main(["evaluate", str(workload), str(found), *links, "--bound", "1", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["value"] == made.value
    assert said["bound"] <= made.value


def test_evaluating_runs_the_order_of_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload, path = tmp_path / "w.json", tmp_path / "plan.json"
    workload.write_text(json.dumps(RECORD | {"edges": [{"sourceId": 1, "destId": 2, "cost": 0.0}]}))
    placement = {"0": "accelerator0", "1": "accelerator0", "2": "accelerator1"}
    values = []
    for order in ({"execution_order": [1, 2, 0]}, {"execution_order": [0, 1, 2]}, {}):
        path.write_text(json.dumps({"placement": placement} | order))
        assert (
            main(["evaluate", str(workload), str(path), "--objective", "makespan", "--format", "json"]) == 0
        )
        values.append(json.loads(capsys.readouterr().out)["value"])
    assert values == [5.0, 8.0, 8.0]
    path.write_text(json.dumps({"placement": placement, "execution_order": [0, 1, 7]}))
    assert main(["evaluate", str(workload), str(path), "--objective", "makespan"]) == 2
    assert "execution_order" in capsys.readouterr().err


def test_a_devices_file_says_how_tensors_travel(tmp_path: Path) -> None:
    path = tmp_path / "devices.json"
    devices = {"kinds": [{"name": "accelerator", "count": 2}]}
    path.write_text(json.dumps(devices))
    assert load_transfers(path) is None
    path.write_text(json.dumps(devices | {"transfers": {"slope": [[0, 2], [3, 0]], "contention": True}}))
    assert load_transfers(path) == Transfers(slope=[[0, 2], [3, 0]], contention=True)
    assert load_devices(path).names == ("accelerator0", "accelerator1")
    for wrong, word in (({"slop": 1}, "slop"), ({"intercept": -1}, "intercept"), (3, "transfers")):
        path.write_text(json.dumps(devices | {"transfers": wrong}))
        with pytest.raises(WorkloadError, match=word):
            load_transfers(path)
