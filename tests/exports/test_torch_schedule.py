"""Schedules go to torch's CSV and come back; torch itself reads what we write, and we what it writes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from partitioner import DeviceKind, Devices, Graph, Workload, WorkloadError, solve
from partitioner.exports.torch_pipelining import torch_pipelining
from partitioner.exports.torch_schedule import save_torch_schedule, torch_ranks, torch_schedule
from partitioner.formats.torch_schedule import load_torch_schedule
from partitioner.schedule import Table, simulate
from tests.exports.torch_runtime import torch_runtime
from tests.schedule.runs import TRAINING, every_run, line, pipeline, same_passes

RUNS = every_run()
LEFT_OUT = re.compile("SHARD|REDUCE|WAIT")  # actions that torch does not simulate


@pytest.mark.parametrize("name", [name for name in RUNS if name != "single_stream, inference"])
def test_every_schedule_comes_back(tmp_path: Path, name: str) -> None:
    table, path = RUNS[name].table, tmp_path / "schedule.csv"
    save_torch_schedule(table, path)
    assert same_passes(load_torch_schedule(path, torch_ranks(table)), table)


def test_a_schedule_that_came_back_runs_as_it_did(tmp_path: Path) -> None:
    path, before = tmp_path / "schedule.csv", pipeline("zb-h1")
    save_torch_schedule(before.table, path)
    nodes = {i: f"gpu{min(i, 11 - i) // 2}" for i in range(12)}
    devices = Devices((DeviceKind("gpu", 3, memory=30.0),), "overlapped")
    after = simulate(line(6), devices, nodes, load_torch_schedule(path, before.devices))
    assert after.makespan == before.makespan


@pytest.mark.parametrize("name", ["interleaved_1f1b", "zb_h1", "zbv", "dualpipev"])
def test_plans_with_several_stages_on_a_device_go_to_torch(tmp_path: Path, name: str) -> None:
    """The middle stages of a V are on one device, and are two stages all the same."""
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 16},
        [(i, i + 1) for i in range(15)],
        backward=[i >= 8 for i in range(16)],
        color=[min(i, 15 - i) for i in range(16)],
        layer=[f"layer.{min(i, 15 - i)}" for i in range(16)],
    )
    devices, path = Devices((DeviceKind("gpu", 2),)), tmp_path / "schedule.csv"
    plan = solve(graph, devices, schedule=name, virtual_stages=2, microbatches=8)
    record = json.loads(torch_pipelining(plan, Workload(graph, devices)))
    assert record["stage_to_rank"] == ([0, 1, 1, 0] if name in ("zbv", "dualpipev") else [0, 1, 0, 1])
    assert [module for stage in record["stages"] for module in stage] == [f"layer.{i}" for i in range(8)]
    path.write_text(record["schedule_csv"])
    assert same_passes(load_torch_schedule(path, ("gpu0", "gpu1")), simulate(graph, devices, plan).table)


def test_columns_are_ticks() -> None:
    """1F1B on three devices as Megatron draws it."""
    text = torch_schedule(pipeline("1f1b", microbatches=4).table)
    assert text.splitlines() == [
        "0F0,0F1,0F2,,,0B0,0F3,0B1,,0B2,,0B3",
        ",1F0,1F1,,1B0,1F2,1B1,1F3,1B2,,1B3,",
        ",,2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3,,",
    ]


def test_ranks_go_by_stage() -> None:
    table = Table.from_rows({"late": ["1F0", "1B0"], "early": ["0F0", "0B0"]})
    assert torch_ranks(table) == ("early", "late")
    assert torch_schedule(table).splitlines()[0] == "0F0,,,0B0"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": ["0F0"], "b": ["0F1"]}, "stage 0: is on a, b: torch puts all passes of a stage on one rank"),
        ({"a": ["0B0", "0F0"]}, "device a: 0B0: can never run"),
        ({"a": ["0F0"], "b": ["1F1"]}, "device b: 1F1: can never run"),
        ({"a": ["0F0", "0W0"]}, "device a: 0W0: can never run"),
        ({"a": ["1F0", "0F0"]}, "device a: 1F0: can never run"),
    ],
)
def test_what_torch_cannot_run_is_refused(rows: dict[str, list[str]], message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        torch_schedule(Table.from_rows(rows))
    assert message in str(error.value)


def test_a_limit_that_the_order_does_not_imply_is_refused() -> None:
    with pytest.raises(WorkloadError, match="at_once = 1: torch supports no limit"):
        torch_schedule(RUNS["single_stream, inference"].table)


@pytest.mark.parametrize("name", TRAINING)
def test_torch_reads_what_we_write(tmp_path: Path, name: str) -> None:
    """It finds the same passes, adds the communication, and its simulation ends without a deadlock."""
    table, path = RUNS[f"{name}, training"].table, tmp_path / "schedule.csv"
    save_torch_schedule(table, path)
    runtime = torch_runtime(len(table.devices), int(table.stage.max()) + 1, table.microbatches)
    runtime._load_csv(str(path), format="compute_only")
    rows = table.rows()
    for rank, device in enumerate(torch_ranks(table)):
        assert [str(action) for action in runtime.pipeline_order[rank] if action] == rows[device]
    runtime.pipeline_order_with_comms = {  # which has no place for shards in its simulation
        rank: [action for action in actions if not LEFT_OUT.search(str(action))]
        for rank, actions in runtime.pipeline_order_with_comms.items()
    }
    assert runtime._simulate()


@pytest.mark.parametrize("name", TRAINING)
def test_we_read_what_torch_writes(tmp_path: Path, name: str) -> None:
    """Also with the communication that it adds."""
    table, path = RUNS[f"{name}, training"].table, tmp_path / "schedule.csv"
    save_torch_schedule(table, path)
    runtime = torch_runtime(len(table.devices), int(table.stage.max()) + 1, table.microbatches)
    runtime._load_csv(str(path), format="compute_only")
    for form in ("compute_only", "compute_comms"):
        runtime._dump_csv(str(path), format=form)
        assert same_passes(load_torch_schedule(path, torch_ranks(table)), table)
    with path.open(encoding="utf-8", newline="") as file:
        assert any("SEND_F" in cell for row in csv.reader(file) for cell in row)
