"""The MSR reader takes all that the format allows, and names file, place, field, value and rule else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partitioner import WorkloadError, load
from partitioner.base.errors import SHOWN_FLAWS
from tests.instances import document, write

Change = Callable[[dict[str, Any]], object]


def changed(change: Change) -> dict[str, Any]:
    """The document after a change in place."""
    content = copy.deepcopy(document())
    change(content)
    return content


def node(place: int, **fields: Any) -> Change:
    """Give one node other fields."""
    return lambda content: content["nodes"][place].update(fields)


def edge(place: int, **fields: Any) -> Change:
    """Give one edge other fields."""
    return lambda content: content["edges"][place].update(fields)


def top(**fields: Any) -> Change:
    """Give the file other fields."""
    return lambda content: content.update(fields)


def without(*path: Any) -> Change:
    """Delete what the path leads to."""

    def delete(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        del content[path[-1]]

    return delete


def refused(path: Path) -> WorkloadError:
    """The error that the file meets; its every line names the file."""
    with pytest.raises(WorkloadError) as caught:
        load(path)
    assert caught.value.source == str(path)
    assert all(line.startswith(f"{path}: ") for line in str(caught.value).splitlines())
    return caught.value


def test_every_field_is_read(workload_file: Path) -> None:
    workload = load(workload_file, "duplex")
    graph, devices = workload.graph, workload.devices
    assert workload.name == "workload" and graph.ids == (1, 2, 3, 4, 5, 6)
    assert graph.time[graph.kinds.index("accelerator")].tolist() == [2.0, 3.0, 1.0, 2.5, 4.0, 3.0]
    assert graph.time[graph.kinds.index("cpu")].tolist() == [20.0, 30.0, 10.0, 25.0, 40.0, 30.0]
    assert graph.backward.tolist() == [False] * 4 + [True] * 2
    assert graph.size.tolist() == [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
    assert [graph.color_labels[c] for c in graph.color] == [1, 2, 3, 4, 2, 1]
    assert [graph.layer_labels[c] for c in graph.layer] == [1, 2, 3, 4, 2, 1]
    assert graph.names[0] == "layer 1" and graph.allowed.all()
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4], [4, 5]]
    assert graph.cost.tolist() == [0.5, 0.5, 0.25, 0.25, 0.0, 0.5]
    assert devices.names == ("accelerator0", "accelerator1", "cpu0")
    assert devices.kinds[0].memory == 2000.0 and devices.communication == "duplex"


@pytest.mark.parametrize(("yes", "no"), [(True, False), (1, 0), (1.0, 0.0)])
def test_flags_may_be_booleans_or_numbers(tmp_path: Path, yes: Any, no: Any) -> None:
    changes = node(0, supportedOnFpga=no), node(1, supportedOnFpga=yes), node(5, isBackwardNode=yes)
    graph = load(write(tmp_path, changed(lambda content: [change(content) for change in changes]))).graph
    assert graph.allowed[0].tolist() == [False] + [True] * 5
    assert graph.backward.tolist() == [False] * 4 + [True] * 2


@pytest.mark.parametrize("field", ["colorClass", "layerId", "size", "name"])
def test_optional_fields_may_be_missing(tmp_path: Path, field: str) -> None:
    graph = load(write(tmp_path, changed(without("nodes", 2, field)))).graph
    color, layer, size, name = graph.color[2], graph.layer[2], graph.size[2], graph.names[2]
    found = {"colorClass": color, "layerId": layer, "size": size, "name": name}
    assert found[field] == {"colorClass": -1, "layerId": -1, "size": 0.0, "name": "3"}[field]


def test_other_fields_are_kept(tmp_path: Path) -> None:
    """At the top, of nodes and of edges, whatever their values."""
    odd = {"nested": [1, None]}
    changes = top(source="profiler"), node(1, op=odd), edge(2, bytes=7)
    graph = load(write(tmp_path, changed(lambda content: [change(content) for change in changes]))).graph
    assert graph.extras.top == {"source": "profiler"}
    assert list(graph.extras.nodes) == [{}, {"op": odd}, {}, {}, {}, {}]
    assert list(graph.extras.edges) == [{}, {}, {"bytes": 7}, {}, {}, {}]


def test_ids_and_classes_may_be_texts(tmp_path: Path) -> None:
    content = json.loads(
        json.dumps(document()).replace('Id": 1,', 'Id": "one",').replace('"id": 1,', '"id": "one",')
    )
    graph = load(write(tmp_path, changed(lambda old: old.update(content)))).graph
    assert graph.ids[0] == "one" and "one" in graph.layer_labels


def test_edges_of_different_cost_out_of_one_node_are_taken(tmp_path: Path) -> None:
    graph = load(write(tmp_path, changed(edge(1, cost=9.0)))).graph
    assert graph.cost[:2].tolist() == [0.5, 9.0]


def test_a_file_without_edges_is_a_workload(tmp_path: Path) -> None:
    assert load(write(tmp_path, changed(top(edges=[])))).graph.edges.shape == (0, 2)


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        (without("nodes"), ("file", "nodes", "", "is missing")),
        (top(nodes={}), ("file", "nodes", "{}", "must be a list")),
        (top(nodes=[], edges=[]), ("graph", "nodes", "", "there must be at least one")),
        (top(edges=None), ("file", "edges", "None", "must be a list")),
        (top(maxFPGAs=2.5), ("file", "maxFPGAs", "2.5", "must be a whole number")),
        (top(maxFPGAs=-1), ("file", "maxFPGAs", "-1", "must be 0 to 65,536")),
        (top(maxCPUs=10**9), ("file", "maxCPUs", "1000000000", "must be 0 to 65,536")),
        (
            top(maxFPGAs=0, maxCPUs=0),
            ("file", "maxFPGAs + maxCPUs", "0", "there must be at least one device"),
        ),
        (top(maxSizePerFPGA=-1), ("file", "maxSizePerFPGA", "-1.0", "must be a finite number of at least 0")),
        (top(maxSizePerFPGA="16"), ("file", "maxSizePerFPGA", "'16'", "must be a number")),
        (node(0, id=2.5), ("nodes[0]", "id", "2.5", "must be an integer or a text")),
        (node(0, id=2**70), (f"node {2**70}", "id", str(2**70), "must fit 64 bits")),
        (without("nodes", 0, "id"), ("nodes[0]", "id", "", "is missing")),
        (without("nodes", 3, "fpgaLatency"), ("node 4", "fpgaLatency", "", "is missing")),
        (node(3, fpgaLatency=-1), ("node 4", "fpgaLatency", "-1.0", "must be a finite number of at least 0")),
        (node(3, cpuLatency=-1), ("node 4", "cpuLatency", "-1.0", "must be a finite number of at least 0")),
        (node(3, cpuLatency=True), ("node 4", "cpuLatency", "True", "must be a number")),
        (node(3, size=None), ("node 4", "size", "None", "must be a number")),
        (node(3, size=1e200), ("node 4", "size", "1e+200", "must be 0, or from 1e-100 to 1e+100")),
        (node(3, size=-2), ("node 4", "size", "-2.0", "must be a finite number of at least 0")),
        (node(3, colorClass=1.5), ("node 4", "colorClass", "1.5", "must be an integer or a text")),
        (node(3, layerId=[1]), ("node 4", "layerId", "[1]", "must be an integer or a text")),
        (node(3, name=5), ("node 4", "name", "5", "must be a text")),
        (
            node(3, supportedOnFpga="yes"),
            ("node 4", "supportedOnFpga", "'yes'", "must be true or false, or 1 or 0"),
        ),
        (
            node(3, isBackwardNode=2),
            ("node 4", "isBackwardNode", "2", "must be true or false, or 1 or 0"),
        ),
        (lambda content: content["nodes"].append(7), ("nodes[6]", "", "7", "must be a JSON object")),
        (
            lambda content: content["edges"].append([1, 2]),
            ("edges[6]", "", "[1, 2]", "must be a JSON object"),
        ),
        (without("edges", 0, "sourceId"), ("edges[0]", "sourceId", "", "is missing")),
        (without("edges", 0, "cost"), ("edge 1 -> 2", "cost", "", "is missing")),
        (edge(0, cost=-1), ("edge 1 -> 2", "cost", "-1.0", "must be a finite number of at least 0")),
        (edge(0, cost="1"), ("edge 1 -> 2", "cost", "'1'", "must be a number")),
        (edge(0, destId=9), ("edge 1 -> 9", "destId", "9", "is not the id of a node")),
        (edge(0, destId="2"), ("edge 1 -> '2'", "destId", "'2'", "is not the id of a node")),
        (edge(0, destId=1), ("edge 1 -> 1", "", "", "an edge must join two different nodes")),
        (
            edge(0, sourceId=6, destId=2),
            ("edge 6 -> 2", "", "", "an edge must not lead from a backward node to a forward node"),
        ),
        (
            edge(0, sourceId=4, destId=2),
            ("edges", "", "4 -> 2 -> 4", "is a cycle; the graph must have none"),
        ),
        (
            lambda content: [top(maxCPUs=0)(content), node(2, supportedOnFpga=0)(content)],
            ("node 3", "supportedOnFpga", "false", "no device that may run it is present"),
        ),
        (
            lambda content: [top(maxCPUs=0)(content), node(5, size=1950)(content)],
            (
                "colour class 1",
                "total size",
                "2050.0",
                "larger than the memory of every device that may run it",
            ),
        ),
        (
            lambda content: [
                top(maxCPUs=0)(content),
                node(2, size=2050)(content),
                without("nodes", 2, "colorClass")(content),
            ],
            ("node 3", "size", "2050.0", "larger than the memory of every device that may run it"),
        ),
        (top(maxfpgas=2), ("file", "maxfpgas", "", "is not a field; did you mean maxFPGAs?")),
        (node(0, colorclass=2), ("node 1", "colorclass", "", "is not a field; did you mean colorClass?")),
        (edge(0, dest_id=2), ("edge 1 -> 2", "dest_id", "", "is not a field; did you mean destId?")),
    ],
)
def test_a_broken_rule_is_named(tmp_path: Path, change: Change, flaw: tuple[str, str, str, str]) -> None:
    """Exactly one flaw, with its place, field, value and rule, all of which the message shows."""
    error = refused(write(tmp_path, changed(change)))
    where, field, value, rule = flaw
    assert [(f.where, f.field, f.value, f.rule) for f in error.flaws] == [flaw]
    assert all(part in str(error) for part in (where, field, value, rule))


@pytest.mark.parametrize(
    ("old", "new", "flaw"),
    [
        ('"cost": 0.25', '"cost": 1e999', "edge 2 -> 4: cost = inf: must be a finite number of at least 0"),
        ('"size": 100.0', '"size": -1e999', "node 1: size = -inf: must be a finite number of at least 0"),
        ('"size": 100.0', '"size": NaN', "file: NaN: numbers must be finite"),
        ('"size": 100.0', '"size": Infinity', "file: Infinity: numbers must be finite"),
        ('"size": 100.0', '"size": 1, "size": 1', "node 1: size: is given twice in one object"),
        ('"maxCPUs": 1', '"maxCPUs": 1, "maxCPUs": 1', "file: maxCPUs: is given twice in one object"),
        ('"size": 100.0', '"size": 1' + "0" * 400, "node 1: size = 1000000"),
        ('"size": 100.0', '"size": ' + "[" * 500 + "]" * 500, "node 1: size = [[[[[[[[[["),
        (
            '"maxFPGAs": 2',
            '"maxFpgas": 2',
            "file: maxFPGAs: is missing (found maxFpgas; upper and lower case matter)",
        ),
    ],
)
def test_broken_rules_that_only_a_text_can_hold_are_named(
    tmp_path: Path, old: str, new: str, flaw: str
) -> None:
    text = json.dumps(document())
    assert old in text
    error = refused(write(tmp_path, text.replace(old, new, 1)))
    assert f": {flaw}" in str(error)


@pytest.mark.parametrize("twin", [3, "3"])
def test_an_id_given_twice_is_named(tmp_path: Path, twin: Any) -> None:
    """Even where one is a number and the other the same as a text."""
    extra = dict(document()["nodes"][2], id=twin)
    error = refused(write(tmp_path, changed(lambda content: content["nodes"].append(extra))))
    named = dict.fromkeys([repr(3), repr(twin)])
    assert list(map(str, error.flaws)) == [
        f"node {i}: id = {i}: is given to more than one node" for i in named
    ]


@pytest.mark.parametrize("content", [[], 5, "text", None, True])
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, content: Any) -> None:
    error = refused(write(tmp_path, json.dumps(content)))
    assert [str(flaw) for flaw in error.flaws] == [f"file: {content!r}: must be a JSON object"]


def test_several_problems_are_reported_together(tmp_path: Path) -> None:
    """Of the file, of nodes, of edges, and those that only the whole shows."""
    changes = (
        top(maxCPUs=-1),
        node(0, size="x"),
        node(2, fpgaLatency=-5),
        edge(0, destId=77),
        edge(3, cost=-1),
    )
    error = refused(write(tmp_path, changed(lambda content: [change(content) for change in changes])))
    places = {(flaw.where, flaw.field) for flaw in error.flaws}
    assert places == {
        ("file", "maxCPUs"),
        ("node 1", "size"),
        ("node 3", "fpgaLatency"),
        ("edge 1 -> 77", "destId"),
        ("edge 3 -> 4", "cost"),
    }


def test_only_so_many_problems_are_shown(tmp_path: Path) -> None:
    """All are there, twenty are printed, and a last line says how many more there are."""
    nodes = [dict(document()["nodes"][0], id=i, size=-1) for i in range(50)]
    error = refused(write(tmp_path, changed(top(nodes=nodes, edges=[]))))
    lines = str(error).splitlines()
    assert len(error.flaws) == 50 and len(lines) == SHOWN_FLAWS + 1 == 21
    assert lines[-1].endswith(": ... and 30 more")


def test_every_published_workload_is_read(published: Path) -> None:
    """With as many nodes and edges as the file has."""
    paths = sorted(published.glob("throughput/*.json"))
    assert paths
    for path in paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        graph = load(path).graph
        assert (len(graph), len(graph.edges)) == (len(content["nodes"]), len(content["edges"]))


def test_published_node_counts_are_those_of_the_paper(
    published: Path, reference: Callable[[str], Any]
) -> None:
    """On every inference graph of Table 1, which gives the nodes of these."""
    rows = [row for row in reference("table1")["rows"] if row["workload"].endswith("_inference")]
    found = {
        row["workload"]: len(load(published / "throughput" / f"{row['workload']}.json").graph) for row in rows
    }
    assert found == {row["workload"]: row["nodes"] for row in rows}


@pytest.mark.parametrize("given", [{"a": 1}, [1], None])
def test_other_flaws_of_a_node_without_a_sound_id_name_its_place(given: object, tmp_path: Path) -> None:
    path = write(tmp_path, changed(node(1, id=given, cpuLatency=-1.0)))
    with pytest.raises(WorkloadError) as caught:
        load(path)
    assert [flaw.where for flaw in caught.value.flaws] == ["nodes[1]", "nodes[1]"]
    assert [flaw.value for flaw in caught.value.flaws] == [repr(given), "-1.0"]
