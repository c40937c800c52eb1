"""Without an execution order the makespan is that of a simulator in steps; critical paths hold together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Evaluation, Graph, Transfers, evaluate
from tests.evaluation.event_queue import start_times
from tests.evaluation.stepped import Stepped


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


def random_case(rng: np.random.Generator) -> Stepped:
    """Few nodes in any order of the file, whole times and costs, mostly small, so that much ties."""
    n, count = int(rng.integers(1, 10)), int(rng.integers(1, 4))
    place = rng.permutation(n)
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.3]
    pairs += [pairs[i] for i in rng.integers(len(pairs), size=2)] if pairs and rng.random() < 0.3 else []
    edges = [(int(place[u]), int(place[v])) for u, v in pairs]
    own = rng.integers(0, 4, n)
    cost = [int(rng.integers(0, 4)) if rng.random() < 0.2 else int(own[u]) for u, _ in edges]
    slope, intercept = rng.integers(0, 3, (count, count)), rng.choice([0, 0, 1], (count, count))
    return Stepped(
        time=rng.integers(0, 4, n).tolist(),
        edges=edges,
        cost=cost,
        home=rng.integers(0, count, n).tolist(),
        slope=slope.tolist(),
        intercept=intercept.tolist(),
        contention=bool(rng.random() < 0.6),
    )


def without_repeats(case: Stepped) -> Stepped:
    """The case with each edge of the same cost once: a graph takes repeated ones for one tensor."""
    tensors = dict.fromkeys(zip(case.edges, case.cost, strict=True))
    case.edges, case.cost = [edge for edge, _ in tensors], [cost for _, cost in tensors]
    return case


def evaluation(case: Stepped, order: list[Any] | None = None) -> Evaluation:
    devices = Devices((DeviceKind("gpu", len(case.slope)),))
    transfers = Transfers(case.slope, case.intercept, case.contention)
    placement = {v: f"gpu{d}" for v, d in enumerate(case.home)}
    graph = Graph.from_arrays({"gpu": case.time}, case.edges, np.array(case.cost, dtype=float))
    return evaluate(graph, devices, placement, "makespan", transfers=transfers, execution_order=order)


def check_critical_path(found: Evaluation, case: Stepped) -> None:
    """Each entry starts when its device is free, or when a tensor of the one before it arrives."""
    assert found.schedule is not None
    entries, path = found.schedule.entries, found.schedule.critical_path
    runs = [entries[i] for i in path]
    assert runs[0].start == 0 and runs[-1].finish == found.value == max(run.finish for run in entries)
    for before, after in pairwise(runs):
        assert before.finish <= after.start
        if before.device == after.device:
            assert before.finish == after.start
            continue
        u, v = int(before.nodes[0]), int(after.nodes[0])
        a, b = case.home[u], case.home[v]
        costs = [c for c, edge in zip(case.cost, case.edges, strict=True) if edge == (u, v)]
        takes = [case.slope[a][b] * c + case.intercept[a][b] for c in costs]
        assert any(after.start >= before.finish + t for t in takes)
        assert case.contention or after.start == before.finish + max(takes)
    assert all(run.waits_for is None or run.waits_for < i for i, run in enumerate(entries))
    assert [run.start for run in entries] == sorted(run.start for run in entries)


@pytest.mark.parametrize(("seed", "count"), [(0, 100), *(slow(seed, 500) for seed in range(4))])
def test_what_is_ready_first_runs_first(seed: int, count: int) -> None:
    """Start by start, on random placements, half of them with contention."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        case = without_repeats(random_case(rng))
        found, expected = evaluation(case), case.run()
        assert found.schedule is not None
        assert {run.nodes[0]: run.start for run in found.schedule.entries} == expected
        assert found.value == max(start + case.time[v] for v, start in expected.items())
        check_critical_path(found, case)


@pytest.mark.parametrize(("seed", "count"), [(10, 200), *(slow(seed, 1000) for seed in range(10, 20))])
def test_the_rule_among_operators_that_tie_or_take_no_time(seed: int, count: int) -> None:
    """Against an event queue, on cases in which most times and costs are 0 or 1."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        case = random_case(rng)
        case.time = rng.choice([0, 0, 1, 1, 2], len(case.time)).tolist()
        case.cost = [c if rng.random() < 0.5 else min(c, 1) for c in case.cost]
        found = evaluation(without_repeats(case))
        assert found.schedule is not None
        assert {run.nodes[0]: run.start for run in found.schedule.entries} == start_times(case)


@pytest.mark.parametrize(("seed", "count"), [(0, 60), slow(0, 300), slow(1, 300)])
def test_orders_are_kept_and_their_critical_paths_hold_together(seed: int, count: int) -> None:
    """Every device runs its own in the order given; without contention its own order costs no time."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        case = random_case(rng)
        eager = evaluation(case)
        assert eager.schedule is not None
        order = [run.nodes[0] for run in eager.schedule.entries]
        found = evaluation(case, order)
        assert found.schedule is not None
        check_critical_path(found, case)
        assert case.contention or found.value == eager.value
        place = {node: i for i, node in enumerate(order)}
        for d in {run.device for run in found.schedule.entries}:
            mine = [place[run.nodes[0]] for run in found.schedule.entries if run.device == d]
            assert mine == sorted(mine)
