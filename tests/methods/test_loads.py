"""What parts cost on the contracted problem is what the evaluator finds for their nodes."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph, evaluate
from partitioner.methods.loads import part_loads, value_of
from partitioner.methods.method import Part
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from tests.random_problems import cases, names_of, placement_of, random_parts


@pytest.mark.parametrize(("first", "count"), [(0, 100), pytest.param(100, 900, marks=pytest.mark.slow)])
@pytest.mark.parametrize("split", ["chain", "convex", "free"])
def test_values_and_loads_are_the_evaluators(split: str, first: int, count: int) -> None:
    """Random parts of random workloads, both objectives, all models; forbidden kinds cost infinity."""
    finite = infinite = 0
    for case in cases(first, count, most_nodes=12, most_devices=4):
        problem = case.problem(split)
        parts = random_parts(problem, case.rng)
        placement = placement_of(case, problem, parts)
        evaluation = evaluate(case.graph, case.devices, placement, case.objective)
        value = value_of(problem, parts)
        forbidden = any("may not run" in rule for rule in evaluation.violations)
        absent = {case.devices.kinds[part.kind].count == 0 for part in parts}
        if forbidden or True in absent:
            assert np.isinf(value), case.seed
            infinite += 1
            continue
        assert value == pytest.approx(evaluation.value, rel=1e-9, abs=1e-12), case.seed
        finite += 1
        if case.objective == "throughput":
            found = {load.name: load.load for load in evaluation.loads}
            expected = [found[name] for name in names_of(parts, case.devices)]
            assert part_loads(problem, parts)[0].tolist() == pytest.approx(expected), case.seed
    assert finite > count // 2
    assert infinite > count // 20


def test_gpipe_has_a_row_for_each_pass() -> None:
    """Parts f (3) | b (5), transfer 1: the first sends in the forward pass, the second fetches backward."""
    graph = Graph.from_arrays({"accelerator": [3.0, 5.0]}, [(0, 1)], 1.0, backward=[False, True])
    problem = contract(graph, Devices.accelerated(2), Goal(Measure.LARGEST_LOAD_BY_PASS, "free"))
    parts = [Part(0, problem.member[[0]]), Part(0, problem.member[[1]])]
    assert part_loads(problem, parts).tolist() == [[4.0, 0.0], [0.0, 6.0]]
    assert value_of(problem, parts) == 10.0
    together = contract(graph, Devices.accelerated(2), Goal(Measure.LARGEST_LOAD, "free"))
    assert part_loads(together, parts).tolist() == [[4.0, 6.0]]


def test_an_empty_part_costs_nothing() -> None:
    problem = contract(Graph.from_arrays({"accelerator": [1.0]}), Devices.accelerated(1))
    assert value_of(problem, [Part(0, np.array([0]))]) == 1.0
    assert part_loads(problem, [Part(0, np.array([0])), Part(0, np.array([], dtype=np.int64))])[0, 1] == 0.0
