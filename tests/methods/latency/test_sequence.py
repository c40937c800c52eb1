"""The least sum of blocks is that of the definition, and every plan is what the evaluator says it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from partitioner import Devices, Graph, evaluate
from partitioner.methods.dp.lattice import ideal_lattice
from partitioner.methods.latency.sequence.chains import coarsened, sequenced
from partitioner.methods.latency.sequence.method import solve_sequence
from partitioner.methods.latency.sequence.sequence_table import SequenceTable, sequence_model_of, states_of
from partitioner.methods.method import Settings
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import SampleProblem
from tests.contracted import contract_to
from tests.methods.latency.cases import judged, random_problem
from tests.methods.latency.sequence_reference import least_sum
from tests.methods.slow_parameters import slow

BORDERS = (60, *range(300, 1501, 300))
GOAL = Goal(Measure.ONE_SAMPLE, "convex")


@pytest.mark.parametrize("seeds", [range(60), *(slow(range(*pair)) for pair in pairwise(BORDERS))])
def test_the_least_sum_is_that_of_all_chains_of_ideals(seeds: range) -> None:
    """On graphs of up to 7 nodes with every feature mixed, the table agrees with plain enumeration."""
    feasible = compared = 0
    for seed in seeds:
        case = random_problem(seed, most_nodes=7, most_devices=3)
        if case is None or case[2].chain is None:
            continue
        chain, member = sequenced(case[2], case[2].chain)
        lattice = ideal_lattice(chain, 10_000, 100_000)
        assert lattice is not None
        states = states_of(case[2], 1, 10_000)
        table = SequenceTable(sequence_model_of(case[2], chain, member, Settings()), lattice, states, np.inf)
        table.fill(Settings(), 10**9)
        found = min((total for total, _ in table.totals()), default=np.inf)
        assert found == pytest.approx(least_sum(case[2], chain, member.tolist()), rel=1e-9), seed
        feasible += np.isfinite(found)
        compared += 1
    assert compared > 0.8 * len(seeds)
    assert len(seeds) // 2 < feasible <= compared


@pytest.mark.parametrize(("first", "count"), [(0, 20), slow(20, 280)])
@pytest.mark.parametrize("subgraphs", [1, 2, 3])
def test_the_evaluator_agrees(subgraphs: int, first: int, count: int) -> None:
    """No rule is broken, the value is the evaluator's, at most the sum and at least the bound."""
    planned = overlapping = several = 0
    for seed in range(1000 * subgraphs + first, 1000 * subgraphs + first + count):
        case = random_problem(seed, 12, 4, subgraphs)
        if case is None:
            continue
        problem = case[2]
        outcome = solve_sequence(problem, Settings(orders=3))
        if outcome.parts is None or outcome.subgraph is None:
            continue
        verdict = judged(*case, outcome)
        assert not verdict.violations, seed
        assert outcome.value == pytest.approx(verdict.value, rel=1e-9, abs=1e-12), seed
        assert outcome.bound <= outcome.value <= outcome.statistics["sum"] * (1 + 1e-9) + 1e-12, seed
        planned += 1
        overlapping += outcome.value < outcome.statistics["sum"] * (1 - 1e-9)
        several += int(outcome.subgraph.max() > 0)
    assert planned > count * 2 / 3
    assert overlapping > count // 30
    assert (several > 0) == (subgraphs > 1)


@pytest.mark.parametrize("seeds", [range(6000, 6025), slow(range(6025, 6300))])
def test_more_subgraphs_are_no_worse(seeds: range) -> None:
    """What a device with one subgraph of each pass can do, one with two can do."""
    better = 0
    for seed in seeds:
        one, two = random_problem(seed, 10, 3, 1), random_problem(seed, 10, 3, 2)
        if one is not None and two is not None:
            single, double = (solve_sequence(case[2], Settings(orders=2)).value for case in (one, two))
            assert double <= single * (1 + 1e-9), seed
            better += double < single * (1 - 1e-9)
    assert better > 0


def best_of_all(graph: Graph, devices: Devices, subgraphs: int = 1) -> float:
    """The least latency over all placements."""
    best = np.inf
    for names in product(devices.names, repeat=len(graph)):
        placement = dict(zip(graph.ids, names, strict=True))
        verdict = evaluate(graph, devices, placement, "latency", subgraphs_per_accelerator=subgraphs)
        best = best if verdict.violations else min(best, verdict.value)
    return float(best)


def small_graph(rng: np.random.Generator, edges: list[tuple[int, int]], n: int) -> tuple[Graph, Devices]:
    """Random times and costs of the same order, memory for two or three nodes of five."""
    time, cost = rng.integers(1, 8, n).astype(float), rng.integers(0, 3, n).astype(float)
    graph = Graph.from_arrays(
        {"accelerator": time, "cpu": time * rng.integers(1, 4)},
        edges, cost[[u for u, _ in edges]], size=rng.integers(1, 3, n).astype(float),
    )  # fmt: skip
    return graph, Devices.accelerated(2, cpus=1, memory=4.0)


@pytest.mark.parametrize("seeds", [range(1), slow(range(1, 4))])
def test_on_a_path_the_sum_is_a_proof(seeds: range) -> None:
    """The plan for a path is optimal by its own word, and by trying all placements."""
    for seed in seeds:
        graph, devices = small_graph(np.random.default_rng(seed), [(u, u + 1) for u in range(4)], 5)
        problem = contract_to(SampleProblem, graph, devices, GOAL)
        outcome = solve_sequence(problem, Settings())
        assert outcome.stop_reason == "optimal"
        assert outcome.value == pytest.approx(best_of_all(graph, devices)), seed
        relaxed = solve_sequence(replace(problem, subgraphs=2), Settings())
        best = best_of_all(graph, devices, 2)
        assert relaxed.bound * (1 - 1e-9) <= best <= relaxed.value * (1 + 1e-9), seed


@pytest.mark.parametrize("seeds", [range(100, 102), slow(range(102, 114))])
def test_the_beam_is_near_the_optimum(seeds: range) -> None:
    """On small graphs with branches the best of all placements is found nearly always, by overlap too."""
    found = overlapping = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        edges = [(u, v) for v in range(1, 5) for u in range(v) if rng.random() < 0.45]
        graph, devices = small_graph(rng, edges, 5)
        outcome = solve_sequence(contract_to(SampleProblem, graph, devices, GOAL), Settings())
        best = best_of_all(graph, devices)
        assert outcome.bound * (1 - 1e-9) <= best <= outcome.value * (1 + 1e-9), seed
        found += outcome.value <= best * (1 + 1e-9)
        overlapping += outcome.value < outcome.statistics["sum"] * (1 - 1e-9)
    assert found >= len(seeds) - 1
    assert overlapping > len(seeds) // 4


@pytest.mark.parametrize("seeds", [range(7000, 7020), slow(range(7020, 7100))])
def test_a_tiny_memory_budget_leaves_linear_orders(seeds: range) -> None:
    """Without room for the ideals there is still a plan."""
    for seed in seeds:
        case = random_problem(seed, 10, 3)
        if case is not None:
            outcome = solve_sequence(case[2], Settings(memory_budget=2500, orders=3))
            assert outcome.parts is None or not judged(*case, outcome).violations, seed


@pytest.mark.parametrize("seeds", [range(8000, 8060), slow(range(8060, 8200))])
def test_merging_inside_blocks_keeps_a_plan(seeds: range) -> None:
    """Whatever edges are merged, the blocks stay unions of supernodes, in an order that they obey."""
    fewer = 0
    for seed in seeds:
        case = random_problem(seed, 10, 3)
        if case is None or case[2].chain is None:
            continue
        rng = np.random.default_rng(seed)
        chain, _ = sequenced(case[2], case[2].chain)
        number = np.sort(rng.integers(0, 3, chain.n))
        coarse, label = coarsened(chain, number, 0.5, rng)
        assert sorted(set(label.tolist())) == list(range(coarse.n))
        assert all(len(set(number[label == v].tolist())) == 1 for v in range(coarse.n)), seed
        assert (coarse.successors.owners() < coarse.successors.items).all(), seed
        assert coarse.size.sum() == pytest.approx(chain.size.sum())
        fewer += coarse.n < chain.n
    assert fewer > len(seeds) // 4
