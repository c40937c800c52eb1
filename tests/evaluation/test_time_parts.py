"""The parts of a load and of a value add up to it: operators, collectives, updates, transfers, and more."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partitioner as pt
from partitioner.cli.command_line import main
from partitioner.evaluation.time_parts import parts_in_words, parts_of_value
from partitioner.schedule import simulate
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


MODELS = st.sampled_from(["sequential", "overlapped", "duplex"])
PLACED = st.tuples(
    st.integers(0, 10**6),
    MODELS,
    st.sampled_from(["added", "overlapped"]),
    st.sampled_from(["ring", "paper"]),
    st.integers(1, 9),
    st.integers(1, 3),
)


def random_pipeline(
    seed: int, communication: str, synchronisation: str, exchange: str
) -> tuple[pt.Graph, pt.Devices, pt.Solution]:
    """Return a random chain of layers, dealt to devices of which some share a stage."""
    rng = np.random.default_rng(seed)
    layers = [
        pt.Layer(
            f"l{i}", forward=rng.uniform(0.1, 5), backward=rng.uniform(0.1, 5), parameters=rng.uniform(0, 9),
            output=rng.uniform(0, 2),
            more={"collectiveTime": 0.05, "updateTime": 0.01},
        )
        for i in range(int(rng.integers(3, 9)))
    ]  # fmt: skip
    graph = pt.Graph.chain(layers, bandwidth=1e3, training=True)
    kind = pt.DeviceKind("accelerator", 6, bandwidth=float(rng.uniform(1, 20)))
    devices = pt.Devices((kind,), communication, synchronisation=synchronisation, exchange=exchange)
    names, cuts = list(devices.names), sorted(rng.choice(np.arange(1, len(layers)), 2, replace=False))
    stage = np.searchsorted(cuts, np.arange(len(layers)), side="right").tolist()
    replicas = {names[i]: (names[3 + i],) for i in range(3) if rng.random() < 0.4}
    order = [names[i] for i in range(3)]
    home = {node: order[i] for node, i in zip(graph.ids, stage * 2, strict=True)}
    return graph, devices, pt.Solution(home, replicas=replicas, order=tuple(order))


@given(PLACED)
@settings(max_examples=300)
def test_parts_of_every_value_add_up(case: tuple[int, str, str, str, int, int]) -> None:
    """A batch waits for the loads of the other stages; in a pipeline a device waits while it is idle."""
    graph, devices, solution = random_pipeline(*case[:4])
    terms: dict[str, Any] = {
        "schedule": ["1f1b", "gpipe", "1f1b_async"][case[5] - 1],
        "microbatches": case[4],
    }
    given = {"replicas": solution.replicas, "order": solution.order, **terms}
    one = pt.evaluate(graph, devices, solution.placement, "throughput", **given)
    batch = pt.evaluate(graph, devices, solution.placement, "batch", **given)
    loads = sorted(load.load for load in one.loads if load.nodes and load.replica_of is None)
    assert sum(one.parts.values()) == pytest.approx(one.value) == pytest.approx(loads[-1])
    assert "bubble" not in one.parts and ("overlap" in one.parts) <= (one.parts.get("overlap", 0) < 0)
    assert batch.parts["bubble"] == pytest.approx(sum(loads[:-1]))
    assert sum(batch.parts.values()) == pytest.approx(batch.value)
    if not solution.replicas:
        timeline = simulate(graph, devices, solution, **terms)
        parts = parts_of_value(one.parts, case[4], timeline.makespan)
        assert sum(parts.values()) == pytest.approx(timeline.makespan)
        if devices.communication == "sequential":
            waits = timeline.bubble[timeline.devices.index(one.bottleneck.name)] * timeline.makespan
            assert parts.get("bubble", 0.0) == pytest.approx(waits, abs=1e-9 * timeline.makespan)


@pytest.mark.parametrize("objective", ["throughput", "batch", "makespan", "gpipe", "latency"])
def test_every_place_shows_parts_that_add_up(objective: str) -> None:
    graph = pt.Graph.chain([pt.Layer(f"l{i}", 1.0 + i, 2.0, output=3e5) for i in range(4)], bandwidth=1e9)
    devices = pt.Devices.accelerated(2)
    run = {"schedule": "1f1b", "microbatches": 4} if objective in ("throughput", "batch", "makespan") else {}
    plan = pt.solve(graph, devices, objective, **run)  # type: ignore[arg-type]
    found = pt.explain(graph, devices, plan, what_if=())
    assert sum(plan.parts.values()) == pytest.approx(plan.value)
    assert found.parts == pytest.approx(plan.parts) == json.loads(plan.to_json())["parts"]
    assert json.loads(found.to_json())["parts"] == pytest.approx(plan.parts)
    assert ("bubble" in plan.parts) == ("bubble" in found.summary(80))
    if objective != "makespan":
        certified = pt.certify(graph, devices, plan, objective, **run)  # type: ignore[arg-type]
        assert certified.parts == pytest.approx(plan.parts)
        assert f"{plan.value:.6g} is made of {parts_in_words(plan.parts)}" in certified.summary()


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
