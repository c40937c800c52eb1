"""A workload that is saved and loaded is the same; what JSON cannot hold is refused, and no file is left."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    Layer,
    Level,
    PartitionerError,
    Workload,
    WorkloadError,
    load,
    load_pipedream,
)
from partitioner.formats.msr import NODE_FIELDS as NATIVE_NODE_FIELDS
from partitioner.formats.msr import TOP_FIELDS as NATIVE_TOP_FIELDS
from partitioner.workload.extras import Extras
from partitioner.workload.workload_json import EDGE_FIELDS, NODE_FIELDS, TOP_FIELDS
from tests.formats.test_fuzz import run_mutants
from tests.instances import SOLVABLE, write

PAGE = Path(__file__).parents[2] / "docs" / "workload_format.md"
PROFILE = Path(__file__).parents[2] / "instances" / "profiles" / "vgg16.txt"
FEW = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
AMOUNT = st.just(0.0) | st.floats(1e-100, 1e100) | st.integers(1, 2**60).map(float)
LABEL = st.integers(-(2**63) + 1, 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
EXTRA = st.dictionaries(
    st.sampled_from(["stage", "note", "sharedParameters"]), st.lists(LABEL) | LABEL, max_size=2
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Graphs of up to five nodes, with every field, that fit devices of one or two kinds."""
    ids = draw(st.lists(LABEL, min_size=1, max_size=5, unique_by=str))
    n = len(ids)
    kinds = ("gpu", "CPU 1")[: draw(st.integers(1, 2))]

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    pairs = [(ids[u], ids[v]) for v in range(n) for u in range(v) if draw(st.booleans())]
    backward = sorted(column(st.booleans()))
    graph = Graph.from_arrays(
        {kind: column(AMOUNT) for kind in kinds},
        pairs,
        draw(st.lists(AMOUNT, min_size=len(pairs), max_size=len(pairs))),
        ids=ids,
        size=column(AMOUNT),
        backward=backward,
        allowed={kind: column(st.booleans()) for kind in kinds[1:]},
        layer=column(st.none() | LABEL),
        names=column(st.text(st.characters(exclude_categories=["Cs"]), max_size=4)),
        extras=Extras({"timeUnit": "ms", **draw(EXTRA)}, column(EXTRA), [draw(EXTRA) for _ in pairs]),
        **{part: column(AMOUNT) for part in ("parameters", "gradients", "activations", "workspace")},
    )
    codes = np.array(draw(st.permutations(range(n))))
    labels = draw(st.lists(LABEL, min_size=n, max_size=n, unique=True))
    graph = replace(graph, color=codes, color_labels=tuple(labels))
    made = [
        DeviceKind("gpu", 2, bandwidth=draw(st.none() | st.floats(1, 9)), time_factor=draw(st.floats(1, 2)))
    ]
    made += [DeviceKind("host", 2, None, False, times=kinds[-1])]
    return Workload(graph, Devices(tuple(made), "duplex", (Level("server", {"gpu": 1, "host": 1}, 2.0),)))


def same(one: Workload, other: Workload) -> bool:
    """Whether two workloads are equal in all that a file holds."""
    for name in (field.name for field in fields(Graph)):
        first, second = getattr(one.graph, name), getattr(other.graph, name)
        if isinstance(first, Extras):
            first, second = (
                (dict(x.top), [*map(dict, x.nodes)], [*map(dict, x.edges)]) for x in (first, second)
            )
        equal = np.array_equal(first, second) if isinstance(first, np.ndarray) else first == second
        if not equal or (name == "ids" and [*map(type, first)] != [*map(type, second)]):
            return False
    return one.devices.normal() == other.devices.normal() and one.sha256 == other.sha256


@FEW
@given(workloads())
def test_a_saved_workload_is_loaded_as_it_was(tmp_path: Path, workload: Workload) -> None:
    path = tmp_path / "saved.json"
    workload.save(path)
    again = load(path)
    assert same(workload, again) and again.name == "saved"
    before = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", SOLVABLE)
def test_graphs_without_further_fields(tmp_path: Path, make: Any) -> None:
    instance = make()
    workload = Workload(instance.graph, instance.devices)
    workload.save(tmp_path / "w.json")
    assert load(tmp_path / "w.json").sha256 == workload.sha256


def test_layers_keep_what_they_share(tmp_path: Path) -> None:
    shared = {"wte": 4.0}
    layers = [
        Layer("a", 1.0, 2.0, parameters=4.0, shared=shared),
        Layer("b", 1.0, 2.0, parameters=4.0, shared=shared),
    ]
    workload = Workload(Graph.chain(layers, bandwidth=1e3), Devices.accelerated(2))
    workload.save(tmp_path / "w.json")
    again = load(tmp_path / "w.json", accelerators=3, memory="1GiB")
    assert again.graph.digest == workload.graph.digest
    assert again.graph.extras.nodes[0] == {"sharedParameters": ["wte"]}
    assert again.devices.kinds[0].memory == 2**30 and again.devices.kinds[0].count == 3


def graph(**changes: Any) -> Graph:
    return Graph.from_arrays({"gpu": [1.0, 2.0]}, [(0, 1)], **changes)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            graph(color=[(1, 2), None]),
            "node 0: cannot be written: label = (1, 2): must be an integer of 64 bits",
        ),
        (graph(layer=[2.5, None]), "node 0: cannot be written: label = 2.5: must be an integer"),
        (graph(ids=[0, 1]), None),
        (graph(names=["\ud800", "b"]), r"node 0: cannot be written: label = '\ud800': must be an integer"),
        (
            graph(extras=Extras({"Version": 3})),
            "the workload: cannot be written: further field = 'Version': must be",
        ),
        (
            graph(extras=Extras(nodes=[{"is_backward_node": 1}, {}])),
            "node 0: cannot be written: further field = 'is_b",
        ),
        (graph(extras=Extras(edges=[{"cost": 1}])), "edge 0 -> 1: cannot be written: further field = 'cost'"),
        (graph(extras=Extras({"a": {1, 2}})), "a further field is not JSON: Object of type set"),
        (graph(extras=Extras({"a": float("nan")})), "a further field is not JSON: Out of range float"),
        (
            replace(graph(), color=np.array([0, 1]), color_labels=("a", "a")),
            "a colour class: cannot be written: label = 'a': is that of two classes",
        ),
    ],
)
def test_what_has_no_place_in_json_is_refused(tmp_path: Path, made: Graph, message: str | None) -> None:
    workload = Workload(made, Devices((DeviceKind("gpu", 1),)))
    if message is None:
        workload.save(tmp_path / "w.json")
        return
    with pytest.raises(PartitionerError) as caught:
        workload.save(tmp_path / "w.json")
    assert message in str(caught.value) and list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(PartitionerError, match=r"nowhere/w.json: cannot be written: No such file"):
        Workload(graph(), Devices((DeviceKind("gpu", 1),))).save(tmp_path / "nowhere" / "w.json")


def saved_document() -> dict[str, Any]:
    """A file with every field."""
    node: dict[str, Any] = {
        "id": "a",
        "name": "A",
        "times": {"gpu": 1, "cpu": 2},
        "allowed": ["gpu"],
        "size": 1,
    }
    node |= {"colorClass": 7, "layerId": "l", "parameters": 3, "workspace": 1}
    nodes = [node, {"id": "b", "times": {"gpu": 1, "cpu": 2}, "isBackwardNode": True, "colorClass": 7}]
    devices = {"kinds": [{"name": "gpu", "count": 2, "memory": 9e9}, {"name": "cpu", "count": 1}]}
    edges = [{"sourceId": "a", "destId": "b", "cost": 0.5}]
    return {"version": 1, "devices": devices, "kinds": ["gpu", "cpu"], "nodes": nodes, "edges": edges}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("version",), 2, "file: version = 2: must be 1, the only version that there is"),
        (("kinds",), ["gpu"], "node 'a': times = {'gpu': 1, 'cpu': 2}: must have the times on gpu"),
        (("kinds",), "gpu", "file: kinds = 'gpu': must be a list"),
        (("devices", "kinds", 0, "count"), -1, "device kind gpu: count = -1: must be 0 to 65,536"),
        (("devices", "kinds", 0, "counts"), 1, "devices.kinds[0]: counts: is not a field; these are name"),
        (("nodes", 0, "times", "gpu"), "1", "node 'a': times: gpu = '1': must be a number"),
        (
            ("nodes", 0, "times", "gpu"),
            -1,
            "node 'a': time[gpu] = -1.0: must be a finite number of at least 0",
        ),
        (("nodes", 0, "allowed"), ["tpu"], "node 'a': allowed = 'tpu': must be one of the kinds, gpu, cpu"),
        (("nodes", 1, "id"), "a", "node 'a': id = 'a': is given to more than one node"),
        (("nodes", 0, "colourClass"), 7, None),
        (("nodes", 0, "colorclass"), 7, "node 'a': colorclass: is not a field; did you mean colorClass?"),
        (("colorClasses",), [8], "node 'a': colorClass = 7: must be in the file's list of classes"),
        (("edges", 0, "cost"), "x", "edge 'a' -> 'b': cost = 'x': must be a number"),
        (("edges", 0, "destId"), "c", "edge 'a' -> 'c': destId = 'c': is not the id of a node"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(
    tmp_path: Path, place: tuple[Any, ...], value: Any, message: str | None
) -> None:
    content: Any = saved_document()
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    path = write(tmp_path, content)
    if message is None:
        assert load(path).graph.extras.nodes[0] == {"colourClass": 7}
        return
    with pytest.raises(WorkloadError) as caught:
        load(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_mutated_files_are_refused_or_loaded(tmp_path: Path) -> None:
    """Both happen often, and what is loaded can be saved and loaded again."""

    def read(path: Path) -> None:
        workload = load(path)
        workload.save(path)
        assert load(path).sha256 == workload.sha256

    counts = run_mutants(tmp_path, 9, 300, [saved_document()], read)
    assert counts["done"] > 40 and counts["WorkloadError"] > 100


def test_the_page_has_every_field() -> None:
    """Of saved and published files, of devices, and what layers and configs keep."""
    page = PAGE.read_text(encoding="utf-8")
    known = {*TOP_FIELDS, *NODE_FIELDS, *EDGE_FIELDS, *NATIVE_TOP_FIELDS, *NATIVE_NODE_FIELDS}
    known |= {field.name for kind in (Devices, DeviceKind, Level) for field in fields(kind)}
    known |= {"sharedParameters", "cachePerToken", "parameterCount", "flops"}
    known |= set(Graph.chain([Layer("a", 1.0)]).extras.top)
    known |= set(load_pipedream(PROFILE, bandwidth=1e9, accelerators=1).graph.extras.top)
    assert [name for name in sorted(known) if f"`{name}`" not in page] == []


def test_the_example_of_the_page_is_loaded(tmp_path: Path) -> None:
    example = PAGE.read_text(encoding="utf-8").split("```json\n")[1].split("```")[0]
    workload = load(write(tmp_path, json.loads(example)))
    assert len(workload.graph) == 2 and workload.graph.extras.top == {"timeUnit": "ms"}
