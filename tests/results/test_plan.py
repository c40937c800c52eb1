"""A plan knows how good it is, and survives JSON and pickle unchanged."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from partitioner import Devices, Graph, PartitionerError, Plan, solve
from partitioner.results.plan import node_id
from tests.instances import diamond, training

CONTRACT = ("objective", "split", "value", "bound", "gap", "status", "stop_reason", "method", "backend",
            "runtime_seconds", "devices", "placement", "workload_sha256", "options")  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The plan of the training instance."""
    return solve(training().graph, training().devices)


@pytest.mark.parametrize(
    ("value", "bound", "gap"), [(10.0, 10.0, 0.0), (10.0, 9.0, 0.1), (0.0, 0.0, 0.0), (4.0, 0.0, 1.0)]
)
def test_the_gap_is_relative_to_the_value(plan: Plan, value: float, bound: float, gap: float) -> None:
    assert replace(plan, value=value, bound=bound).gap == pytest.approx(gap)


def test_the_bottleneck_has_the_largest_load(plan: Plan) -> None:
    assert plan.bottleneck.load == plan.value == 7.5


def test_json_has_every_field_of_the_contract(plan: Plan) -> None:
    """And every device its name, kind, load, memory and number of nodes."""
    record = json.loads(plan.to_json())
    assert set(CONTRACT) <= set(record)
    assert record["placement"] == {str(node): device for node, device in plan.placement.items()}
    assert record["gap"] == 0.0 and record["status"] == "optimal"
    assert [entry["name"] for entry in record["devices"]] == ["accelerator0", "accelerator1"]
    for entry in record["devices"]:
        assert {"name", "kind", "load", "memory", "nodes"} <= set(entry)


def test_only_texts_that_look_like_integers_are_listed() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 4}, ids=[1, "2", "x", "03"])
    record = json.loads(solve(graph, Devices.accelerated(1)).to_json())
    assert record["text_ids"] == ["2"]
    assert "text_ids" not in json.loads(solve(diamond().graph, diamond().devices).to_json())


@pytest.mark.parametrize(
    ("text", "node"),
    [("7", 7), ("-7", -7), ("0", 0), ("-0", "-0"), ("07", "07"), ("+7", "+7"), ("7.0", "7.0"), ("", ""),
     ("-", "-"), ("--7", "--7"), ("\u0667", "\u0667"), ("9" * 30, "9" * 30), ("x", "x")],
)  # fmt: skip
def test_a_key_is_an_integer_only_if_it_is_written_as_one(text: str, node: int | str) -> None:
    assert node_id(text) == node
    assert node_id(text, frozenset([text])) == text


def test_pickle_gives_an_equal_plan(plan: Plan) -> None:
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_a_plan_that_cannot_be_saved_says_so(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(PartitionerError, match="cannot be written"):
        plan.save(tmp_path / "missing" / "plan.json")


def test_the_saved_file_is_the_json(plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == plan.to_json() + "\n"
