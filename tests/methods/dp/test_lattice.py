"""The lattice holds every ideal once, each with all its covers, and gives up where it is told to."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.dp import lattice as ideals
from partitioner.methods.dp.lattice import Lattice, chain_lattice, ideal_lattice
from partitioner.problem.contract import contract
from partitioner.problem.problem import Problem

PLENTY = 10**6


def random_problem(seed: int, most: int = 9) -> Problem:
    """A random precedence over up to nine supernodes with time (none is free)."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most + 1))
    edges = [(u, v) for u, v in itertools.combinations(range(n), 2) if rng.random() < rng.choice([0.1, 0.4])]
    return contract(Graph.from_arrays({"gpu": np.ones(n)}, edges, 1.0), gpus())


def gpus() -> Devices:
    """Two devices without a memory limit."""
    from partitioner import DeviceKind

    return Devices((DeviceKind("gpu", 2),))


def every_ideal(problem: Problem) -> set[frozenset[int]]:
    """All downward closed sets, by trying all sets."""
    sets = (
        frozenset(subset)
        for size in range(problem.n + 1)
        for subset in itertools.combinations(range(problem.n), size)
    )
    return {s for s in sets if all(set(problem.predecessors.row(v).tolist()) <= s for v in s)}


def as_sets(lattice: Lattice) -> list[frozenset[int]]:
    """The ideals of a lattice as sets, by number."""
    return [frozenset(lattice.members(i).tolist()) for i in range(lattice.size)]


@pytest.mark.parametrize("seed", range(60))
def test_all_ideals_and_all_covers(seed: int) -> None:
    """The ideals are those of the definition; the covers of each are all ideals with one node more."""
    problem = random_problem(seed)
    lattice = ideal_lattice(problem, PLENTY, PLENTY)
    assert lattice is not None
    ideals = as_sets(lattice)
    assert set(ideals) == every_ideal(problem)
    assert len(ideals) == len(set(ideals))
    for number, ideal in enumerate(ideals):
        span = slice(lattice.start[number], lattice.start[number + 1])
        nodes, targets = lattice.node[span].tolist(), lattice.to[span].tolist()
        assert nodes == sorted(nodes)
        assert [ideals[t] for t in targets] == [ideal | {v} for v in nodes]
        larger = {v for v in range(problem.n) if v not in ideal and ideal | {v} in set(ideals)}
        assert set(nodes) == larger
        assert all(t > number for t in targets)


@pytest.mark.parametrize("seed", range(20))
def test_subsets_come_first_and_ideals_with_more_of_higher_rank_next(seed: int) -> None:
    """The dynamic program relies on the first, and finds most of what it reads near to it by the second."""
    lattice = ideal_lattice(random_problem(seed), PLENTY, PLENTY)
    assert lattice is not None
    ideals = [sorted(ideal) for ideal in as_sets(lattice)]
    for (i, smaller), (j, larger) in itertools.combinations(enumerate(ideals), 2):
        assert not set(larger) <= set(smaller), (i, j)
    for i, ideal in enumerate(ideals):
        below = [j for j, other in enumerate(ideals) if other[: len(ideal)] == ideal]
        assert below == list(range(i, i + len(below)))


@pytest.mark.parametrize(("branches", "depth"), [(1, 5), (2, 3), (3, 4), (5, 2)])
def test_parallel_chains_have_the_closed_form(branches: int, depth: int) -> None:
    """Between two joints, b chains of d nodes have (d + 1)^b ideals, plus one for each joint."""
    edges, n = [], 1
    ends = []
    for _ in range(branches):
        chain = [0, *range(n, n + depth)]
        edges += list(itertools.pairwise(chain))
        ends.append(chain[-1])
        n += depth
    edges += [(end, n) for end in ends]
    problem = contract(Graph.from_arrays({"gpu": np.ones(n + 1)}, edges, 1.0), gpus())
    lattice = ideal_lattice(problem, PLENTY, PLENTY)
    assert lattice is not None
    assert lattice.size == (depth + 1) ** branches + 2


def test_gives_up_at_the_limits() -> None:
    """An antichain of 12 has 4,096 ideals and 24,576 covers: one fewer of either is too few."""
    problem = contract(Graph.from_arrays({"gpu": np.ones(12)}), gpus())
    assert ideal_lattice(problem, 4096, 24_576) is not None
    assert ideal_lattice(problem, 4095, 24_576) is None
    assert ideal_lattice(problem, 4096, 24_575) is None


def test_a_linear_order_has_its_prefixes() -> None:
    """The lattice of an order is the chain of its prefixes, also where numbers do not ascend."""
    lattice = chain_lattice(np.array([2, 0, 1]))
    assert as_sets(lattice) == [frozenset(), {2}, {0, 2}, {0, 1, 2}]
    assert lattice.linear
    assert lattice.difference(3, 1).tolist() == [0, 1]


def test_the_enumeration_is_given_up_when_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it has is asked between slices; slices of any size give the same lattice."""
    problem = random_problem(3)
    whole = ideal_lattice(problem, PLENTY, PLENTY)
    assert whole is not None and whole.size > 2
    monkeypatch.setattr(ideals, "SLICE", 1)
    asked = iter(range(PLENTY))
    sliced = ideal_lattice(problem, PLENTY, PLENTY, lambda: next(asked) < 0)
    assert sliced is not None and next(asked) >= whole.size - 1
    assert all(np.array_equal(getattr(whole, each), getattr(sliced, each)) for each in Lattice._fields)
    assert ideal_lattice(problem, PLENTY, PLENTY, lambda: True) is None
