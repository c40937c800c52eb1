"""All options of Piper's inputs become alternatives with the figures of Piper's own definition."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from partitioner import DeviceKind, Devices, WorkloadError, evaluate, load
from tests.formats.test_piper import INPUTS, REFERENCE, document
from tests.instances import write


def test_every_option_has_its_place(tmp_path: Path) -> None:
    """Node 1 of degree 2 reads 6 bytes more from node 0, at 10 bytes a second; both passes pay for them."""
    graph = load(write(tmp_path, document())).graph
    names = {node: [way.name for way in ways] for node, ways in graph.alternatives.items()}
    assert names["1"] == names["1/backward"] == ["activation recomp", "vanilla x2"]
    assert names["0"] == names["2"] == ["vanilla x2"]
    forward, backward = graph.alternatives["1"][1], graph.alternatives["1/backward"][1]
    assert forward.degree == backward.degree == 2
    assert forward.times["accelerator"] + backward.times["accelerator"] == pytest.approx(3500)
    assert (forward.parameters, forward.activations, backward.optimizer) == (4.0, 35.0, 8.0)
    assert dict(forward.inputs) == {"0": pytest.approx(600)} and not forward.outputs
    assert dict(backward.outputs) == {"0/backward": pytest.approx(600)} and not backward.inputs


def test_options_of_another_degree_are_no_alternatives(tmp_path: Path) -> None:
    path = write(tmp_path, document())
    assert not load(path, degree=2).graph.alternatives
    inference = load(path, training=False).graph.alternatives
    assert inference["1"][1].size == 8.0 and not inference["1"][1].activations


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("2", 0, "memoryUsageA", -1), "node 1: TMPCs: 2: memoryUsageA = -1"),
        (("2", 0, "syncTimeFw", {"x": 1}), "node 1: TMPCs: 2: syncTimeFw"),
    ],
)
def test_a_broken_option_is_named(tmp_path: Path, change: tuple[Any, ...], message: str) -> None:
    content = copy.deepcopy(document())
    degree, place, field, value = change
    content["nodes"][1]["TMPCs"][degree][place][field] = value
    with pytest.raises(WorkloadError) as caught:
        load(write(tmp_path, content))
    assert message in str(caught.value)


def test_two_options_of_one_id_are_refused(tmp_path: Path) -> None:
    content = copy.deepcopy(document())
    content["nodes"][1]["TMPCs"]["1"].append(content["nodes"][1]["TMPCs"]["1"][1])
    with pytest.raises(WorkloadError, match="'activation recomp': is the name of more than one alternative"):
        load(write(tmp_path, content))


@pytest.mark.skipif(not REFERENCE.exists(), reason=f"{REFERENCE} is not there")
def test_plans_of_piper_cost_what_its_program_computes() -> None:
    """Every plan of the program of up to 64 devices, with copies, degrees and recomputation."""
    tried = 0
    for record in json.loads(REFERENCE.read_text())[::2]:
        if not record["stages"] or record["k"] > 64:
            continue
        kind = DeviceKind(
            "accelerator", record["k"], memory=record["memory"], bandwidth=record["bandwidth"] / 1e3
        )
        workload = load(
            INPUTS / f"{record['input']}.json", bandwidth=record["bandwidth"], devices=Devices((kind,))
        )
        found = evaluate(workload.graph, workload.devices, **arguments(record))
        assert found.feasible and found.value / 1e3 == pytest.approx(record["time_per_sample"], rel=1e-9)
        tried += 1
    assert tried > 80


def arguments(record: dict[str, Any]) -> dict[str, Any]:
    """What `evaluate` is given for the stages of a record."""
    placement: dict[str, str] = {}
    replicas: dict[str, tuple[str, ...]] = {}
    alternatives: dict[str, str] = {}
    order: list[str] = []
    first = 0
    for stage in record["stages"]:
        devices = [f"accelerator{first + i}" for i in range(stage["t"] * stage["d"])]
        first += len(devices)
        order.append(devices[0])
        replicas[devices[0]] = tuple(devices[1:])
        for node, option in zip(stage["nodes"], stage["TMPC"], strict=True):
            for end in (f"{node}", f"{node}/backward"):
                placement[end] = devices[0]
                name = option if stage["t"] == 1 else f"{option} x{stage['t']}"
                alternatives |= {} if name == "vanilla" else {end: name}
    return {
        "placement": placement, "objective": "piper", "replicas": replicas, "order": order,
        "alternatives": alternatives, "schedule": "1f1b", "microbatches": record["N"],
    }  # fmt: skip
