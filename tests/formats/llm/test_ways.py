"""The alternatives of a config's layers are the layers of the config in other layouts."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner import OptionError
from partitioner.cli.command_line import main
from tests.instances import write

SIZES = {"n_embd": 256, "n_layer": 2, "n_head": 8, "vocab_size": 512, "n_positions": 256}
GPT = {"model_type": "gpt2", "torch_dtype": "bfloat16"} | SIZES
GIVEN: dict[str, Any] = {"sequence": 256, "batch": 4, "device": "A100-80", "bandwidth": 25e9}
WAYS: list[Any] = [{"tensor": 2}, {"tensor": 4, "sequence_parallel": True}, {"recompute": "full"}]
NAMES = ["tensor 2", "tensor 4, sequence_parallel", "recompute full"]


def loaded(folder: Path, **options: Any) -> pt.Workload:
    return pt.load_config(write(folder, GPT, "config.json"), **GIVEN | {"accelerators": 4} | options)


def test_an_alternative_is_the_layer_of_its_layout(tmp_path: Path) -> None:
    """Times and memory of each node are those of the graph that is loaded with the way alone."""
    graph = loaded(tmp_path, ways=WAYS).graph
    plain = loaded(tmp_path).graph
    assert np.array_equal(graph.time, plain.time) and np.array_equal(graph.parts, plain.parts)
    for k, way in enumerate(WAYS):
        alone = loaded(tmp_path, **way).graph
        for i, node in enumerate(graph.ids):
            found = graph.alternatives[node][k]
            assert (found.name, found.degree) == (NAMES[k], way.get("tensor", 1))
            assert found.times == {"accelerator": alone.time[0, i]}
            assert found.parts == tuple(alone.parts[:, i])


def test_a_way_keeps_the_other_options(tmp_path: Path) -> None:
    ways: Any = [{"tensor": 2}]
    graph = loaded(tmp_path, ways=ways, recompute="full", gradient_dtype="float32").graph
    alone = loaded(tmp_path, tensor=2, recompute="full", gradient_dtype="float32").graph
    assert [graph.alternatives[node][0].parts for node in graph.ids] == list(map(tuple, alone.parts.T))


def test_the_exact_method_chooses_the_best_of_all_ways(tmp_path: Path) -> None:
    """On two devices: no cut in one way, on one device, on both, or together, is faster."""
    workload = loaded(tmp_path, ways=WAYS, accelerators=2)
    plan = pt.solve(workload.graph, workload.devices, schedule="1f1b", replicas=2)
    assert plan.status == "optimal"
    names, device = workload.devices.names, workload.devices
    layers = list(dict.fromkeys(workload.graph.layer.tolist()))
    best = float("inf")
    for cut in range(1, len(layers) + 1):
        first = set(layers[:cut])
        place = {
            node: names[0 if layer in first else 1]
            for node, layer in zip(workload.graph.ids, workload.graph.layer.tolist(), strict=True)
        }
        for way in itertools.chain([None], NAMES):
            degree = {"tensor 2": 2, NAMES[1]: 4}.get(way or "", 1)
            if (cut < len(layers) and degree > 1) or degree > 2:
                continue
            chosen = dict.fromkeys(workload.graph.ids, way) if way else {}
            further = {names[0]: [names[1]]} if cut == len(layers) and degree == 2 else {}
            found = pt.evaluate(
                workload.graph, device, place, schedule="1f1b", alternatives=chosen, replicas=further
            )
            if found.feasible:
                best = min(best, found.value)
    assert plan.value <= best * (1 + 1e-9)
    assert plan.bound == pytest.approx(plan.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ways": [{"tensors": 2}]}, "ways: 'tensors': must be one of tensor"),
        ({"ways": [{}]}, "must be a mapping with options of a layout"),
        ({"ways": [{"tensor": 2}, {"tensor": 2}]}, "must not have a way twice"),
        ({"ways": [{"tensor": 2}], "tensor": 2}, "ways: need tensor = 1"),
        ({"ways": [{"tensor": 3}]}, "tensor = 3: must divide the 8 attention heads"),
        ({"ways": [{"tensor": 2}], "generate": 4, "training": False}, "are for a config without the option"),
    ],
)
def test_ways_that_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        loaded(tmp_path, **options)


def test_the_command_line_takes_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, GPT, "config.json"))
    given = ["--sequence", "256", "--batch", "4", "--device", "A100-80", "--bandwidth", "25e9"]
    given += ["--accelerators", "1", "--schedule", "1f1b", "--memory", "46MB"]
    assert main(["solve", path, *given]) != 0
    capsys.readouterr()
    assert main(["solve", path, *given, "--ways", "tensor=2;recompute=full"]) == 0
    assert "recompute full" in capsys.readouterr().out
