"""Metis's profiles give chains with the file's times, sizes and memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partitioner import OptionError, Workload, WorkloadError, load
from tests.formats.test_fuzz import run_mutants
from tests.instances import write

FOLDER = Path(__file__).parents[3] / "shared" / "benchmarks" / "sailor" / "metis"
MIB = 2**20


def document() -> dict[str, Any]:
    """Three layers; the list of parameters is longer than that, as in some published files."""
    sizes = {"parameters_per_layer_bytes": [4, 5, 6, 7], "activation_parameters_bytes": [10, 20, 30]}
    times = {"total_time_ms": 99, "layer_compute_total_ms": [3, 6, 1.5]}
    model = {"model_name": "tiny", "num_layers": 3, "parameters": {"total_parameters_bytes": 15, **sizes}}
    memory = {"layer_memory_total_mb": [1, 2, 0]}
    return {"model": model, "execution_time": times, "execution_memory": memory}


def test_every_field_has_its_place(tmp_path: Path) -> None:
    """1e4 bytes a second are 10 bytes in a ms; the last layer sends nothing."""
    graph = load(write(tmp_path, document()), accelerators=2, bandwidth=1e4).graph
    assert graph.ids[:3] == ("layer0", "layer1", "layer2")
    assert graph.time[0].tolist() == pytest.approx([1, 2, 0.5, 2, 4, 1])
    assert graph.parts[0].tolist() == [4, 5, 6, 0, 0, 0] and (graph.parts[1:] == 0).all()
    assert graph.size.tolist() == [MIB - 4, 2 * MIB - 5, 0, 0, 0, 0]
    cost = {
        (graph.ids[u], graph.ids[v]): c for (u, v), c in zip(graph.edges.tolist(), graph.cost, strict=True)
    }
    assert (cost["layer0", "layer1"], cost["layer2/backward", "layer1/backward"]) == (1.0, 2.0)
    assert graph.extras.top["model"] == "tiny"


def test_inference_takes_the_share_of_the_forward_pass(tmp_path: Path) -> None:
    path = write(tmp_path, document())
    graph = load(path, accelerators=1, bandwidth=1e4, training=False, backward_share=0.5).graph
    assert graph.time.tolist() == [[1.5, 3.0, 0.75]]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            ("model", "num_layers"),
            4,
            "execution_time: layer_compute_total_ms = [3, 6, 1.5]: must have 4 numbers",
        ),
        (("model", "num_layers"), 0, "model: num_layers = 0: must be a whole number from 1"),
        (("model", "parameters"), 1, "model: parameters = 1: must be a JSON object"),
        (
            ("execution_time", "layer_compute_total_ms", 1),
            -1,
            "layer_compute_total_ms = [3, -1, 1.5]: must be a fini",
        ),
        (("execution_memory",), {}, "execution_memory: layer_memory_total_mb: is missing"),
    ],
)
def test_a_broken_rule_is_named(tmp_path: Path, place: tuple[Any, ...], value: Any, message: str) -> None:
    content: Any = document()
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    with pytest.raises(WorkloadError) as caught:
        load(write(tmp_path, content), accelerators=1, bandwidth=1e4)
    assert message in str(caught.value)


def test_what_a_call_lacks_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, document())
    with pytest.raises(OptionError, match="a profile of Metis needs accelerators or devices"):
        load(path, bandwidth=1e4)
    with pytest.raises(OptionError, match="bandwidth = None: must be a number above 0, in bytes per second"):
        load(path, accelerators=1)


def test_mutated_profiles_are_refused_or_loaded(tmp_path: Path) -> None:
    """Both happen often."""
    counts = run_mutants(tmp_path, 11, 200, [document()], load_one)
    assert counts["done"] > 20 and counts["WorkloadError"] > 60


def load_one(path: Path) -> None:
    assert isinstance(load(path, accelerators=1, bandwidth=1e4), Workload)


@pytest.mark.skipif(not FOLDER.exists(), reason=f"{FOLDER} is not there")
def test_all_published_profiles_are_read() -> None:
    files = sorted(FOLDER.glob("*/*/*.json"))
    for path in files:
        content = json.loads(path.read_text())
        graph = load(path, accelerators=1, memory="1TB", bandwidth=25e9).graph
        assert graph.time.sum() == pytest.approx(sum(content["execution_time"]["layer_compute_total_ms"]))
        assert len(graph) == 2 * content["model"]["num_layers"]
    assert len(files) > 100
