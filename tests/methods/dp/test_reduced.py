"""The least value of a problem with light supernodes left out and others joined bounds that of the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp import exact
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.dp.reduced import can_be_reduced, joined_by_heavy_nets, reduced
from partitioner.methods.loads import part_numbers, value_of
from partitioner.methods.method import Settings
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value


def line(time: list[float], cost: list[float], **options: Any) -> pt.Graph:
    edges = [(i, i + 1) for i in range(len(time) - 1)]
    return pt.Graph.from_arrays({"accelerator": time}, edges, cost, **options)


def drawn(rng: np.random.Generator) -> tuple[pt.Graph, pt.Devices]:
    """Return a small graph of one pass or both, some tensors with several readers, on one or two kinds."""
    n, training = int(rng.integers(2, 7)), bool(rng.integers(2))
    edges = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.35]
    cost = (
        0.5 * rng.integers(0, 9, len(edges))
        if rng.integers(2)
        else np.full(len(edges), rng.choice([0.5, 3.0]))
    )
    times = {kind: rng.integers(0, 5, n).astype(float) for kind in ("accelerator", "cpu")}
    allowed, color = rng.random(n) < 0.7, [f"c{i}" for i in range(n)]
    if training:
        edges += [(n + j, n + i) for i, j in edges] + [(i, n + i) for i in range(n)]
        cost = np.concatenate((cost, cost, 0.5 * rng.integers(0, 3, n)))
        times = {kind: np.concatenate((row, 2 * row)) for kind, row in times.items()}
        allowed, color = np.tile(allowed, 2), 2 * color
    count = len(times["cpu"])
    graph = pt.Graph.from_arrays(
        times, edges, cost.tolist(), allowed={"cpu": allowed.tolist()}, color=color,
        backward=[i >= n for i in range(count)],
    )  # fmt: skip
    return graph, pt.Devices.accelerated(int(rng.integers(1, 4)), cpus=int(rng.integers(0, 2)))


@pytest.mark.parametrize("seeds", [range(120), slow(range(120, 3000))])
def test_bounds_and_values_hold(seeds: range) -> None:
    """With nothing left out the value is that of all chains; else it is lower, and its stages a chain."""
    joined = left_out = 0
    for seed in seeds:
        graph, devices = drawn(np.random.default_rng(seed))
        problem: Any = contract(graph, devices, Goal())
        best = best_chain_value(graph, devices)
        if best is None or not can_be_reduced(problem):
            continue
        for lightest in (0.0, 1.0, 4.0, 1e9):
            smaller = reduced(problem, lightest)
            joined += smaller.problem.n < smaller.kept.sum()
            left_out += not smaller.kept.all()
            found = best_of(smaller.problem)
            assert found[0] <= best * (1 + 1e-9) + 1e-12, (seed, lightest)
            stages = smaller.stages_of(found[1])
            number = part_numbers(stages, problem.n)
            after = problem.successors
            assert (number[after.owners()] <= number[after.items]).all(), (seed, lightest)
            if smaller.kept.all():
                assert found[0] == pytest.approx(best, rel=1e-9, abs=1e-12), seed
                assert value_of(problem, stages) == pytest.approx(best, rel=1e-9, abs=1e-12), seed
    assert joined > len(seeds) // 3 and left_out > len(seeds)


def best_of(problem: Any) -> tuple[float, list[Any]]:
    """Return the least value of a problem's chains and the stages, by the table of all ideals."""
    if problem.n == 0:
        return 0.0, []
    outcome = exact._few_ideals(_climb(problem))
    assert outcome is not None and outcome.stop_reason == "optimal"
    return outcome.value, list(outcome.parts or [])


def _climb(problem: Any) -> exact.Climb:
    settings = Settings()
    return exact.Climb(LinearSearch(problem, relax(problem), settings), settings, False, False)


@pytest.mark.parametrize("seeds", [range(60), slow(range(60, 1000))])
def test_the_ladder_finds_the_optimum_by_smaller_problems_alone(
    seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, bounds and status are those of the oracle where the ladder has no other exact search."""
    names = ("linear orders", "smaller problems", "anytime search")
    monkeypatch.setattr(exact, "LADDER", tuple(rung for rung in exact.LADDER if rung.name in names))
    for seed in seeds:
        graph, devices = drawn(np.random.default_rng(10_000 + seed))
        best = best_chain_value(graph, devices)
        if best is None:
            continue
        plan = pt.solve(graph, devices, split="chain", method="dp", objective="throughput", time_limit=20)
        assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
        assert plan.bound <= best * (1 + 1e-9) + 1e-12 and plan.status == "optimal", seed


def test_what_costs_more_to_send_than_to_move_is_one() -> None:
    def labels(graph: pt.Graph) -> list[int]:
        problem: Any = contract(graph, pt.Devices.accelerated(2), Goal())
        return [int(label) for label in joined_by_heavy_nets(problem)]

    assert labels(line([9.0, 1.0, 9.0], [2.0, 4.0])) == [0, 2, 2]
    assert labels(line([9.0, 1.0, 9.0], [4.0, 2.0])) == [0, 0, 2]
    assert labels(line([9.0, 1.0, 9.0], [3.1, 4.0])) == [0, 1, 2]


def test_another_reader_that_may_come_earlier_keeps_them_apart() -> None:
    """B cannot follow c to a later stage, since d, which reads b, too, may be in an earlier one."""
    edges, cost = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")], [0.1, 9.0, 0.2, 5.0]
    graph = pt.Graph.from_arrays({"accelerator": [5.0, 0.1, 20.0, 5.0, 5.0]}, edges, cost, ids=list("abcde"))
    problem: Any = contract(graph, pt.Devices.accelerated(2), Goal())
    label = joined_by_heavy_nets(problem)[problem.member]
    assert label[1] != label[2]


def test_other_loads_and_tight_memory_are_not_reduced() -> None:
    graph = line([9.0, 1.0, 9.0], [2.0, 4.0], size=1.0)
    for devices, plain in (
        (pt.Devices.accelerated(2), True),
        (pt.Devices.accelerated(2, memory=2.5), False),
        (pt.Devices.accelerated(2, communication="overlapped"), False),
        (pt.Devices.accelerated(2, communication="duplex"), False),
    ):
        problem: Any = contract(graph, devices, Goal())
        assert can_be_reduced(problem) == plain
        assert not can_be_reduced(replace(problem, relaxed_size=problem.size + 1))


def test_what_is_left_out_joins_its_first_reader() -> None:
    """A light mask that both layers read is left out, and is again where the first of them is."""
    edges = [("mask", "a"), ("mask", "b"), ("a", "b"), ("b", "end")]
    graph = pt.Graph.from_arrays({"accelerator": [0.1, 5.0, 5.0, 0.1]}, edges, [0.1, 0.1, 1.0, 0.1],
                                 ids=["mask", "a", "b", "end"])  # fmt: skip
    problem: Any = contract(graph, pt.Devices.accelerated(2), Goal())
    smaller = reduced(problem, 1.0)
    assert smaller.problem.n == 2 and smaller.kept.sum() == 2
    found = best_of(smaller.problem)
    assert found[0] == 6.1  # 5, and what is sent: the mask and the result of a
    number = part_numbers(smaller.stages_of(found[1]), problem.n)[problem.member]
    assert number.tolist() == [0, 0, 1, 1]
