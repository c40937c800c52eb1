"""Exports say in which way nodes run, or refuse a plan naming the tool, the stage and the rule."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

import partitioner as pt
from partitioner.exports.writers import TARGETS
from tests.exports.models import decoder

LAYERS, SPACE = 6, 5.0
KEPT = "recomputed"


def workload(pairs: bool = False) -> pt.Workload:
    """A decoder in training whose memory is too small for what it keeps; modules can run in other ways."""
    graph = decoder(LAYERS, 4, training=True).graph
    parts = graph.parts.copy()
    parts[3] = np.where(graph.backward, 0.0, 0.5)
    ways = {
        node: [
            pt.Alternative("on two", {"gpu": 0.55}, 2, parameters=held / 2, activations=0.1)
            if pairs
            else pt.Alternative(KEPT, {"gpu": 1.3}, parameters=held)
        ]
        for node, held in zip(graph.ids, parts[0].tolist(), strict=True)
    }
    devices = pt.Devices((pt.DeviceKind("gpu", 4, memory=SPACE),))
    return pt.Workload(replace(graph, parts=parts, alternatives=pt.Alternatives(ways)), devices)


def planned(found: pt.Workload, **options: object) -> pt.Plan:
    plan = pt.solve(found.graph, found.devices, schedule="1f1b", microbatches=4, **options)  # type: ignore[arg-type]
    assert plan.alternatives
    return plan


def test_torch_names_the_modules_that_are_recomputed() -> None:
    found = workload()
    plan = planned(found)
    written = json.loads(pt.export(found, plan, "torch"))
    number = zip(found.graph.ids, found.graph.layer.tolist(), strict=True)
    labels = {node: found.graph.layer_labels[i] for node, i in number}
    assert written["ways"] == {labels[node]: way for node, way in plan.alternatives.items()}
    assert set(written["ways"].values()) == {KEPT} and len(written["ways"]) < LAYERS + 3
    own = replace(found, graph=replace(found.graph, alternatives=pt.Alternatives()))
    assert "ways" not in json.loads(pt.export(own, pt.solve(own.graph, own.devices), "torch"))


@pytest.mark.parametrize("to", [name for name, target in TARGETS.items() if not target.ways])
def test_who_has_no_words_for_ways_refuses_them(to: str) -> None:
    found = workload()
    with pytest.raises(pt.ExportError, match=rf"{to}: stage 0 \(of gpu0\): runs \d+ nodes by 'recomputed'"):
        pt.export(found, planned(found), to)


@pytest.mark.parametrize("to", TARGETS)
def test_stages_on_several_devices_are_refused(to: str) -> None:
    found = workload(pairs=True)
    rule = "is run by 2 devices together: tensor-parallel stages cannot be expressed"
    with pytest.raises(pt.ExportError, match=rf"{to}: stage \d \(of gpu\d\): {rule}") as caught:
        pt.export(found, planned(found), to)
    assert "holds a copy" not in str(caught.value)


def test_a_module_runs_in_one_way() -> None:
    found = workload()
    plan = planned(found)
    loose = replace(found, graph=replace(found.graph, color=np.full(len(found.graph), -1), color_labels=()))
    mixed = replace(
        plan,
        alternatives={0: KEPT},
        placement=dict.fromkeys(plan.placement, "gpu0"),
        stages=("gpu0",),
        replicas={},
        workload_sha256=loose.sha256,
    )
    with pytest.raises(pt.ExportError, match="module embed: runs by 'recomputed' and its own figures: all"):
        pt.export(loose, mixed, "torch")


def test_tables_have_the_ways() -> None:
    found = workload(pairs=True)
    plan = planned(found, replicas=2)
    nodes = list(csv.DictReader(io.StringIO(str(pt.export(found, plan, "nodes")))))
    assert {row["id"]: row["way"] for row in nodes if row["way"]} == {
        str(node): way for node, way in plan.alternatives.items()
    }
    stages = list(csv.DictReader(io.StringIO(str(pt.export(found, plan, "stages")))))
    for row, stage in zip(stages, plan.by_stage, strict=True):
        assert int(row["copies"]) * int(row["degree"]) == len(row["devices"].split()) == len(stage.devices)
        assert int(row["degree"]) == (2 if "on two" in row["ways"] else 1)
    assert "\\non two" in str(pt.export(found, plan, "graphviz"))
