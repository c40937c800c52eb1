"""Whatever the search returns obeys the rules, is worth what it says, and is no worse than its start."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.loads import value_of
from partitioner.methods.local_search.kernel import anneal, refresh
from partitioner.methods.local_search.model import SCORE, AnnealingControl, new_state
from partitioner.methods.local_search.rounds import EFFORT, PartLayout
from partitioner.methods.local_search.search import improve
from partitioner.methods.method import Part, Settings
from partitioner.methods.places import parts_at, places_of
from partitioner.methods.rules import obeys
from partitioner.problem.goal import Goal
from partitioner.problem.variants import PartsProblem
from tests.measures import MEASURES
from tests.methods.local_search.cases import problems

OBJECTIVES, SPLITS = ("throughput", "gpipe"), ("free", "convex")
SHAPES = [(objective, split) for objective in OBJECTIVES for split in SPLITS]
MOVES = 3000


def random_parts(problem: PartsProblem, seed: int) -> list[Part]:
    """Supernodes on random devices, or all on one, whatever the limits say."""
    if seed % 2:
        return parts_at(problem, np.full(problem.n, seed % problem.count.sum()))
    place = np.random.default_rng(seed).integers(problem.count.sum(), size=problem.n)
    return parts_at(problem, place)


@pytest.mark.parametrize(("objective", "split"), SHAPES)
def test_loads_are_kept_up_to_date(objective: str, split: str) -> None:
    """After thousands of moves the loads are those computed anew, and the best is worth what is said."""
    found = 0
    for seed, problem in problems(PartsProblem, range(0, 40), Goal(MEASURES[objective], split)):
        model = PartLayout(problem).model
        state = new_state(model)
        best = np.full(problem.n + 1, np.inf)
        bits = np.array([seed + 1], dtype=np.uint64)
        anneal(model, state, AnnealingControl(0.3, 0.3, 0.01, 4), EFFORT.mixes[0], bits, best, MOVES)
        ledger, inside = state.ledger.copy(), state.inside.copy()
        refresh(model, state)
        assert np.allclose(ledger[:, :SCORE], state.ledger[:, :SCORE], rtol=1e-9, atol=1e-9), seed
        assert np.array_equal(inside, state.inside), seed
        if np.isfinite(best[-1]):
            parts = parts_at(problem, best[:-1].astype(np.int64))
            assert obeys(problem, parts), seed
            assert best[-1] == pytest.approx(value_of(problem, parts), rel=1e-9, abs=1e-9), seed
            found += 1
    assert found > 10


@pytest.mark.parametrize(("objective", "split"), SHAPES)
def test_never_worse_than_the_start_nor_below_the_bound(objective: str, split: str) -> None:
    """From any parts, feasible or not: what comes out obeys the rules, and the value is its own."""
    feasible = repaired = 0
    for seed, problem in problems(PartsProblem, range(1000, 1025), Goal(MEASURES[objective], split)):
        start = random_parts(problem, seed)
        found = improve(problem, start, Settings(), 60.0, seed, moves=MOVES)
        good = obeys(problem, start)
        feasible += good
        repaired += found is not None and not good
        assert found is not None or not good, seed
        if found is not None:
            value, parts = found
            assert obeys(problem, parts), seed
            assert value == value_of(problem, parts), seed
            assert not good or value <= value_of(problem, start), seed
            assert value >= relax(problem).bound * (1 - 1e-9), seed
    assert repaired > 0
    assert feasible > 5


def test_same_seed_and_moves_same_parts() -> None:
    """With the limit in moves everything hangs on the seed."""
    for seed, problem in problems(PartsProblem, range(2000, 2015), Goal(split="free")):
        runs = [improve(problem, None, Settings(), 60.0, seed, moves=MOVES) for _ in range(2)]
        assert (runs[0] is None) == (runs[1] is None)
        if runs[0] is not None and runs[1] is not None:
            first, second = (places_of(problem, parts) for _, parts in (runs[0], runs[1]))
            assert np.array_equal(first, second), seed


def test_the_floor_ends_the_search() -> None:
    """Nothing is done once the start is good enough."""
    for seed, problem in problems(PartsProblem, range(3000, 3015), Goal(split="free")):
        start = random_parts(problem, seed)
        if obeys(problem, start):
            value = value_of(problem, start)
            found = improve(problem, start, Settings(), 60.0, seed, floor=value)
            assert found is not None
            assert found[0] <= value
