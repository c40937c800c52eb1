"""Plans come back from files as they were; splits of the MSR format are read as strictly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partitioner import (
    Devices,
    Graph,
    Workload,
    WorkloadError,
    evaluate,
    load,
    load_placement,
    load_plan,
    solve,
)
from tests.instances import SOLVABLE, Instance, document, write

SPLIT = {"fpgas": [{"nodes": [1, 6, 2, 5]}, {"nodes": [3, 4]}], "cpus": [{"nodes": []}]}


@pytest.fixture
def workload(workload_file: Path) -> Workload:
    """The workload of the small file."""
    return load(workload_file)


def placed(path: Path, workload: Workload, complete: bool = True) -> dict[Any, str]:
    """Where the file puts the nodes of the workload."""
    return load_placement(path, workload.graph, workload.devices, complete)


def refused(path: Path, workload: Workload) -> str:
    """The text of the error that a placement file meets; it names the file."""
    with pytest.raises(WorkloadError) as caught:
        placed(path, workload)
    assert caught.value.source == str(path)
    return str(caught.value)


@pytest.mark.parametrize("make", SOLVABLE)
def test_a_plan_comes_back_equal(tmp_path: Path, make: Callable[[], Instance]) -> None:
    instance = make()
    plan = solve(instance.graph, instance.devices)
    plan.save(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    placement = load_placement(tmp_path / "plan.json", instance.graph, instance.devices)
    assert placement == dict(plan.placement)


@pytest.mark.parametrize(
    "ids",
    [[1, 2, 3], [-5, 0, 10**18], ["a", "b", ""], ["1", "-2", "03"], [1, "2", "x 3"], ["1e3", "\u0663", "+4"]],
)
def test_ids_come_back_with_their_type(tmp_path: Path, ids: list[Any]) -> None:
    """A text that looks like an integer stays a text, an integer stays one."""
    graph = Graph.from_arrays({"accelerator": [1.0, 2.0, 3.0]}, ids=ids)
    plan = solve(graph, Devices.accelerated(2))
    plan.save(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json").placement == plan.placement
    assert load_placement(tmp_path / "plan.json", graph, Devices.accelerated(2)) == plan.placement


def test_a_split_file_is_read(tmp_path: Path, workload: Workload) -> None:
    placement = placed(write(tmp_path, SPLIT, "split.json"), workload)
    assert placement == {1: "accelerator0", 6: "accelerator0", 2: "accelerator0", 5: "accelerator0",
                         3: "accelerator1", 4: "accelerator1"}  # fmt: skip
    assert evaluate(workload.graph, workload.devices, placement).feasible


def test_a_split_may_put_nodes_on_cpus(tmp_path: Path, workload: Workload) -> None:
    content = {"fpgas": [], "cpus": [{"nodes": [1, 2, 3, 4, 5, 6]}]}
    assert set(placed(write(tmp_path, content, "split.json"), workload).values()) == {"cpu0"}


def test_nodes_left_out_go_with_their_colour_class(tmp_path: Path, workload: Workload) -> None:
    """5 and 6, the backward twins of 2 and 1, are completed; 4 without a twin is not."""
    content = {"fpgas": [{"nodes": [1]}, {"nodes": [2, 3]}], "cpus": []}
    path = write(tmp_path, content, "split.json")
    assert placed(path, workload) == {
        1: "accelerator0",
        2: "accelerator1",
        3: "accelerator1",
        5: "accelerator1",
        6: "accelerator0",
    }
    assert sorted(placed(path, workload, complete=False)) == [1, 2, 3]


def test_ids_of_a_split_may_be_written_as_texts(tmp_path: Path, workload: Workload) -> None:
    content = {"fpgas": [{"nodes": ["1", "2", "3", "4"]}], "cpus": []}
    assert set(placed(write(tmp_path, content, "split.json"), workload)) == set(workload.graph.ids)


def test_a_device_beyond_the_count_is_left_to_the_evaluator(tmp_path: Path, workload: Workload) -> None:
    content: dict[str, Any] = {"fpgas": [{"nodes": []}] * 5 + [{"nodes": [1, 2, 3, 4]}], "cpus": []}
    placement = placed(write(tmp_path, content, "split.json"), workload)
    violations = evaluate(workload.graph, workload.devices, placement).violations
    assert violations[0].startswith("accelerator5 does not exist")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([], "file: []: must be a JSON object"),
        ({}, "file: is neither a plan (it has no placement) nor a split (it has no fpgas)"),
        ({"fpgas": []}, "file: cpus: is missing"),
        ({"FPGAs": [], "cpus": []}, "file: FPGAs: is not a field; did you mean fpgas?"),
        ({"fpgas": {}, "cpus": []}, "file: fpgas = {}: must be a list"),
        ({"fpgas": [[1]], "cpus": []}, "fpgas[0]: [1]: must be a JSON object"),
        ({"fpgas": [{}], "cpus": []}, "fpgas[0]: nodes: is missing"),
        ({"fpgas": [{"nodes": 5}], "cpus": []}, "fpgas[0]: nodes = 5: must be a list"),
        ({"fpgas": [], "cpus": [{"nodes": [[]]}]}, "cpus[0]: nodes = []: must be an integer or a text"),
        ({"fpgas": [{"nodes": [1.5]}], "cpus": []}, "fpgas[0]: nodes = 1.5: must be an integer or a text"),
        ({"fpgas": [{"nodes": [1, 1]}], "cpus": []}, "fpgas[0]: nodes = 1: is placed twice"),
        ({"fpgas": [{"nodes": [1]}], "cpus": [{"nodes": ["1"]}]}, "cpus[0]: nodes = '1': is placed twice"),
        ({"fpgas": [{"nodes": [77]}], "cpus": []}, "node 77: is not the id of a node of the workload"),
        ({"placement": []}, "file: placement = []: must be a JSON object"),
        ({"placement": {"1": 5}}, "placement: 1 = 5: must be a text"),
        ({"placement": {"77": "cpu0"}}, "node 77: is not the id of a node of the workload"),
        (
            {"placement": {"1": "tpu0"}},
            "placement: device = 'tpu0': must be a kind (accelerator, cpu) and a number",
        ),
        (
            {"placement": {"1": "cpu"}},
            "placement: device = 'cpu': must be a kind (accelerator, cpu) and a number",
        ),
        ({"placement": {"1": "cpu0"}, "text_ids": 7}, "file: text_ids = 7: must be a list"),
        ("{", "file: is not JSON"),
        ('{"placement": {"1": "cpu0", "1": "cpu0"}}', "file: 1: is given twice in one object"),
    ],
)
def test_what_is_no_placement_is_refused(tmp_path: Path, workload: Workload, content: Any, text: str) -> None:
    assert text in refused(write(tmp_path, content, "split.json"), workload)


def test_a_missing_plan_is_named(tmp_path: Path, workload: Workload) -> None:
    assert "No such file" in refused(tmp_path / "none.json", workload)
    with pytest.raises(WorkloadError, match="No such file"):
        load_plan(tmp_path / "none.json")


def device(**fields: Any) -> Callable[[dict[str, Any]], object]:
    """Change the first device of a plan."""
    return lambda plan: plan["devices"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda plan: plan.pop("value"), "file: value: is missing"),
        (lambda plan: plan.update(value=-1), "file: value = -1: must be a finite number of at least 0"),
        (lambda plan: plan.update(bound="0"), "file: bound = '0': must be a number"),
        (lambda plan: plan.update(seed=1.5), "file: seed = 1.5: must be a whole number"),
        (lambda plan: plan.update(method=None), "file: method = None: must be a text"),
        (lambda plan: plan.update(stages="a"), "file: stages = 'a': must be a list"),
        (lambda plan: plan.update(notes=[5]), "file: notes = [5]: must be a text"),
        (lambda plan: plan.update(devices=[]), "file: devices = []: must not be empty"),
        (lambda plan: plan.update(devices=[1]), "devices[0]: 1: must be a JSON object"),
        (lambda plan: plan.update(placement={"1": None}), "placement: 1 = None: must be a text"),
        (lambda plan: plan.update(options=[1]), "file: options = [1]: must be a JSON object"),
        (lambda plan: plan.update(statistics=5), "file: statistics = 5: must be a JSON object"),
        (device(load=-1), "devices[0]: load = -1: must be a finite number of at least 0"),
        (device(compute=[1]), "devices[0]: compute = [1]: must be a list of two numbers"),
        (device(transfer_in=[1, "x"]), "devices[0]: transfer_in = [1, 'x']: must be a number"),
        (device(memory_limit="x"), "devices[0]: memory_limit = 'x': must be a number"),
        (lambda plan: plan["devices"][0].pop("memory_limit"), "devices[0]: memory_limit: is missing"),
        (device(nodes=0.5), "devices[0]: nodes = 0.5: must be a whole number"),
        (device(name=1), "devices[0]: name = 1: must be a text"),
    ],
)
def test_what_is_no_plan_is_refused(
    tmp_path: Path, workload: Workload, change: Callable[[Any], object], text: str
) -> None:
    """The error names file, place, field, value and rule."""
    content = json.loads(solve(workload.graph, workload.devices).to_json())
    change(content)
    path = write(tmp_path, content, "plan.json")
    with pytest.raises(WorkloadError) as caught:
        load_plan(path)
    assert str(caught.value) == f"{path}: {text}" or f"{path}: {text}" in str(caught.value)


def test_infinite_numbers_are_no_plan(tmp_path: Path, workload: Workload) -> None:
    text = solve(workload.graph, workload.devices).to_json().replace('"seed": 0', '"seed": 1e999')
    with pytest.raises(WorkloadError, match="seed = inf: must be a whole number"):
        load_plan(write(tmp_path, text, "plan.json"))
    text = solve(workload.graph, workload.devices).to_json().replace('"gap": 0.0', '"a": [{"b": 1e999}]', 1)
    with pytest.raises(WorkloadError, match=r"options = .* must hold only texts, finite numbers"):
        load_plan(write(tmp_path, text, "plan.json"))


def test_every_flaw_of_a_plan_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError) as caught:
        load_plan(write(tmp_path, {"placement": {}}))
    assert len(caught.value.flaws) > 10


def test_the_split_of_a_published_expert_is_feasible(published: Path) -> None:
    """Each expert split beside the published workloads can be read and evaluated."""
    paths = sorted((published / "experts").glob("*.json"))
    for path in paths:
        workload = load(published / "throughput" / path.name)
        placement = load_placement(path, workload.graph, workload.devices)
        assert set(placement) == set(workload.graph.ids)
        assert evaluate(workload.graph, workload.devices, placement).value > 0
    assert paths


def test_document_is_what_the_tests_think(workload: Workload) -> None:
    """The twins that the completion relies on."""
    colors = {record["id"]: record["colorClass"] for record in document()["nodes"]}
    assert colors[5] == colors[2] and colors[6] == colors[1] and workload.graph.ids == tuple(colors)
