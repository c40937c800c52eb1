"""Parts obey the rules of the contracted problem exactly where the evaluator finds nothing broken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from partitioner import Devices, Evaluation, Graph, evaluate
from partitioner.methods.method import Part
from partitioner.methods.rules import obeys
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from tests.random_problems import cases, has_shape, names_of, placement_of, random_parts


def in_order(parts: Sequence[Part], devices: Devices, evaluation: Evaluation) -> list[Part]:
    """The parts in the order of the chain, if they are one."""
    order = evaluation.shape.order or names_of(parts, devices)
    by_name = dict(zip(names_of(parts, devices), parts, strict=True))
    return [by_name[name] for name in order]


@pytest.mark.parametrize(("first", "count"), [(0, 100), pytest.param(100, 900, marks=pytest.mark.slow)])
@pytest.mark.parametrize("split", ["chain", "convex", "free"])
def test_the_evaluator_agrees(split: str, first: int, count: int) -> None:
    """Counts, memory, allowed kinds, shape with all its options: random parts, good and bad."""
    good = bad = misshapen = 0
    for case in cases(first, count, most_nodes=10, most_devices=4):
        problem = case.problem(split)
        parts = random_parts(problem, case.rng)
        evaluation = evaluate(case.graph, case.devices, placement_of(case, problem, parts))
        shaped = has_shape(case, evaluation, split)
        expected = evaluation.feasible and shaped
        assert obeys(problem, in_order(parts, case.devices, evaluation)) == expected, case.seed
        good += expected
        bad += not expected
        misshapen += evaluation.feasible and not shaped
    assert min(good, bad) > count // 10
    assert split == "free" or misshapen > count // 100


def halves(graph: Graph, devices: Devices, goal: Goal) -> list[bool]:
    """For a path of nodes 0 to 3: do 0 1 | 2 3, 2 3 | 0 1 and 0 3 | 1 2 obey, on the first kind?"""
    problem = contract(graph, devices, goal)
    splits = [([0, 1], [2, 3]), ([2, 3], [0, 1]), ([0, 3], [1, 2])]
    return [obeys(problem, [Part(0, problem.member[nodes]) for nodes in pair]) for pair in splits]


def test_order_and_shape() -> None:
    """A chain goes forward only, a convex split does not return, a free one may do anything."""
    path = Graph.from_arrays({"accelerator": np.ones(4)}, [(0, 1), (1, 2), (2, 3)])
    two = Devices.accelerated(2)
    assert halves(path, two, Goal(split="chain")) == [True, False, False]
    assert halves(path, two, Goal(split="convex")) == [True, True, False]
    assert halves(path, two, Goal(split="free")) == [True, True, True]


def test_kinds_that_need_not_be_contiguous() -> None:
    """0 3 on a CPU and 1 2 on another one: convex only where CPUs need not be contiguous."""
    path = Graph.from_arrays({"cpu": np.ones(4)}, [(0, 1), (1, 2), (2, 3)])
    cpus = Devices((Devices.accelerated(1, cpus=2).kinds[1],))
    assert halves(path, cpus, Goal(split="convex")) == [True, True, False]
    assert halves(path, cpus, Goal(split="convex", contiguous_cpus=False)) == [True, True, True]


def test_the_backward_part_counts_on_request() -> None:
    """Backward 0 -> 1 -> 2 -> 3: their parts may be torn unless they are asked to be contiguous."""
    path = Graph.from_arrays({"accelerator": np.ones(4)}, [(0, 1), (1, 2), (2, 3)], backward=True)
    two = Devices.accelerated(2)
    assert halves(path, two, Goal(split="convex"))[2]
    assert not halves(path, two, Goal(split="convex", contiguous_backward=True))[2]


def test_counts_and_memory() -> None:
    """One device cannot hold two parts, and not more than its memory."""
    path = Graph.from_arrays({"accelerator": np.ones(4)}, [(0, 1), (1, 2), (2, 3)], size=1.0)
    free = Goal(split="free")
    assert halves(path, Devices.accelerated(1), free) == [False, False, False]
    assert halves(path, Devices.accelerated(2, memory=2.0), free) == [True, True, True]
    assert halves(path, Devices.accelerated(2, memory=1.5), free) == [False, False, False]
