"""A search of clusters costs what one of their supernodes costs, and holds both placements."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.local_search.arrays import BARRED, HELD, LOAD, VIOLATION, AnnealingControl
from partitioner.methods.local_search.kernel import anneal
from partitioner.methods.local_search.layouts import Layout, PartLayout, StageLayout
from partitioner.methods.local_search.model import new_state
from partitioner.methods.local_search.rounds import MIXES, Population, common_clusters, merged
from partitioner.methods.local_search.tracking import refresh
from partitioner.methods.places import device_kinds
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.contract import Goal
from partitioner.problem.variants import ChainProblem, PartsProblem
from tests.measures import MEASURES
from tests.methods.local_search.cases import problems
from tests.methods.slow_parameters import slow

SHAPES = [
    ("throughput", "free"),
    ("throughput", "convex"),
    ("gpipe", "free"),
    ("throughput", "chain"),
    ("gpipe", "chain"),
]


def layouts(shape: tuple[str, str], seeds: range) -> list[tuple[int, Layout]]:
    goal = Goal(MEASURES[shape[0]], shape[1])
    if shape[1] == "chain":
        chains = problems(ChainProblem, seeds, goal)
        return [(seed, StageLayout(problem, device_kinds(problem))) for seed, problem in chains]
    return [(seed, PartLayout(problem)) for seed, problem in problems(PartsProblem, seeds, goal)]


def sums(model: object, place: Ints) -> Floats:
    """The loads, memory and transfers of every device."""
    state = new_state(model)  # type: ignore[arg-type]
    state.place[:] = place
    refresh(model, state)
    return np.asarray(state.ledger)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seeds", [range(40), slow(range(1000, 1600))])
def test_clusters_cost_what_their_supernodes_cost(shape: tuple[str, str], seeds: range) -> None:
    """Both parents have the same sums in the smaller search, which has fewer supernodes unless all differ."""
    smaller = 0
    for seed, layout in layouts(shape, seeds):
        random = np.random.default_rng(seed)
        parents = [layout.random_place(random) for _ in range(2)]
        cluster = common_clusters(layout.model, *parents)
        model = merged(layout.model, cluster)
        for place in parents:
            inner = np.empty(len(model.size), dtype=np.int64)
            inner[cluster] = place
            assert (inner[cluster] == place).all(), seed
            found, expected = sums(model, inner), sums(layout.model, place)
            columns = slice(HELD + 1)
            np.testing.assert_allclose(found[:, columns], expected[:, columns], 1e-9, 1e-9, err_msg=str(seed))
            assert ((found[:, BARRED] > 0) == (expected[:, BARRED] > 0)).all(), seed
        smaller += len(model.size) < layout.problem.n
    assert smaller > len(seeds) // 4


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_search_of_clusters_finds_is_true(shape: tuple[str, str]) -> None:
    """The best devices of a round have the shape of the split, and the value that they were given."""
    found = 0
    for seed, layout in layouts(shape, range(40)):
        random = np.random.default_rng(seed)
        first, second = (layout.random_place(random) for _ in range(2))
        cluster = common_clusters(layout.model, first, second)
        model = merged(layout.model, cluster)
        state = new_state(model)
        state.place[cluster] = first
        best = np.append(state.place, np.inf)
        bits = np.array([seed + 1], dtype=np.uint64)
        anneal(model, state, AnnealingControl(0.3, 0.3, 0.01, 4), MIXES[0], bits, best, 3000)
        if np.isfinite(best[-1]):
            place = best[:-1].astype(np.int64)[cluster]
            ledger = sums(layout.model, place)
            passes = ledger[:, LOAD : LOAD + layout.model.passes]
            assert layout.has_shape(place) and ledger[:, VIOLATION].max() <= 1e-9, seed
            assert best[-1] == pytest.approx(passes.max(axis=0).sum(), rel=1e-9, abs=1e-9), seed
            found += 1
    assert found > 10


def test_a_population_keeps_the_best_of_different_values() -> None:
    population, places = Population(3), np.eye(5, dtype=np.int64)
    for value, place in zip((5.0, 4.0, 4.0 * (1 + 1e-12), 3.0, np.inf), places, strict=True):
        population.add(value, place)
    assert population.is_full and [value for value, _ in population.members] == [3.0, 4.0, 5.0]
    population.add(1.0, places[0])
    assert [value for value, _ in population.members] == [1.0, 3.0, 4.0]
    first, second = population.draw(np.random.default_rng(0))
    assert first is not second
