"""An explanation of samples in flight has the numbers of a recomputation, and of separate solves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from tests.analysis.explanations.numbers import check_numbers
from tests.analysis.explanations.recomputed import costs, kind_of
from tests.oracle_capacity import with_cache
from tests.random_workloads import uneven_workload

LLAMA = Path(__file__).parents[3] / "instances" / "serving" / "llama-3-8b.json"


def rooms(graph: pt.Graph, devices: pt.Devices, placement: Mapping[Any, str]) -> dict[str, float]:
    """How many samples every device has room for, by a loop over its nodes."""
    cache = dict.fromkeys(placement.values(), 0.0)
    for node, kept in zip(graph.ids, graph.cache.tolist(), strict=True):
        cache[placement[node]] += kept
    held = {name: cost.memory for name, cost in costs(graph, devices, placement).items()}
    return {
        name: max(0, math.floor(((kind_of(devices, name).memory or 0.0) - held[name]) / kept + 1e-9))
        for name, kept in cache.items()
        if kept
    }


def explained(seed: int, split: str, slowdown: float | None = None) -> str:
    """Compare the explanation of a random plan; return the verdicts on its moves."""
    rng = np.random.default_rng(seed)
    graph, devices = with_cache(*uneven_workload(rng, 8), rng)
    try:
        plan = pt.solve(graph, devices, "capacity", split=split, max_slowdown=slowdown)
    except (pt.InfeasibleError, pt.WorkloadError, KeyError):
        return "no plan"
    found = pt.explain(graph, devices, plan, what_if=())
    known, one = rooms(graph, devices, plan.placement), found.bottlenecks[0]
    assert found.value == found.bound == plan.value == min(known.values())
    assert one.room is not None and one.room.capacity == known[one.device] == plan.value
    kept = [graph.cache[graph.position[node]] for node in graph.ids if plan.placement[node] == one.device]
    assert one.room.cache == pytest.approx(sum(kept)) and one.room.node_count == np.count_nonzero(kept)
    held = costs(graph, devices, plan.placement)[one.device].memory
    assert one.room.held == pytest.approx(held) and one.room.limit == kind_of(devices, one.device).memory
    longest = plan.statistics.get("max_time_per_sample", math.inf)
    for move in found.moves:
        placement = {**plan.placement, **dict.fromkeys(move.nodes, move.device)}
        value = min(rooms(graph, devices, placement).values(), default=math.inf)
        assert move.value == value
        assert (move.verdict == "slower") == (value <= plan.value)
        late = max(cost.load for cost in costs(graph, devices, placement).values()) > longest * (1 + 1e-9)
        assert move.verdict != "better" or not late
    assert all(move.verdict != "better" for move in found.moves)
    return " ".join(sorted({move.verdict for move in found.moves})) or "no move"


@pytest.mark.parametrize("slowdown", [None, 1.0, 1.2])
def test_random_chains(slowdown: float | None) -> None:
    """Moves that would make more room are refused by the limit of the time, if there is one."""
    verdicts = [explained(seed, "chain", slowdown) for seed in range(40)]
    assert verdicts.count("no plan") < 30 and any("slower" in verdict for verdict in verdicts)
    assert any("rule" in verdict for verdict in verdicts) == bool(slowdown)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["convex", "free"])
def test_other_splits(split: str) -> None:
    assert any("slower" in explained(seed, split) for seed in range(20))


def test_sentences_of_a_server() -> None:
    """Every number of the text is recomputed; changes equal separate calls of `solve`."""
    workload = pt.load(LLAMA)
    graph, devices = workload.graph, workload.devices
    plan = pt.solve(graph, devices, "capacity")
    sections = pt.explain(graph, devices, plan, time_limit=None).sections()
    known = rooms(graph, devices, plan.placement)
    least, time = min(known.values()), max(load.load for load in plan.devices)
    check_numbers(sections["Value"][0], [least])
    check_numbers(sections["Value"][1], [time])
    name = next(load.name for load in plan.devices if load.name in sections["Bottleneck"][0])
    check_numbers(
        sections["Bottleneck"][0].replace(f"({name})", ""),
        [plan.stages.index(name) + 1, len(plan.stages), known[name]],
    )
    bought = sections["What a change would buy"]
    more = tuple(replace(each, memory=each.memory * 1.1) for each in devices.kinds if each.memory is not None)
    roomier = pt.solve(graph, replace(devices, kinds=more), "capacity")
    quicker = pt.solve(replace(graph, cost=graph.cost / 2), devices, "capacity")
    assert roomier.value > plan.value == quicker.value
    check_numbers(bought[1], [0.1, roomier.value, roomier.value / plan.value - 1, roomier.bottleneck.load])
    check_numbers(bought[3], [quicker.value, quicker.bottleneck.load])
    assert "as many as now" in bought[3] and "no limit" in bought[2]


def test_difference_of_two_plans() -> None:
    workload = pt.load(LLAMA)
    most = pt.solve(workload.graph, workload.devices, "capacity")
    plans = [most, pt.solve(workload.graph, workload.devices, "capacity", max_slowdown=1.0)]
    found = pt.diff(workload.graph, workload.devices, *plans)
    assert found.value == (plans[0].value, plans[1].value)
    first = found.summary(200).splitlines()[0]
    check_numbers(first, [plans[0].value, plans[1].value, 1 - plans[1].value / plans[0].value])
    assert "fewer" in first
