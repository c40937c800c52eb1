"""The parts of a load add up to it: operators, collectives, updates, transfers, exchange of weights."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partitioner as pt
from partitioner.cli.command_line import main
from partitioner.workload.extras import Extras

TIMES = st.floats(0.1, 9)
WORDS = r"([\d.e+-]+) (operators|collectives|updates|transfers|exchange)"


@given(
    st.lists(st.tuples(TIMES, TIMES, st.floats(0, 0.5), st.floats(0, 0.4)), min_size=3, max_size=8),
    st.integers(1, 3),
)
def test_parts_of_the_largest_load_add_up(
    layers: list[tuple[float, float, float, float]], copies: int
) -> None:
    """Of layers that say which part of their time goes to collectives and to updates."""
    made = [
        pt.Layer(
            f"l{i}", forward, backward, parameters=4e6, output=1e5,
            more={"collectiveTime": part * forward, "updateTime": share * backward},
        )
        for i, (forward, backward, part, share) in enumerate(layers)
    ]  # fmt: skip
    graph = pt.Graph.chain(made, bandwidth=1e9)
    devices = pt.Devices((pt.DeviceKind("accelerator", 2 * copies, bandwidth=1e6),))
    names, cut = devices.names, len(layers) // 2
    home = [names[0] if i < cut else names[copies] for i in range(len(layers))] * 2
    further = {names[0]: names[1:copies], names[copies]: names[copies + 1 :]} if copies > 1 else {}
    found = pt.evaluate(
        graph,
        devices,
        dict(zip(graph.ids, home, strict=True)),
        replicas=further,
        schedule="1f1b",
        microbatches=8,
    )
    largest = max(
        (load for load in found.loads if load.nodes and load.replica_of is None), key=lambda x: x.load
    )
    own = layers[:cut] if largest.name == names[0] else layers[cut:]
    expected = {
        "operators": sum(f + b - part * f - share * b for f, b, part, share in own) / copies,
        "collectives": sum(part * f for f, _, part, _ in own) / copies,
        "updates": sum(share * b for _, b, _, share in own) / copies,
        "transfers": sum(largest.transfer_in) + sum(largest.transfer_out),
        "exchange": largest.sync,
    }
    assert sum(expected.values()) == pytest.approx(largest.load)
    notes = [note for note in found.notes if "has the largest load" in note]
    if expected["collectives"] or expected["updates"]:
        told = {name: float(time) for time, name in re.findall(WORDS, notes[0])}
        assert told == pytest.approx(
            {name: time for name, time in expected.items() if time}, rel=6e-3, abs=1e-3
        )
    else:
        assert notes == []


def test_graphs_that_do_not_tell_have_no_note() -> None:
    graph = pt.Graph.from_arrays({"gpu": [1.0, 2.0]}, extras=Extras({}, [{"a": 1}, {}]))
    found = pt.evaluate(graph, pt.Devices((pt.DeviceKind("gpu", 1),)), {0: "gpu0", 1: "gpu0"})
    assert not any("largest load" in note for note in found.notes)


def test_a_config_explains_its_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file of the plan has the microbatches by which layers are read; times include their parts."""
    config, plan = tmp_path / "config.json", tmp_path / "plan.json"
    shape = {
        "model_type": "gpt2",
        "n_embd": 1024,
        "n_layer": 4,
        "n_head": 16,
        "vocab_size": 32000,
        "n_positions": 512,
    }
    config.write_text(json.dumps(shape))
    given = ["--sequence", "512", "--device", "A100-80", "--bandwidth", "25GB/s", "--tensor", "2"]
    solve = ["--schedule", "1f1b", "--microbatches", "8", "--accelerators", "2", "--output", str(plan)]
    assert main(["solve", str(config), *given, *solve, "--objective", "throughput"]) == 0
    for command in ("explain", "evaluate", "simulate"):
        capsys.readouterr()
        assert main([command, str(config), str(plan), *given]) == 0
        out = " ".join(capsys.readouterr().out.split())
        if command == "explain":
            assert "in collectives of the devices that divide layers" in out and "updating parameters" in out
    options: dict[str, Any] = {"sequence": 512, "device": "A100-80", "bandwidth": 25e9, "microbatches": 8}
    one, two = (pt.load_config(config, tensor=2, measured=seconds, **options).graph for seconds in (1.0, 2.0))
    fields = [
        [node.get("collectiveTime", 0.0) + node.get("updateTime", 0.0) for node in g.extras.nodes]
        for g in (one, two)
    ]
    assert np.allclose(fields[1], 2 * np.array(fields[0])) and sum(fields[0]) > 0
    assert (np.array(fields[0][: len(one) // 2]) < one.time[0].reshape(2, -1).sum(axis=0)).all()
