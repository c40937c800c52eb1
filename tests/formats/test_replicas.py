"""The copies of stages and the order of stages come back from plan files, and wrong ones are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partitioner import DeviceKind, Devices, Graph, Plan, WorkloadError, evaluate, load_plan, solve
from partitioner.formats.plan_record import load_record
from partitioner.workload.graph import NodeId


def plan() -> Plan:
    """Two stages, of which the second has three devices."""
    graph = Graph.from_arrays({"gpu": [1.0, 12.0]}, [(0, 1)], size=3.0)
    devices = Devices((DeviceKind("gpu", 4, bandwidth=2.0),))
    placement: dict[NodeId, str] = {0: "gpu3", 1: "gpu0"}
    replicas = {"gpu0": ("gpu1", "gpu2")}
    found = evaluate(graph, devices, placement, replicas=replicas)
    return replace(
        solve(graph, devices),
        value=found.value,
        devices=found.loads,
        stages=found.shape.order,
        placement=placement,
        replicas=replicas,
    )


def test_a_plan_with_replicas_comes_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    saved = plan()
    saved.save(path)
    assert load_plan(path) == saved
    assert load_record(path).replicas == {"gpu0": ("gpu1", "gpu2")}
    assert load_record(path).order == ("gpu3", "gpu0")
    entries = {entry["name"]: entry for entry in json.loads(path.read_text())["devices"]}
    assert entries["gpu1"]["replica_of"] == "gpu0" and entries["gpu1"]["sync"] == 1.0
    assert "sync" not in entries["gpu3"] and "replica_of" not in entries["gpu3"]


def test_a_plan_without_replicas_says_nothing_of_them(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    graph = Graph.from_arrays({"accelerator": [1.0]})
    solve(graph, Devices.accelerated(1)).save(path)
    assert not {"replicas", "sync", "replica_of"} & set(path.read_text().split('"'))
    assert load_record(path).replicas == {}


def test_a_split_has_no_order(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    path.write_text('{"fpgas": [{"nodes": [1]}], "cpus": []}')
    assert load_record(path).order is None and load_record(path).replicas == {}


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("replicas", ["gpu1"], "replicas = ['gpu1']: must be a JSON object"),
        ("replicas", {"gpu0": "gpu1"}, "replicas: gpu0 = 'gpu1': must be a list"),
        ("replicas", {"gpu0": [1]}, "must be a text"),
        ("stages", "gpu0", "stages = 'gpu0': must be a list"),
    ],
)
def test_what_is_no_list_of_names_is_refused(tmp_path: Path, field: str, value: Any, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(json.loads(plan().to_json()) | {field: value}))
    for read in (load_plan, load_record):
        with pytest.raises(WorkloadError) as caught:
            read(path)
        assert text in str(caught.value) and caught.value.source == str(path)
