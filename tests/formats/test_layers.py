"""A table of layers and a JSON file of layers give the graph of the same layers, or name what is wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import DeviceKind, Devices, Graph, Layer, OptionError, WorkloadError, load, solve
from partitioner.cli.command_line import main
from tests.formats.test_fuzz import JSON, outcome_of, run_mutants
from tests.instances import write

FEW = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
TABLE = """# measured on one device
name, forward, backward, parameters, activations, output, inputs, shared, workspace, note
embedding, 1, 2, 400, , 50, , wte=300, ,
blocks.0, 4, 8, 100, 20, 50, , , 7, "first, of two"
blocks.1, 4, 8, 0.1kB, 20, 50, , , ,

head, 2, 3, 300, , , blocks.1; blocks.0, wte=300B, ,
"""
DOCUMENT = {
    "timeUnit": "us",
    "layers": [
        {"name": "embedding", "forward": 1e3, "backward": 2e3, "parameters": 400, "output": 50,
         "shared": {"wte": 300}},
        {"name": "blocks.0", "forward": 4e3, "backward": 8e3, "parameters": 100, "activations": 20,
         "output": "50B", "workspace": 7, "note": "first, of two"},
        {"name": "blocks.1", "forward": {"accelerator": 4e3}, "backward": {"accelerator": 8e3},
         "parameters": "0.1kB", "activations": 20, "output": 50},
        {"name": "head", "forward": 2e3, "backward": 3e3, "parameters": 300,
         "inputs": ["blocks.1", "blocks.0"], "shared": {"wte": "300"}},
    ],
}  # fmt: skip


def expected() -> Graph:
    """The graph of both files."""
    layers = [
        Layer("embedding", 1.0, 2.0, parameters=400.0, output=50.0, shared={"wte": 300.0}),
        Layer("blocks.0", 4.0, 8.0, parameters=100.0, activations=20.0, output=50.0, workspace=7.0),
        Layer("blocks.1", 4.0, 8.0, parameters=100.0, activations=20.0, output=50.0),
        Layer("head", 2.0, 3.0, parameters=300.0, inputs=("blocks.1", "blocks.0"), shared={"wte": 300.0}),
    ]
    return Graph.chain(layers, bandwidth=1e4, microbatches=4)


def table(folder: Path, text: str) -> Path:
    return write(folder, text, "layers.csv")


@pytest.mark.parametrize(("content", "name"), [(TABLE, "layers.csv"), (DOCUMENT, "layers.json")])
def test_both_files_give_the_graph_of_the_layers(tmp_path: Path, content: Any, name: str) -> None:
    path = write(tmp_path, content, name)
    found = load(path, accelerators=4, memory="2kB", bandwidth=1e4, microbatches=4)
    assert found.graph.digest == expected().digest and found.name == "layers"
    assert found.graph.extras.nodes[1] == {"note": "first, of two"} == found.graph.extras.nodes[5]
    assert found.graph.extras.nodes[3] == {"sharedParameters": ["wte"]}
    accelerator, cpu = found.devices.kinds
    assert (accelerator.count, accelerator.memory, accelerator.bandwidth, cpu.count) == (4, 2000.0, 10.0, 0)


def test_units_kinds_and_sources(tmp_path: Path) -> None:
    text = "name,forward:gpu [us],forward:cpu [s],inputs\na,1500,2,-\nb,500,,-\nc,1000,1,a;b"
    kinds = (DeviceKind("gpu", 2), DeviceKind("cpu", 1, None, False))
    graph = load(table(tmp_path, text), devices=Devices(kinds)).graph
    assert graph.kinds == ("gpu", "cpu") and graph.time.tolist() == [[1.5, 0.5, 1.0], [2000.0, 0.0, 1000.0]]
    assert graph.allowed.tolist() == [[True] * 3, [True, False, True]]
    assert graph.edges.tolist() == [[0, 2], [1, 2]] and not graph.backward.any()


def test_training_or_inference(tmp_path: Path) -> None:
    path = table(tmp_path, TABLE)
    assert len(load(path, accelerators=1, bandwidth=1e4).graph) == 8
    assert len(load(path, accelerators=1, bandwidth=1e4, training=False).graph) == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4, 8, 100", "4, x, 100", "line 4: backward = 'x': must be a number"),
        ("4, 8, 100", "-4, 8, 100", "line 4: forward = -4.0: must be a finite number of at least 0"),
        ("4, 8, 100", "4, , 100", "line 4: backward: is missing; a graph for training needs it"),
        ("4, 8, 100", ", 8, 100", "line 4: forward: is missing"),
        ("0.1kB", "0.1kX", "line 5: parameters = '0.1kX': must be a number of bytes of at least 0, such as"),
        ("0.1kB", "nan", "line 5: parameters = nan: must be a finite number"),
        ("blocks.1,", "blocks.0,", "line 5: name = 'blocks.0': is given to more than one layer"),
        ("blocks.1; bl", "block.1; bl", "line 7: inputs = 'block.1': must be the name of an earlier"),
        ("wte=300B", "wte", "line 7: shared = 'wte': must be a JSON object"),
        ("wte=300B", "wte=200", "line 7: shared[wte] = 200.0: must be 300 bytes, as in layer 'embedding'"),
        ("blocks.1, 4", ", 4", "line 5: name: is missing"),
        ("wte=300B, ,", "wte=300B, , , x", "line 7: 11 cells: must have at most 10 cells"),
        ("forward,", "forward [h],", "line 2: column = 'forward [h]'"),
        ("forward,", "forwad,", "line 3: forward: is missing"),
        ("activations,", "activatons,", "line 4: activatons: is not a field; did you mean activations?"),
        ("activations,", "activations [ms],", "only times have a unit in brackets, one of s, ms, us"),
        ("activations,", "activations:gpu,", "must be a field, or a time with its kind of device, such as"),
        ("activations,", "output,", "line 2: column = 'output': is given twice"),
        ("activations,", "forward:cpu,", "line 2: column = 'forward': must name its kind"),
        ('"first, of two"', '"first, of two', "is not CSV: unexpected end of data"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = table(tmp_path, TABLE.replace(old, new, 1))
    with pytest.raises(WorkloadError) as caught:
        load(path, accelerators=1, bandwidth=1e4)
    assert message in str(caught.value) and str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"layers": []}, "file: layers: there must be at least one"),
        ({"layers": 1}, "file: layers = 1: must be a list"),
        ({"layers": [1]}, "layers[0]: 1: must be a JSON object"),
        ({"layers": [], "timeUnit": "h"}, "file: timeUnit = 'h': must be a unit of time, s, ms, us"),
        ({"layers": [], "unit": "h"}, "file: unit: is not a field; these are timeUnit, layers"),
        ({"layers": [{"name": "a"}]}, "layers[0] 'a': forward: is missing"),
        (
            {"layers": [{"name": "a", "forward": {}}]},
            "layers[0] 'a': forward = {}: must have the time of some",
        ),
        (
            {"layers": [{"name": "", "forward": 1}]},
            "layers[0] '': name = '': must be a text that is not empty",
        ),
    ],
)
def test_a_broken_layer_is_named(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        load(write(tmp_path, content), accelerators=1)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "accelerators = None: a table of layers needs accelerators or devices"),
        ({"accelerators": 1, "devices": Devices.accelerated(1)}, "accelerators and devices say the same"),
        ({"accelerators": 1}, "bandwidth = None: must be a number above 0, in bytes per second, because"),
        (
            {"accelerators": 1, "bandwith": 1e4},
            "bandwith = 10000.0: means nothing to a table of layers; its op",
        ),
        ({"accelerators": 1, "memory": "much"}, "'much': must be a number of bytes of at least 0"),
    ],
)
def test_what_a_call_lacks_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        load(table(tmp_path, TABLE), **options)
    assert message in str(caught.value)


def test_the_command_line_reads_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(table(tmp_path, TABLE))
    words = ["--accelerators", "2", "--bandwidth", "1e4", "--memory", "2kB", "--microbatches", "4"]
    assert main(["solve", path, *words, "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    devices = load(path, accelerators=2, memory=2000.0, bandwidth=1e4).devices
    assert plan["value"] == solve(expected(), devices).value
    assert main(["solve", path, "--accelerators", "2"]) == 2
    assert "a table of layers needs --bandwidth: must be a number above 0" in capsys.readouterr().err
    assert main(["solve", path, "--bandwidth", "1e4"]) == 2
    assert "a table of layers needs --accelerators or --devices" in capsys.readouterr().err
    assert main(["solve", path, *words, "--cpu-factor", "2"]) == 2
    assert "--cpu-factor means nothing to a table of layers" in capsys.readouterr().err


def load_and_solve(path: Path) -> None:
    """Read layers and split them; whatever is read can be, on one device with room for all."""
    workload = load(path, accelerators=2, bandwidth=1e4)
    assert solve(workload.graph, workload.devices, time_limit=20).summary(80)


CELL = st.sampled_from(["", "a", "b", "1", "2.5", "-", "a;b", "w=1", "16KiB", "nan", "1e400", '"', "forward"])
HEADER = st.lists(
    st.sampled_from(
        ["name", "forward", "backward", "forward:cpu", "output", "inputs", "shared", "forward [us]", ""]
    ),
    max_size=6,
)  # fmt: skip


@FEW
@given(HEADER, st.lists(st.lists(CELL | st.text(max_size=4), max_size=6), max_size=4))
def test_any_table_is_refused_or_solved(tmp_path: Path, header: list[str], cells: list[list[str]]) -> None:
    text = "\n".join(",".join(row) for row in [header, *cells])
    outcome_of(lambda: load_and_solve(table(tmp_path, text.encode("utf-8", "replace"))))  # type: ignore[arg-type]


@FEW
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["name", "forward", "inputs", "shared", "output"]), JSON, max_size=4)
    )
)
def test_any_document_is_refused_or_solved(tmp_path: Path, layers: list[Any]) -> None:
    outcome_of(lambda: load_and_solve(write(tmp_path, {"layers": layers})))


def test_mutated_documents_and_tables_are_refused_or_solved(tmp_path: Path) -> None:
    """Both happen often."""
    counts = run_mutants(tmp_path, 6, 120, [DOCUMENT], load_and_solve)
    assert counts["done"] > 10 and counts["WorkloadError"] > 40
    rng, endings = random.Random(7), set()
    for _ in range(120):
        place = rng.randrange(len(TABLE))
        text = TABLE[:place] + rng.choice(',\n"1-;=:[]x') + TABLE[place + rng.randrange(2) :]
        endings.add(outcome_of(lambda text=text: load_and_solve(table(tmp_path, text))))  # type: ignore[misc]
    assert endings == {"done", "WorkloadError"}
