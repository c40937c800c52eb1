"""A plan knows what each of its stages holds, in the summary, in its file and as CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner import DeviceKind, Devices, Graph, Plan, Workload, WorkloadError, export, load_plan, solve
from partitioner.evaluation.text.names import ranges
from partitioner.schedule import simulate
from tests.exports.models import decoder, gpus


def random_plan(seed: int) -> tuple[Graph, Plan]:
    """A plan of a random training graph with layers, some of which are cut."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    edges = [(i, j) for j in range(n) for i in range(j) if rng.random() < (0.9 if j == i + 1 else 0.2)]
    edges += [(2 * n - 1 - b, 2 * n - 1 - a) for a, b in edges] + [(n - 1, n)]
    color = [min(i, 2 * n - 1 - i) for i in range(2 * n)]
    layer = [None if rng.random() < 0.2 else f"m{i // 2}" for i in range(n)]
    graph = Graph.from_arrays(
        {"gpu": rng.integers(1, 9, 2 * n)},
        edges,
        0.5,
        backward=[i >= n for i in range(2 * n)],
        color=color,
        layer=[layer[i] for i in color],
        names=[f"t{i}" for i in range(2 * n)],
        parameters=rng.integers(0, 5, 2 * n),
        activations=1.0,
    )
    return graph, solve(graph, gpus(3))


def test_stages_hold_what_their_nodes_do() -> None:
    for seed in range(40):
        graph, plan = random_plan(seed)
        assert [stage.devices for stage in plan.by_stage] == [(device,) for device in plan.stages]
        of_device = {load.name: load for load in plan.devices}
        for stage in plan.by_stage:
            nodes = [i for i, node in enumerate(graph.ids) if plan.placement[node] == stage.devices[0]]
            titles = {
                str(graph.layer_labels[graph.layer[i]]) if graph.layer[i] >= 0 else graph.names[i]
                for i in nodes
                if not graph.backward[i]
            }
            assert set(stage.layers) == titles and len(stage.layers) == len(titles)
            assert stage.parameters == sum(graph.parts[0][i] for i in nodes)
            load = of_device[stage.devices[0]]
            assert (stage.load, stage.memory, stage.bubble) == (load.load, load.memory, None)


def test_a_simulated_plan_knows_its_bubbles() -> None:
    workload = decoder(4, 3, training=True)
    plan = solve(workload.graph, workload.devices, "makespan", schedule="1f1b", microbatches=4)
    timeline = simulate(workload.graph, workload.devices, plan)
    bubble = dict(zip(timeline.devices, timeline.bubble.tolist(), strict=True))
    assert [stage.bubble for stage in plan.by_stage] == [bubble[device] for device in plan.stages]
    assert "bubble" in plan.summary(80)


def test_replicas_are_devices_of_their_stage() -> None:
    graph = Graph.from_arrays({"gpu": [12.0, 2.0]}, [(0, 1)], layer=["a", "b"])
    plan = solve(graph, Devices((DeviceKind("gpu", 4, bandwidth=10.0),)), replicas=3)
    assert plan.replicas
    assert [set(stage.devices) for stage in plan.by_stage] == [
        {lead, *plan.replicas.get(lead, ())} for lead in plan.stages
    ]


@pytest.mark.parametrize("objective", ["throughput", "latency", "makespan"])
def test_only_chains_have_stages(objective: str) -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (1, 2)], layer=["a", "b", "a"])
    plan = solve(graph, gpus(2), objective, split="free" if objective == "throughput" else None)
    assert (plan.by_stage == ()) == (plan.stages == ())
    assert ("by_stage" in json.loads(plan.to_json())) == bool(plan.stages)


def test_a_file_keeps_the_stages(tmp_path: Path) -> None:
    workload = decoder(4, 3, training=True)
    options: dict[str, Any] = {"schedule": "1f1b", "microbatches": 4}
    for plan in (
        solve(workload.graph, workload.devices),
        solve(workload.graph, workload.devices, "makespan", **options),
    ):
        plan.save(tmp_path / "plan.json")
        assert load_plan(tmp_path / "plan.json").by_stage == plan.by_stage != ()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("memory", -1, r"by_stage\[0\]: memory = -1: must be a finite number"),
        ("layers", "a", r"by_stage\[0\]: layers = 'a': must be a list"),
        ("bubble", "a", r"by_stage\[0\]: bubble = 'a': must be a number"),
    ],
)
def test_broken_stages_of_a_file_are_named(tmp_path: Path, field: str, value: Any, message: str) -> None:
    workload = decoder(2, 2)
    record = json.loads(solve(workload.graph, workload.devices).to_json())
    record["by_stage"][0][field] = value
    (tmp_path / "plan.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(WorkloadError, match=message):
        load_plan(tmp_path / "plan.json")


@pytest.mark.parametrize("width", [80, 127, 128, 160])
@pytest.mark.parametrize("layers", [4, 3000])
def test_the_table_of_stages_fits(width: int, layers: int) -> None:
    """Also where the names have nothing in common."""
    workload = decoder(4, 2)
    plan = solve(workload.graph, workload.devices)
    names = tuple(f"module{i}x{'y' * (i % 7)}" for i in range(layers))
    table = replace(plan, by_stage=tuple(replace(s, layers=names, bubble=0.5) for s in plan.by_stage))
    lines = table.summary(width).splitlines()
    assert max(map(len, lines)) <= width
    assert len([line for line in lines if "module0x" in line]) == len(plan.stages)
    assert all(line.split()[-1] == "50.0%" for line in lines if "module0x" in line)


def test_the_summary_shows_ranges_and_only_what_is_known() -> None:
    workload = decoder(4, 2)
    text = solve(workload.graph, workload.devices).summary(80)
    assert re.search(r"^1 +embed, layers\.0-\d", text, re.MULTILINE) and "parameters" in text
    assert "bubble" not in text
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, [(0, 1)])
    assert "layers" not in solve(graph, gpus(2)).summary(80)


def test_stages_as_csv() -> None:
    workload = decoder(4, 2)
    plan = solve(workload.graph, workload.devices)
    text = export(workload, plan, "stages")
    assert isinstance(text, str)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["devices"] for row in rows] == list(plan.stages)
    assert [float(row["load"]) for row in rows] == [stage.load for stage in plan.by_stage]
    assert [row["bubble"] for row in rows] == ["", ""] and rows[0]["layers"].startswith("embed, layers.0-")
    free = solve(workload.graph, workload.devices, split="free", method="single_device")
    content = export(Workload(workload.graph, workload.devices), replace(free, by_stage=()), "stages")
    assert str(content).count("\n") == 1


def expanded(text: str) -> list[str]:
    """The names of a range."""
    found = re.fullmatch(r"(.*?)(\d+)-(\d+)(\D*)", text)
    if found is None:
        return [text]
    wide = len(found[2]) if found[2].startswith("0") else 0
    return [f"{found[1]}{i:0{wide}}{found[4]}" for i in range(int(found[2]), int(found[3]) + 1)]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b.", "x1y"]), st.integers(0, 9), st.sampled_from(["", "/m"])))
)
def test_ranges_name_what_they_stand_for(parts: list[tuple[str, int, str]]) -> None:
    names = [f"{prefix}{number}{suffix}" for prefix, number, suffix in parts]
    assert [name for text in ranges(names) for name in expanded(text)] == names


def test_ranges_keep_leading_zeros() -> None:
    names = ["block00/mlp", "block01/mlp", "block09", "block10", "x07"]
    assert ranges(names) == ["block00-01/mlp", "block09-10", "x07"]
