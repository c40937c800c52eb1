"""Alternatives are checked with the graph, kept in workload files, and part of a graph's hash."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import Alternative, Alternatives, DeviceKind, Devices, Graph, Workload, WorkloadError, load
from tests.random_alternatives import devices_of, random_case

PAIR = Alternative("pair", {"gpu": 0.6}, 2, parameters=3.0, inputs={0: 0.25})


def chain() -> Graph:
    return Graph.from_arrays({"gpu": [1.0, 1.0, 2.0]}, [(0, 1), (1, 2)], 0.5, color=[None, "a", "a"])


def with_ways(**changed: Any) -> Graph:
    """The chain, with an alternative of both nodes of its class; the first one is changed."""
    first = replace(PAIR, **changed)
    second = replace(first, inputs={})
    return replace(chain(), alternatives=Alternatives({1: [first], 2: [second]}))


def test_a_graph_keeps_its_alternatives() -> None:
    graph = with_ways()
    assert graph.alternatives[1][0].degree == 2 and list(graph.alternatives) == [1, 2]
    assert graph.alternatives.kept(lambda way: way.degree == 1) == {}
    assert graph.weights.tolist() == [0.0, 0.0, 0.0]  # parameters, as an alternative gives some
    assert len({chain().digest, graph.digest, with_ways(degree=3).digest, with_ways(size=1.0).digest}) == 4
    assert replace(graph, alternatives=Alternatives()).digest == chain().digest


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "node 1, alternative '': name = '': must be a text that is not empty"),
        ({"degree": 0}, "node 1, alternative 'pair': degree = 0: must be an integer of at least 1"),
        ({"degree": True}, "degree = True: must be an integer"),
        ({"times": {"cpu": 1.0}}, "times = {'cpu': 1.0}: must have the times on gpu"),
        ({"times": {"gpu": -1.0}}, "times[gpu] = -1.0: must be a finite number of at least 0"),
        ({"activations": float("nan")}, "activations = nan: must be a finite number"),
        ({"size": "big"}, "size = 'big': must be a finite number"),
        ({"inputs": {2: 1.0}}, "inputs = 2: must be the id of a node that this node reads from"),
        ({"outputs": {0: 1.0}}, "outputs = 0: must be the id of a node that this node sends to"),
        ({"inputs": {0: -1.0}}, "inputs[0] = -1.0: must be a finite number"),
        ({"inputs": [0]}, "inputs = [0]: must be a mapping from node id to time"),
    ],
)
def test_a_broken_rule_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        with_ways(**changed)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("ways", "message"),
    [
        ([PAIR], "must be a mapping from node id"),
        ({1: PAIR}, "node 1: alternatives = "),
        ({9: [PAIR]}, "alternatives: node = 9: is not the id of a node"),
        ({1: [PAIR, PAIR], 2: []}, "alternatives: name = 'pair': is the name of more than one"),
        ({1: [PAIR]}, "node 2: alternatives = {}: must have the names and degrees of node 1"),
        (
            {1: [PAIR], 2: [replace(PAIR, degree=3, inputs={})]},
            "node 2: alternatives = {'pair': 3}: must have the names and degrees of node 1",
        ),
    ],
)
def test_alternatives_belong_to_nodes_and_classes(ways: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        replace(chain(), alternatives=ways)
    assert message in str(caught.value)


def test_a_workload_file_keeps_them(tmp_path: Path) -> None:
    for seed in range(30):
        case = random_case(np.random.default_rng(seed))
        graph = replace(case.graph, names=tuple(f"node {i}" for i in range(len(case.graph))))
        roomy = Devices((replace(devices_of(case).kinds[0], memory=None),))
        workload = Workload(graph, roomy)
        workload.save(tmp_path / "w.json")
        found = load(tmp_path / "w.json")
        assert found.sha256 == workload.sha256 and found.graph.alternatives == graph.alternatives


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", 3, "node 1: alternatives[0]: name = 3"),
        ("name", "", "node 1: alternatives[0]: name = '': must not be empty"),
        ("degree", 1.5, "node 1: alternatives[0]: degree = 1.5"),
        ("times", None, "node 1: alternatives[0]: times = None"),
        ("times", {"gpu": "1"}, "node 1: alternatives[0]: times: gpu = '1': must be a number"),
        ("workspace", [], "node 1: alternatives[0]: workspace = []: must be a number"),
        ("inputs", {"7": 1}, "node 1, alternative 'pair': inputs = '7': must be the id of a node"),
        ("colour", 1, "node 1: alternatives[0]: colour: is not a field of an alternative"),
        ("Degree", 1, "node 1: alternatives[0]: Degree: is not a field; did you mean degree?"),
    ],
)
def test_a_broken_file_is_told(tmp_path: Path, field: str, value: Any, message: str) -> None:
    path = tmp_path / "w.json"
    Workload(with_ways(), Devices((DeviceKind("gpu", 4),))).save(path)
    content = json.loads(path.read_text())
    content["nodes"][1]["alternatives"][0][field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(WorkloadError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path)) and message in str(caught.value)


def test_own_figures_may_exceed_the_memory() -> None:
    """A node that fits in another way is no reason to refuse a workload."""
    graph = Graph.from_arrays({"gpu": [1.0]}, size=9.0)
    small = Devices((DeviceKind("gpu", 2, memory=4.0),))
    with pytest.raises(WorkloadError, match="larger than the memory"):
        Workload(graph, small)
    Workload(
        replace(graph, alternatives=Alternatives({0: [Alternative("half", {"gpu": 1.0}, 2, 4.0)]})), small
    )
