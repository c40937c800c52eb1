"""A repr is one short line that says what an object is; equal objects have equal hashes."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner.schedule import simulate

LONGEST = 400


@pytest.fixture(scope="module")
def workload() -> pt.Workload:
    return pt.load(Path(__file__).parents[2] / "instances" / "bert24_training.json")


@pytest.fixture(scope="module")
def plan(workload: pt.Workload) -> pt.Plan:
    return pt.solve(workload.graph, workload.devices)


def test_reprs_are_short_and_say_what_matters(workload: pt.Workload, plan: pt.Plan) -> None:
    graph, devices = workload.graph, workload.devices
    timeline = simulate(graph, devices, plan, "1f1b", 8)
    words: list[tuple[Any, tuple[str, ...]]] = [
        (workload, ("bert24_training", "166 nodes", "6 accelerator", "1 cpu")),
        (graph, (f"{len(graph)} nodes", f"{len(graph.edges)} edges", "accelerator, cpu")),
        (devices, ("6 accelerator, 1 cpu", "sequential")),
        (plan, ("throughput", "236.358", "optimal", "dp", "7 of 7 devices")),
        (pt.evaluate(graph, devices, plan), ("throughput 236.358", "feasible", "chain")),
        (timeline, ("1f1b", "8 microbatches", "makespan")),
        (pt.compare_schedules(graph, devices, plan, 8), ("best", "8 microbatches")),
        (pt.certify(graph, devices, plan), ("value 236.358", "bound 236.358")),
        (pt.SweepRow("k", "w" * 99, "p", 2, "batch", "optimal", value=3.5), ("wwww", "batch", "value 3.5")),
        (pt.SweepResult((), 5, 0, 1.0), ("0 of 5 tasks done",)),
        (pt.compare_methods(graph, devices, methods=["dp"]), ("1 runs", "best dp")),
    ]
    for value, parts in words:
        text = repr(value)
        assert len(text) <= LONGEST and "\n" not in text
        assert all(part in text for part in parts), text


def test_many_kinds_do_not_make_a_long_repr() -> None:
    kinds = tuple(pt.DeviceKind(f"kind{i}", 2) for i in range(200))
    devices = pt.Devices(kinds)
    graph = pt.Graph.from_arrays({kind.name: [1.0] for kind in kinds})
    assert len(repr(pt.Workload(graph, devices))) <= LONGEST


def test_equal_objects_have_equal_hashes(plan: pt.Plan, workload: pt.Workload) -> None:
    constraints = pt.Constraints(pin={3: "gpu"}, forbid={"a*": ["cpu"]}, together=[[1, 2]], stages=2)
    equal: list[tuple[Any, Any]] = [
        (plan, copy.deepcopy(plan)),
        (plan, replace(plan, placement=dict(reversed(list(plan.placement.items()))))),
        (constraints, copy.deepcopy(constraints)),
        (pt.Constraints(nodes_per_stage=[1, 2]), pt.Constraints(nodes_per_stage=(1, 2))),  # type: ignore[arg-type]
        (pt.Transfers(slope=[[0, 1], [1, 0]]), pt.Transfers(slope=((0.0, 1.0), (1.0, 0.0)))),
        (pt.Devices.accelerated(2, memory=5), pt.Devices.accelerated(2, memory=5.0)),
        (workload, replace(workload)),
        (workload.graph, workload.graph),
        (pt.evaluate(workload.graph, None, plan), pt.evaluate(workload.graph, None, plan)),
    ]
    for one, other in equal:
        assert one == other and hash(one) == hash(other)
    assert len({plan, replace(plan, seed=plan.seed + 1), copy.deepcopy(plan)}) == 2


def test_the_hash_of_a_workload_is_that_of_equal_devices_and_has_not_changed() -> None:
    """Files of plans hold it: it is taken of this text, whatever `repr` says."""
    graph = pt.Graph.from_arrays({"accelerator": [1.0], "cpu": [1.0]})
    whole, real = (pt.Devices.accelerated(2, memory=memory, cpus=1) for memory in (5, 5.0))
    assert pt.Workload(graph, whole).sha256 == pt.Workload(graph, real).sha256
    assert whole.text == (
        "Devices(kinds=(DeviceKind(name='accelerator', count=2, memory=5.0, pays_communication=True, "
        "times=None, time_factor=1.0, transfer_factor=1.0, bandwidth=None), "
        "DeviceKind(name='cpu', count=1, memory=None, "
        "pays_communication=False, times=None, time_factor=1.0, transfer_factor=1.0, bandwidth=None)), "
        "communication='sequential', levels=(), synchronisation='added')"
    )


def test_tables_for_notebooks_escape_names(workload: pt.Workload, plan: pt.Plan) -> None:
    """They have a row for each device or run, at most 20, and no markup from names."""
    graph, devices = workload.graph, workload.devices
    hostile = replace(workload, name="<script>alert(1)</script>")
    many = pt.Devices.accelerated(100)
    chain = pt.Graph.from_arrays({"accelerator": [1.0] * 100}, [(i, i + 1) for i in range(99)])
    spread = pt.evaluate(chain, many, {i: f"accelerator{i}" for i in range(100)})
    words: list[tuple[Any, tuple[str, ...]]] = [
        (hostile, ("&lt;script&gt;", "<td>accelerator</td><td>6</td>")),
        (plan, ("236.358", "<td>accelerator0</td><td>36</td>")),
        (pt.evaluate(graph, devices, plan), ("feasible", "<td>accelerator0</td>")),
        (spread, ("<td>accelerator19</td>", "<td>and 80 more</td>")),
        (simulate(graph, devices, plan, "1f1b", 8), ("8 microbatches", "<th>bubble</th>")),
        (pt.compare_schedules(graph, devices, plan, 8), ("<td>gpipe</td>",)),
        (pt.certify(graph, devices, plan), ("<td>236.358</td><td>236.358</td><td>0.00%</td>",)),
        (pt.compare_methods(graph, devices, methods=["dp"]), ("<td>dp</td><td>chain</td>",)),
    ]
    for value, parts in words:
        html = value._repr_html_()
        assert html.startswith("<table>") and "<script" not in html and html.count("<tr>") <= 22
        assert all(part in html for part in parts), html
