"""A search of clusters costs what one of their supernodes costs, and holds both placements."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.loads import value_of
from partitioner.methods.local_search.kernel import anneal, refresh
from partitioner.methods.local_search.model import (
    BARRED,
    HELD,
    LOAD,
    SCORE,
    VIOLATION,
    AnnealingControl,
    new_state,
)
from partitioner.methods.local_search.rounds import (
    EFFORT,
    Layout,
    LocalSearch,
    PartLayout,
    Population,
    StageLayout,
    common_clusters,
    merged,
)
from partitioner.methods.places import device_kinds, parts_on
from partitioner.methods.rules import obeys
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.goal import Goal
from partitioner.problem.variants import ChainProblem, PartsProblem
from tests.contracted import contract_to
from tests.measures import MEASURES
from tests.methods.local_search.cases import problems
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value
from tests.random_workloads import fitted, uneven_workload

MOVES = 3000


def shuffled(problem: ChainProblem, seed: int) -> StageLayout:
    """Stages on the devices in a random order of their kinds."""
    return StageLayout(problem, np.random.default_rng(seed).permutation(device_kinds(problem)))


@pytest.mark.parametrize("objective", ["throughput", "gpipe"])
def test_stages_stay_ordered_and_loads_up_to_date(objective: str) -> None:
    """After thousands of moves no edge leads back, the loads are those computed anew, the best is true."""
    found = 0
    for seed, problem in problems(ChainProblem, range(40), Goal(MEASURES[objective], "chain"), 12, 4):
        layout = shuffled(problem, seed)
        state, best = new_state(layout.model), np.full(problem.n + 1, np.inf)
        state.place[:] = layout.random_place(np.random.default_rng(seed))
        assert layout.has_shape(state.place), seed
        bits = np.array([seed + 1], dtype=np.uint64)
        anneal(layout.model, state, AnnealingControl(0.3, 0.3, 0.01, 4), EFFORT.mixes[0], bits, best, MOVES)
        assert layout.has_shape(state.place), seed
        ledger = state.ledger.copy()
        refresh(layout.model, state)
        assert np.allclose(ledger[:, :SCORE], state.ledger[:, :SCORE], rtol=1e-9, atol=1e-9), seed
        if np.isfinite(best[-1]):
            stages = parts_on(layout.kind, best[:-1].astype(np.int64))
            assert obeys(problem, stages), seed
            assert best[-1] == pytest.approx(value_of(problem, stages), rel=1e-9, abs=1e-9), seed
            found += 1
    assert found > 10


def test_it_finds_most_optimal_chains_and_nothing_better() -> None:
    """With one kind of device the order of the kinds is no matter, and small graphs are solved."""
    optimal = compared = 0
    for seed in range(60):
        graph, devices = uneven_workload(np.random.default_rng(seed), 9, 3)
        if sum(kind.count > 0 for kind in devices.kinds) > 1:
            continue
        best = best_chain_value(graph, devices)
        if best is None:
            continue
        problem = contract_to(ChainProblem, fitted(graph, devices), devices)
        search = LocalSearch(StageLayout(problem, device_kinds(problem)), seed)
        search.run(lambda: True, 60_000)
        assert search.value >= best * (1 - 1e-9), seed
        compared += 1
        optimal += search.value <= best * (1 + 1e-9)
    assert compared > 10 and optimal >= 0.9 * compared


def test_parts_and_their_devices_are_the_same_thing() -> None:
    """Both layouts give back the devices of parts; a chain that leads back has not the shape."""
    graph, devices = uneven_workload(np.random.default_rng(5), 12, 4)
    goals = (Goal(MEASURES["throughput"], "free"), Goal(MEASURES["throughput"], "chain"))
    parts = contract_to(PartsProblem, fitted(graph, devices), devices, goals[0])
    chain = contract_to(ChainProblem, fitted(graph, devices), devices, goals[1])
    for layout in (PartLayout(parts), StageLayout(chain, device_kinds(chain))):
        place = np.zeros(layout.problem.n, dtype=np.int64)
        assert layout.place_of(parts_on(layout.kind, place)).tolist() == place.tolist()
        assert layout.has_shape(place)
    edges = np.flatnonzero(np.diff(chain.successors.start))
    assert len(edges) and chain.count.sum() > 1
    back = np.zeros(chain.n, dtype=np.int64)
    back[edges[0]] = 1
    assert not StageLayout(chain, device_kinds(chain)).has_shape(back)


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
        anneal(model, state, AnnealingControl(0.3, 0.3, 0.01, 4), EFFORT.mixes[0], bits, best, 3000)
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
