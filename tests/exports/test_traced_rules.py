"""What torch's front end cannot cut or train is refused; what it can is taken."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from partitioner import ExportError, Graph, Workload, export
from partitioner.exports.stages import stages_of
from partitioner.exports.torch_pipelining import INPUT_SKIPS, SKIPS, TORCH
from partitioner.workload.graph import Extras
from tests.exports.models import cuts, gpus, line, planned

FOUR = ["a", "b", "c", "d"]


def refusal(workload: Workload, plan: Any) -> str:
    with pytest.raises(ExportError) as error:
        export(workload, plan, "torch")
    return str(error.value)


def test_tensors_may_skip_stages_without_a_backward_pass() -> None:
    workload = line(FOUR, gpus(4), skips=[(0, 2), (0, 3)])
    found = json.loads(export(workload, cuts(workload, 1, 1, 1, 1), "torch"))
    assert found["split_points"] == ["b", "c", "d"] and found["notes"] == [SKIPS]
    near = json.loads(export(workload, cuts(workload, 3, 1), "torch"))
    assert "notes" not in near


def test_what_inputs_determine_is_noted_where_it_passes_a_stage() -> None:
    """Torch sends it, so that only some schedules run it, though the plan is a line of stages."""
    lists = Extras(nodes=[{"ofInputs": [2, 3]}, {}, {}, {}])
    workload = line(FOUR, gpus(3), skips=[(0, 2), (0, 3)])
    workload = replace(workload, graph=replace(workload.graph, extras=lists))
    found = json.loads(export(workload, cuts(workload, 1, 1, 2), "torch"))
    assert found["notes"] == [INPUT_SKIPS]
    assert "notes" not in json.loads(export(workload, cuts(workload, 2, 2), "torch"))


def test_tensors_that_are_not_contiguous_are_noted_where_they_are_sent() -> None:
    lists = Extras(nodes=[{"strided": [1]}, {}, {"strided": [3, "none"]}, {}])
    workload = line(FOUR, gpus(2))
    workload = replace(workload, graph=replace(workload.graph, extras=lists))
    (note,) = json.loads(export(workload, cuts(workload, 3, 1), "torch"))["notes"]
    assert note.startswith("stage 0 sends a tensor of c that is not contiguous")
    assert "notes" not in json.loads(export(workload, cuts(workload, 2, 2), "torch"))


def test_a_module_sends_to_one_stage_in_training() -> None:
    """Torch: "Backward of skip connections not supported yet", where a tensor has several destinations."""
    workload = line(FOUR, gpus(3), skips=[(0, 3)], training=True)
    text = refusal(workload, cuts(workload, 1, 2, 1))
    assert "torch: module a: sends tensors to stages 1, 2: of a training graph must send" in text
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 6},
        [(0, 2), (1, 2), (2, 3), (3, 5), (5, 4)],
        backward=[False] * 3 + [True] * 3,
        color=[0, 1, 2, 2, 0, 1],
        layer=["a", "b", "c", "c", "a", "b"],
    )
    skipping = Workload(graph, gpus(3))
    homes = {"a": "gpu0", "b": "gpu1", "c": "gpu2"}
    plan = planned(skipping, homes, order=("gpu0", "gpu1", "gpu2"), schedule="1f1b", microbatches=4)
    found = json.loads(export(skipping, plan, "torch"))
    assert found["notes"] == [SKIPS] and found["schedule"] == "1f1b" and "schedule_csv" not in found
    other = planned(skipping, homes, order=("gpu0", "gpu1", "gpu2"), schedule="zero-bubble", microbatches=4)
    assert "schedule: zero-bubble: where tensors skip stages the schedule must be gpipe or 1f1b" in refusal(
        skipping, other
    )


def test_a_device_has_one_stage_where_tensors_skip() -> None:
    workload = line(FOUR, gpus(2), skips=[(0, 2)])
    text = refusal(workload, cuts(workload, 1, 1, 2, devices=["gpu0", "gpu1", "gpu0"]))
    assert "device gpu0: has stages 0, 2: where tensors skip stages a device has one stage" in text
    plain = line(FOUR, gpus(2))
    assert len(stages_of(plain, cuts(plain, 1, 1, 2, devices=["gpu0", "gpu1", "gpu0"]), TORCH).stages) == 3


def test_stages_have_consecutive_modules() -> None:
    """Two branches: the second one may not come before the first."""
    graph = Graph.from_arrays({"gpu": [1.0] * 4}, [(0, 1), (0, 2), (1, 3), (2, 3)], layer=FOUR)
    workload = Workload(graph, gpus(3))
    homes = {"a": "gpu0", "b": "gpu1", "c": "gpu0", "d": "gpu2"}
    text = refusal(workload, planned(workload, homes, order=("gpu0", "gpu1", "gpu2")))
    assert "module b: is in stage 1, c after it in stage 0: stages must have consecutive modules" in text


def test_a_module_that_is_called_again_does_not_begin_a_stage() -> None:
    layer = ["conv", "pool", "middle", "pool", "head"]
    graph = Graph.from_arrays({"gpu": [1.0] * 5}, [(i, i + 1) for i in range(4)], layer=layer)
    workload = Workload(graph, gpus(2))
    homes = {"conv": "gpu0", "pool": "gpu1", "middle": "gpu1", "head": "gpu1"}
    text = refusal(workload, planned(workload, homes, order=("gpu0", "gpu1")))
    assert "module pool: is called again after other modules, so that it must not be the first" in text
    homes |= {"conv": "gpu0", "pool": "gpu0", "middle": "gpu0"}
    assert json.loads(export(workload, planned(workload, homes), "torch"))["split_points"] == ["head"]
