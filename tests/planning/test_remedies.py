"""What an infeasible answer names as a remedy is one: with it, or with the missing bytes, there is a plan."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partitioner as pt
from partitioner.cli.command_line import main

SIZES = st.integers(1, 30).map(lambda size: size * 1e6)
LACKS = re.compile(r"the nearest plan found lacks .* \(([\d,]+) bytes\) of memory on each device of kind .*")
FITS = re.compile(r"it fits with (.*)")


def refused(graph: pt.Graph, devices: pt.Devices, **options: Any) -> tuple[str, ...]:
    """The remedies of a workload without a plan; none if it has one."""
    try:
        pt.solve(graph, devices, "throughput", **options)
    except pt.InfeasibleError as error:
        return error.remedies()
    return ()


def named(words: str) -> dict[str, Any]:
    """The options of a remedy."""
    pairs = [one.split(" = ") for one in words.split(", ")]
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


@settings(max_examples=5, deadline=None)
@given(
    st.lists(st.tuples(SIZES, SIZES, SIZES), min_size=1, max_size=6),
    st.integers(1, 3),
    st.floats(0.2, 0.9),
    st.sampled_from([None, "1f1b"]),
)
def test_remedies_are_true(
    sizes: list[tuple[float, float, float]], count: int, part: float, schedule: str | None
) -> None:
    layers = [
        pt.Layer(f"l{i}", 1.0, 2.0, parameters=p, activations=a, output=o, optimizer=2 * p)
        for i, (p, a, o) in enumerate(sizes)
    ]
    graph = pt.Graph.chain(layers, bandwidth=1e9)
    memory = part * float(graph.parts.sum()) / count
    for words in refused(graph, pt.Devices.accelerated(count, memory=memory), schedule=schedule):
        if missing := LACKS.fullmatch(words):
            enough = memory + float(missing[1].replace(",", "")) + 1
            assert pt.solve(
                graph, pt.Devices.accelerated(count, memory=enough), "throughput", schedule=schedule
            )
        else:
            fits = FITS.fullmatch(words)
            assert fits is not None
            devices = pt.Devices.accelerated(count, memory=memory)
            assert pt.solve(graph, devices, "throughput", schedule=schedule, **named(fits[1]))


LAYERS = [
    pt.Layer(f"l{i}", 1.0, 2.0, parameters=8e6, activations=20e6, output=1e6, optimizer=16e6)
    for i in range(6)
]
GRAPH = pt.Graph.chain(LAYERS, bandwidth=1e9)


def test_a_graph_that_lacks_a_little() -> None:
    """Two layers on each device take 104 MB, of which 32 MB are the optimizer's."""
    found = refused(GRAPH, pt.Devices.accelerated(3, memory=100e6))
    assert found[0].endswith("lacks 4MB (4,000,000 bytes) of memory on each device of kind accelerator")
    assert (
        "it fits with optimizer = adam_8bit" in found and "it fits with zero = 1, data_parallel = 8" in found
    )


def test_weights_and_degrees_of_a_served_config(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        '{"model_type": "llama", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4,'
        '"num_attention_heads": 8, "vocab_size": 1000, "torch_dtype": "bfloat16"}'
    )
    options: dict[str, Any] = {"sequence": 16, "device": "A100-80", "training": False, "bandwidth": 1e9}
    graph = pt.load_config(path, **options).graph
    found = refused(graph, pt.Devices.accelerated(1, memory=0.7 * float(graph.parts.sum())))
    assert "it fits with weight_dtype = int8" in found
    assert any(words.startswith("it fits with tensor = 2") for words in found)


def test_nothing_is_said_where_memory_is_not_missing() -> None:
    constraints = pt.Constraints(stages=2)
    found = refused(
        pt.Graph.chain(LAYERS[:1], bandwidth=1e9), pt.Devices.accelerated(2), constraints=constraints
    )
    assert found == ()


def test_the_error_can_be_pickled_without_them() -> None:
    with pytest.raises(pt.InfeasibleError) as caught:
        pt.solve(GRAPH, pt.Devices.accelerated(3, memory=10e6))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.remedies() == ()


def test_the_command_line_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of solve, of the two searches for a size, and of recommend."""
    path = tmp_path / "workload.json"
    pt.Workload(GRAPH, pt.Devices.accelerated(3, memory=100e6)).save(path)
    for command, code in (
        (["solve", str(path), "--objective", "throughput"], 3),
        (["fewest-devices", str(path)], 3),
        (["recommend", str(path), "--microbatches", "4", "--schedules", "gpipe"], 4),
    ):
        assert main(command) == code
        assert "it fits with optimizer = adam_8bit" in capsys.readouterr().err or command[0] == "recommend"
