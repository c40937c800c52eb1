"""Partitioners give every accelerator a part, keep their word, and say what their parts break."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
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
from partitioner.methods.baselines.graph_partitioning.method import (
    TOTAL,
    Ended,
    Partition,
    Weighted,
    of_nets,
    of_tasks,
    weighted,
)
from partitioner.methods.baselines.graph_partitioning.scotch import as_grf, read_map
from partitioner.methods.method import Settings
from partitioner.methods.placing import Placing
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import OperatorNodes
from tests.contracted import contract_to
from tests.methods.baselines.graph_partitioning.programs import DEALING, FAILING, SILENT, SLEEPING, stand_in
from tests.random_problems import cases
from tests.random_workloads import fitted, in_known_order

Costs = dict[tuple[int, int], float]


def costs_of(graph: Weighted) -> dict[tuple[int, int], int]:
    owner = np.repeat(np.arange(graph.n), np.diff(graph.start)).tolist()
    return dict(zip(zip(owner, graph.neighbour.tolist(), strict=True), graph.cost.tolist(), strict=True))


def assert_in_proportion(found: Weighted, expected: Costs) -> None:
    """Each pair has its share of the costs, which add up to TOTAL, whole numbers and at least 1."""
    costs, total = costs_of(found), sum(expected.values())
    assert {pair for pair in costs if pair[0] < pair[1]} == set(expected)
    for (u, v), cost in costs.items():
        assert cost == costs[v, u] >= 1
        assert cost == pytest.approx(expected[min(u, v), max(u, v)] / total * TOTAL, abs=1.0)


def tensors_between(edges: list[tuple[int, int, float]], place: list[int]) -> Costs:
    """What edges between places cost if all edges of a node with one cost are one tensor."""
    outgoing = defaultdict(list)
    for u, v, cost in edges:
        outgoing[u].append((v, cost))
    found: Costs = defaultdict(float)
    for u, out in outgoing.items():
        shared = len({cost for _, cost in out}) == 1
        readers = [(place[v], cost) for v, cost in out]
        for p, cost in dict(readers).items() if shared else readers:
            if p != place[u] and cost > 0:
                found[min(p, place[u]), max(p, place[u])] += cost
    return found


def test_a_tensor_counts_once_for_each_reader() -> None:
    compared = 0
    for case in cases(91_000, 60):
        devices = replace(case.devices, communication="duplex", levels=())
        problem = contract(fitted(case.graph, devices), devices, Goal(Measure.LARGEST_LOAD, "free"))
        edges = [(u, v, c) for (u, v), c in zip(case.graph.edges.tolist(), case.graph.cost, strict=True)]
        expected = tensors_between(edges, problem.member.tolist())
        assert_in_proportion(of_nets(np.ones(problem.n), problem.nets), expected)
        compared += bool(expected)
    assert compared > 20


def test_tasks_of_a_group_are_one_vertex() -> None:
    compared = 0
    for case in cases(92_000, 60):
        goal = Goal(Measure.LAST_OPERATOR, "free", transfers=Transfers(slope=1.0))
        graph = in_known_order(case.graph)
        tasks = contract_to(OperatorNodes, fitted(graph, case.devices), case.devices, goal).tasks
        group = tasks.group[np.argsort(tasks.node)].tolist()
        edges = [(u, v, c) for (u, v), c in zip(graph.edges.tolist(), graph.cost, strict=True)]
        expected = tensors_between(edges, group)
        if len(tasks.limit) > 1:
            assert_in_proportion(of_tasks(np.ones(len(tasks.group_size)), tasks), expected)
            compared += bool(expected)
    assert compared > 10


def test_work_is_in_proportion() -> None:
    graph = weighted(np.array([1.0, 2.0, 5.0]), np.zeros((0, 2), dtype=np.int64), np.zeros(0))
    assert graph.weight.tolist() == [TOTAL // 8, TOTAL // 4, TOTAL // 8 * 5]
    idle = weighted(np.zeros(2), np.array([[0, 1]]), np.array([1e-300]))
    assert idle.weight.tolist() == [1, 1] and idle.cost.min() >= 1


def test_renumbering_keeps_the_graph() -> None:
    rng = np.random.default_rng(0)
    graph = weighted(rng.random(20), rng.integers(20, size=(60, 2)), rng.random(60))
    order = rng.permutation(20)
    other = graph.renumbered(order)
    back = costs_of(other)
    assert other.weight.tolist() == graph.weight[order].tolist()
    assert {(int(order[u]), int(order[v])): cost for (u, v), cost in back.items()} == costs_of(graph)


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
