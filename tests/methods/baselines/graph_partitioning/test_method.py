"""Partitioners give every accelerator a part, keep their word, and say what their parts break."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from partitioner import (
    BackendUnavailable,
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Transfers,
    solve,
)
from partitioner.methods.baselines.graph_partitioning import metis, scotch
from partitioner.methods.baselines.graph_partitioning.method import Partition
from partitioner.methods.baselines.graph_partitioning.run import Ended
from partitioner.methods.baselines.graph_partitioning.scotch import as_grf, read_map
from partitioner.methods.baselines.graph_partitioning.weighted import Weighted, weighted
from partitioner.methods.method import Settings
from partitioner.methods.placing import Placing
from tests.methods.baselines.graph_partitioning.programs import DEALING, FAILING, SILENT, SLEEPING, stand_in
from tests.random_problems import cases
from tests.random_workloads import in_known_order

no_scotch = pytest.mark.skipif(
    not any(map(shutil.which, scotch.PROGRAMS)), reason="Scotch is not here: apt-get install scotch"
)
no_metis = pytest.mark.skipif(not find_spec("pymetis"), reason="pymetis is not here: pip install pymetis")
PRESENT = [
    pytest.param("scotch", scotch.partition, marks=no_scotch),
    pytest.param("metis", metis.partition, marks=no_metis),
]
LOOSE = Settings(placing=Placing(imbalance=0.05))


def random_graph(n: int = 200, edges: int = 500, seed: int = 0) -> Weighted:
    rng = np.random.default_rng(seed)
    return weighted(0.5 + rng.random(n), rng.integers(n, size=(edges, 2)), rng.random(edges))


def line(n: int) -> Graph:
    return Graph.from_arrays(
        {"gpu": [1.0] * n}, [(i, i + 1) for i in range(n - 1)], cost=0.125, size=[1.0] * n
    )


def gpus(count: int, memory: float | None = None) -> Devices:
    return Devices((DeviceKind("gpu", count, memory, pays_communication=True),))


def test_a_written_graph_reads_back() -> None:
    graph = random_graph(30, 60)
    lines = [[int(word) for word in text.split()] for text in as_grf(graph).splitlines()]
    assert lines[:2] == [[0], [30, len(graph.neighbour)]] and as_grf(graph).splitlines()[2] == "0 011"
    for v, (weight, degree, *rest) in enumerate(lines[3:]):
        mine = slice(graph.start[v], graph.start[v + 1])
        assert (weight, degree) == (graph.weight[v], len(rest) // 2)
        assert (rest[::2], rest[1::2]) == (graph.cost[mine].tolist(), graph.neighbour[mine].tolist())


@pytest.mark.parametrize("text", ["", "2 0 1", "2 0 1 0 1", "1 0 1"])
def test_a_map_without_a_vertex_is_refused(text: str) -> None:
    with pytest.raises(Ended, match="without a part"):
        read_map(text, 2)


@pytest.mark.parametrize(("name", "partition"), PRESENT)
@pytest.mark.parametrize("parts", [2, 3, 6])
def test_parts_are_balanced_and_cut_little(name: str, partition: Partition, parts: int) -> None:
    """On a ring of random weights there are as many parts as asked for, about equal, in few pieces."""
    ring = np.column_stack((np.arange(120), (np.arange(120) + 1) % 120))
    graph = weighted(0.5 + np.random.default_rng(parts).random(120), ring, np.ones(120))
    part = partition(graph, parts, LOOSE)
    held = np.bincount(part, graph.weight, parts)
    assert len(held) == parts and held.max() <= 1.1 * held.mean()
    assert (part != np.roll(part, 1)).sum() <= 2 * parts


@pytest.mark.parametrize(("name", "partition"), PRESENT)
def test_a_seed_gives_the_same_parts(name: str, partition: Partition) -> None:
    graph = random_graph()
    found = [[partition(graph, 5, Settings(seed=seed)).tolist() for _ in range(2)] for seed in (0, 1, 2)]
    assert all(first == second for first, second in found)
    assert found[0] != found[1] != found[2]


@pytest.mark.parametrize(("name", "partition"), PRESENT)
@pytest.mark.parametrize("objective", ["throughput", "gpipe", "makespan"])
@pytest.mark.parametrize(("first", "count"), [(93_000, 4), pytest.param(93_004, 11, marks=pytest.mark.slow)])
def test_plans_keep_their_word(
    name: str, partition: Partition, objective: str, first: int, count: int
) -> None:
    """On random workloads `solve` holds each plan to the evaluator; no plan only where memory is short."""
    plans = 0
    for case in cases(first, count):
        devices = replace(case.devices, levels=())
        graph = in_known_order(case.graph) if objective == "makespan" else case.graph
        try:
            plan = solve(graph, devices, objective, method=name, split="free")
        except NoPlanFound as error:
            assert "limits of memory" in str(error)
            continue
        except InfeasibleError:
            continue
        assert plan.bound <= plan.value and "seed 0" in plan.native_status
        plans += 1
    assert plans > count / 4


def test_a_missing_program_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendUnavailable, match=r"method scotch needs the program.*apt-get install scotch"):
        solve(line(6), gpus(2), method="scotch", split="free")


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    with pytest.raises(
        BackendUnavailable, match=r'method metis needs pymetis: pip install "dnn-partitioner\[metis\]"'
    ):
        solve(line(6), gpus(2), method="metis", split="free")


def test_parts_become_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Vertices dealt out in turn: two each, and every tensor of the line is cut."""
    stand_in(DEALING, tmp_path, monkeypatch)
    plan = solve(line(6), gpus(3), method="scotch", split="free")
    assert [load.nodes for load in plan.devices] == [2, 2, 2]
    assert plan.value == 2 + 4 * 0.125 and plan.native_status == "Scotch 0.1, seed 0, imbalance 0.01"


def test_broken_limits_are_named_with_the_numbers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(DEALING, tmp_path, monkeypatch)
    graph = replace(line(6), size=np.array([5.0, 1, 1, 4, 1, 1]))
    for objective, value in (("throughput", "2.5"), ("gpipe", "2.5"), ("makespan", "6.625")):
        words = f"break 1 of 3 limits of memory: 9 on a device that has 8; their value would be {value}"
        with pytest.raises(NoPlanFound, match=words):
            solve(graph, gpus(3, 8.0), objective, method="scotch", split="free")


def test_what_accelerators_may_not_run_goes_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(DEALING, tmp_path, monkeypatch)
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 4, "cpu": [9.0] * 4},
        [(0, 1), (1, 2), (2, 3)],
        cost=0.5,
        allowed={"gpu": [True, False, True, True]},
    )
    devices = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 1, pays_communication=False)))
    for objective in ("throughput", "makespan"):
        plan = solve(graph, devices, objective, method="scotch", split="free")
        assert plan.placement == {0: "gpu0", 1: "cpu0", 2: "gpu0", 3: "gpu1"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (FAILING, "Scotch ended with code 1: no memory left"),
        (SILENT, "Scotch left vertices without a part"),
    ],
)
def test_a_program_that_fails_is_no_plan(
    body: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(body, tmp_path, monkeypatch)
    with pytest.raises(NoPlanFound, match=message):
        solve(line(6), gpus(3), method="scotch", split="free")


def test_a_program_that_is_late_leaves_the_first_plan(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(SLEEPING, tmp_path, monkeypatch)
    started = time.perf_counter()
    plan = solve(line(6), gpus(3), method="scotch", split="free", time_limit=1.0)
    assert time.perf_counter() - started < 30
    assert (plan.stop_reason, plan.backend) == ("time_limit", "numpy")
    assert "Scotch did not end within the time limit" in plan.notes


@no_metis
def test_metis_in_no_time_leaves_the_first_plan() -> None:
    plan = solve(line(6), gpus(3), method="metis", split="free", time_limit=1e-6)
    assert (plan.stop_reason, plan.backend) == ("time_limit", "numpy")


@pytest.mark.parametrize(("name", "partition"), PRESENT)
def test_nothing_else_is_printed(name: str, partition: Partition, capfd: pytest.CaptureFixture[str]) -> None:
    """METIS remarks on graphs that cannot be balanced; standard output belongs to the command line."""
    graph = weighted(
        np.array([1e9, *[1.0] * 39]), np.random.default_rng(0).integers(40, size=(80, 2)), np.ones(80)
    )
    assert set(partition(graph, 6, Settings()).tolist()) <= set(range(6))
    assert capfd.readouterr() == ("", "")


def test_contention_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two tensors of one node leave for the other device: one after the other on its channel."""
    stand_in(DEALING, tmp_path, monkeypatch)
    graph = Graph.from_arrays({"gpu": [1.0] * 4}, [(0, 1), (0, 3)], cost=[2.0, 3.0])
    spans = [
        solve(graph, gpus(2), "makespan", method="scotch", transfers=Transfers(contention=c)).value
        for c in (False, True)
    ]
    assert spans[0] < spans[1]
