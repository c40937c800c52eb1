"""Piper's and Sailor's inputs give graphs whose loads are those of Piper's own definition."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from partitioner import Devices, OptionError, Workload, WorkloadError, evaluate, load
from partitioner.cli.command_line import main
from partitioner.schedule import simulate
from tests.formats.test_fuzz import run_mutants
from tests.instances import write

SHARED = Path(__file__).parents[3] / "shared"
INPUTS, REFERENCE = SHARED / "workloads" / "piper", SHARED / "reference" / "piper.json"
SAILOR = SHARED / "benchmarks" / "sailor" / "piper"


def option(name: str, time: float, size: float, **sync: Any) -> dict[str, Any]:
    """An option; the memory of a sample is ten times its time, what counts once is three times the size."""
    found = {"id": name, "timePerSample": time, "parameterSize": size, "memoryUsageA": 10 * time}
    return found | {"memoryUsageB": 3 * size, "syncTimeFw": {}, "syncTimeBw": {}} | sync


def document() -> dict[str, Any]:
    """Nodes 2 -> 0 -> 1, the last one with two options and two degrees."""
    nodes = [
        {
            "id": 0,
            "name": "Layer",
            "TMPCs": {"1": [option("vanilla", 3.0, 5.0)], "2": [option("vanilla", 2.0, 3.0)]},
        },
        {
            "id": 1,
            "name": "Layer",
            "TMPCs": {
                "1": [option("vanilla", 6.0, 7.0), option("activation recomp", 8.0, 7.0)],
                "2": [option("vanilla", 3.5, 4.0, syncTimeFw={"0": 6.0})],
            },
        },
        {"id": 2, "TMPCs": {"1": [option("vanilla", 1.5, 2.0)], "2": [option("vanilla", 1.0, 1.0)]}},
    ]
    edges = [
        {"sourceId": 0, "destId": 1, "communicationCost": 20.0},
        {"sourceId": 2, "destId": 0, "communicationCost": 10.0},
    ]
    top = {"maxDevices": 4, "maxMemoryPerDevice": 500.0, "bandwidth": 10.0, "mbsInBatch": 8}
    return top | {"nodes": nodes, "edges": edges}


def placed(stages: list[list[int]]) -> dict[str, str]:
    return {
        f"{node}{ending}": f"accelerator{stage}"
        for stage, nodes in enumerate(stages)
        for node in nodes
        for ending in ("", "/backward")
    }


def test_every_field_has_its_place(tmp_path: Path) -> None:
    workload = load(write(tmp_path, document()))
    graph = workload.graph
    assert graph.ids[:3] == ("2", "0", "1") and graph.names[:3] == ("2", "Layer", "Layer")
    assert graph.time[0].tolist() == pytest.approx([500, 1000, 2000, 1000, 2000, 4000])
    parameters, gradients, rest, activations, workspace = graph.parts.tolist()
    assert parameters == [2.0, 5.0, 7.0, 0, 0, 0] and rest == [0, 0, 0, 4.0, 10.0, 14.0]
    assert activations == [15.0, 30.0, 60.0, 0, 0, 0] and not any(gradients + workspace)
    cost = {
        (graph.ids[u], graph.ids[v]): c for (u, v), c in zip(graph.edges.tolist(), graph.cost, strict=True)
    }
    assert cost["2", "0"] == cost["0/backward", "2/backward"] == 1000
    assert cost["0", "1"] == cost["1/backward", "0/backward"] == 2000
    assert [(kind.count, kind.memory) for kind in workload.devices.kinds] == [(4, 500.0), (0, None)]


def test_a_degree_and_an_option_are_chosen(tmp_path: Path) -> None:
    """Four devices are two groups of two; edge 0 -> 1 carries 20 + 6 bytes."""
    path = write(tmp_path, document())
    wide = load(path, degree=2, time_unit="ms", training=False, bandwidth=1e3)
    assert wide.graph.time[0].tolist() == pytest.approx([1 / 3, 2 / 3, 3.5 / 3])
    assert wide.graph.cost.tolist() == [10.0, 26.0] and wide.devices.kinds[0].count == 2
    assert wide.graph.size.tolist() == [2.0, 6.0, 8.0]
    assert load(path, degree=2, backward_share=0.0, time_unit="ms").graph.time[0, :3].tolist() == [
        1.0,
        2.0,
        3.5,
    ]
    with pytest.raises(
        WorkloadError, match="node 0: TMPCs: 1 = 'activation recomp': is not the id of an option"
    ):
        load(path, option="activation recomp")


def random_chain(rng: random.Random, n: int) -> dict[str, Any]:
    """A chain in Piper's format with sizes that differ, so that no two edges carry one tensor."""
    nodes = [
        {"id": i, "TMPCs": {"1": [option("vanilla", rng.uniform(1, 9), rng.randint(0, 9))]}} for i in range(n)
    ]
    edges = [{"sourceId": i, "destId": i + 1, "communicationCost": rng.uniform(1, 30)} for i in range(n - 1)]
    return document() | {"nodes": nodes, "edges": edges, "maxDevices": n, "maxMemoryPerDevice": 1e6}


def test_loads_are_those_of_the_definition(tmp_path: Path) -> None:
    """A stage takes its times and, both ways, the bytes of the edges that it cuts over the bandwidth.

    Under 1F1B the i-th last stage holds i samples: i * A + B.
    """
    rng = random.Random(4)
    for _ in range(25):
        content = random_chain(rng, n := rng.randint(2, 7))
        workload = load(write(tmp_path, content))
        cuts = sorted(rng.sample(range(1, n), rng.randint(0, n - 1)))
        stages = [list(range(a, b)) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
        found = evaluate(workload.graph, workload.devices, placed(stages))
        chosen = [node["TMPCs"]["1"][0] for node in content["nodes"]]
        crossing = {i + 1: edge["communicationCost"] for i, edge in enumerate(content["edges"])}
        loads = [
            sum(chosen[i]["timePerSample"] for i in stage)
            + 2 * (crossing.get(stage[0], 0) + crossing.get(stage[-1] + 1, 0)) / content["bandwidth"]
            for stage in stages
        ]
        assert found.value == pytest.approx(1e3 * max(loads))
        held = simulate(workload.graph, workload.devices, placed(stages), "1f1b", microbatches=n)
        memory = [
            sum(chosen[i]["memoryUsageA"] * (len(stages) - s) + chosen[i]["memoryUsageB"] for i in stage)
            for s, stage in enumerate(stages)
        ]
        assert max(held.peak_memory) == pytest.approx(max(memory))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("maxDevices",), 0, "file: maxDevices = 0: must be a whole number from 1"),
        (("nodes",), [], "file: nodes = []: must not be empty"),
        (("nodes", 0, "id"), "0", "nodes[0]: id = '0': must be an integer"),
        (("nodes", 2, "id"), 1, "node 1: id = 1: is given to more than one node"),
        (("nodes", 2, "TMPCs"), {"2": []}, "node 2: TMPCs: 1: has no options for this degree; there are 2"),
        (
            ("nodes", 2, "TMPCs", "1"),
            [{}],
            "node 2: TMPCs: 1 = 'vanilla': is not the id of an option; there are No",
        ),
        (
            ("nodes", 2, "TMPCs", "1", 0, "timePerSample"),
            -1,
            "node 2: TMPCs: 1: timePerSample = -1: must be a fin",
        ),
        (
            ("nodes", 2, "TMPCs", "1", 0, "syncTimeFw"),
            {"x": 1},
            "syncTimeFw = {'x': 1}: must be an object of bytes",
        ),
        (("edges", 0, "destId"), 9, "edges[0]: 9: is not the id of a node"),
        (("edges", 0, "destId"), 0, "edges[0]: 0 -> 0: must join two different nodes"),
        (
            ("edges", 0, "communicationcost"),
            0,
            "edges[0]: communicationcost: is not a field; did you mean comm",
        ),
        (
            ("edges", 0),
            {"sourceId": 0, "destId": 2, "communicationCost": 1},
            "is a cycle; the graph must have none",
        ),
    ],
)
def test_a_broken_rule_is_named(tmp_path: Path, place: tuple[Any, ...], value: Any, message: str) -> None:
    content: Any = document()
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    with pytest.raises(WorkloadError) as caught:
        load(write(tmp_path, content))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "degree = 0: must be an integer of at least 1"),
        ({"degree": 2, "time_unit": "h"}, "time_unit = 'h': must be one of s, ms, us"),
        ({"backward_share": 2}, "backward_share = 2: must be a number from 0 to 1"),
        ({"training": None}, "training = None: must be True or False"),
    ],
)
def test_an_option_out_of_range_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load(write(tmp_path, document()), **options)


def test_inputs_by_microbatch_size(tmp_path: Path) -> None:
    """Sailor's files; their numbers of devices and bandwidths mean nothing."""
    slow = copy.deepcopy(document()) | {"maxDevices": 1, "bandwidth": 1}
    slow["nodes"][0]["TMPCs"]["1"][0]["timePerSample"] = 30.0
    path = write(tmp_path, {"1": document() | {"maxDevices": 1}, "16": slow}, "profile.json")
    found = load(path, accelerators=3, bandwidth=10.0, batch=16, degree=1)
    assert found.graph.time[0, 1] == pytest.approx(10_000) and found.graph.extras.top["batch"] == 16
    assert [kind.count for kind in found.devices.kinds] == [3, 0] and found.devices.kinds[0].memory == 500.0
    assert load(path, accelerators=3, bandwidth=10.0, batch=1, degree=2).devices.kinds[0].count == 3
    for options, message in (
        ({"bandwidth": 1.0}, "batch = None: must be one of 1, 16"),
        ({"bandwidth": 1.0, "batch": 2}, "batch = 2: must be one of 1, 16"),
        ({"batch": 1}, "bandwidth = None: must be a number above 0"),
    ):
        with pytest.raises(OptionError, match=message):
            load(path, accelerators=1, **options)
    with pytest.raises(OptionError, match="a profile of Sailor needs accelerators or devices"):
        load(path, bandwidth=1.0, batch=1)


def test_the_command_line_reads_an_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, document()))
    words = ["--degree", "2", "--time-unit", "ms", "--bandwidth", "1e4", "--format", "json"]
    assert main(["solve", path, *words]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["value"] == pytest.approx(6.5)  # all on one group; any cut costs at least 1 + 1
    assert plan["devices"][0]["name"] == "accelerator0"


def test_mutated_inputs_are_refused_or_loaded(tmp_path: Path) -> None:
    """Both happen often."""
    counts = run_mutants(tmp_path, 10, 300, [document()], load_one)
    assert counts["done"] > 30 and counts["WorkloadError"] > 100


def load_one(path: Path) -> None:
    assert isinstance(load(path, bandwidth=1e3), Workload)


@pytest.mark.skipif(not REFERENCE.exists(), reason=f"{REFERENCE} is not there")
def test_plans_of_piper_have_the_times_that_piper_computes() -> None:
    """Without replicas, tensor parallelism, recomputation; here no tensor is sent twice to a device."""
    tried = 0
    for record in json.loads(REFERENCE.read_text()):
        stages = record["stages"] or []
        plain = all(s["t"] == 1 == s["d"] and set(s["TMPC"]) == {"vanilla"} for s in stages)
        if not stages or not plain:
            continue
        devices = Devices.accelerated(len(stages))
        workload = load(INPUTS / f"{record['input']}.json", bandwidth=record["bandwidth"], devices=devices)
        placement = placed([stage["nodes"] for stage in stages])
        found = evaluate(workload.graph, devices, placement).value / 1e3
        tried += 1
        if record["input"] == "bert32a100":
            assert found == pytest.approx(record["time_per_sample"], rel=1e-9)
        assert record["time_per_sample"] * 0.99999 < found <= record["time_per_sample"] * (1 + 1e-9)
    assert tried >= 9


@pytest.mark.skipif(not SAILOR.exists(), reason=f"{SAILOR} is not there")
def test_sailor_profiles_are_read_at_every_degree() -> None:
    files = sorted(SAILOR.glob("*/*/profile.json"))
    for path in files:
        for batch, content in json.loads(path.read_text()).items():
            for degree in content["nodes"][0]["TMPCs"]:
                options: dict[str, Any] = {"batch": int(batch), "degree": int(degree), "bandwidth": 25e9}
                graph = load(path, accelerators=1, memory="1TB", **options).graph
                total = sum(node["TMPCs"][degree][0]["timePerSample"] for node in content["nodes"])
                assert graph.time.sum() == pytest.approx(1e3 * total)
    assert len(files) >= 10
