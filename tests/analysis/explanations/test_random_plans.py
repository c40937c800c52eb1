"""Bottleneck, tensors, moves and memory of random plans are those of a recomputation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import partitioner as pt
from partitioner.analysis.explanations.borders import BorderMove
from tests.analysis.explanations.recomputed import cost_of, costs, kind_of
from tests.random_workloads import uneven_workload

SPLITS = ("chain", "convex", "free")


def explained(seed: int, split: str) -> str:
    """Compare the explanation of a random plan; return the verdicts on its moves."""
    rng = np.random.default_rng(seed)
    graph, devices = uneven_workload(rng, 8)
    try:
        plan = pt.solve(graph, devices, split=split)
    except (pt.InfeasibleError, pt.WorkloadError):
        return "no plan"
    found = pt.explain(graph, devices, plan, what_if=())
    known, one = costs(graph, devices, plan.placement), found.bottlenecks[0]
    cost = known[one.device]
    largest = max(each.load for each in known.values())
    assert found.value == pytest.approx(largest) and cost.load == pytest.approx(largest)
    parts = (one.compute, one.receiving, one.sending)
    assert parts == pytest.approx((cost.compute, cost.receiving, cost.sending))
    assert (one.node_count, one.tensor_count) == (len(cost.nodes), len(cost.tensors))
    assert [each.time for each in one.nodes] == pytest.approx(sorted(cost.nodes.values())[::-1][:5])
    assert [each.time for each in one.tensors] == pytest.approx(
        sorted((each.time for each in cost.tensors), reverse=True)[:5]
    )
    for use in found.memory:
        assert (use.held, use.limit) == (known[use.device].memory, kind_of(devices, use.device).memory)
    for move in found.moves:
        check_move(graph, devices, plan, move)
    assert all(move.verdict != "better" for move in found.moves) or plan.status != "optimal"
    return " ".join(sorted({move.verdict for move in found.moves})) or "no move"


def check_move(graph: pt.Graph, devices: pt.Devices, plan: pt.Plan, move: BorderMove) -> None:
    """The value after a move is that of the moved placement, and memory refuses it where it says so."""
    placement = {**plan.placement, **dict.fromkeys(move.nodes, move.device)}
    try:
        moved = costs(graph, devices, placement)
    except StopIteration:  # a device that does not exist
        raise AssertionError(move) from None
    value = max(each.load for each in moved.values())
    assert move.value == pytest.approx(value)
    over = {
        name: cost_of(graph, devices, placement, name).memory - (kind_of(devices, name).memory or math.inf)
        for name in moved
    }
    if move.verdict == "memory":
        assert move.excess == pytest.approx(max(over.values())) and over[move.fullest] > 0
        assert value < plan.value
    elif move.verdict == "slower":
        assert value >= plan.value * (1 - 1e-9)
    else:
        found = pt.evaluate(graph, devices, placement)
        kept = SPLITS.index(found.shape.name) <= SPLITS.index(plan.split)
        assert (bool(found.violations) or not kept) == (move.verdict == "rule")


@pytest.mark.parametrize("seed", range(40))
def test_chains(seed: int) -> None:
    explained(seed, "chain")


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS[1:])
@pytest.mark.parametrize("seed", range(6))
def test_other_splits(seed: int, split: str) -> None:
    explained(seed, split)
