"""A look over the border of a group bounds what begins there, and weights of transfers lose nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, Level
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.lattice import ideal_lattice
from partitioner.methods.dp.levels import LevelsTables, bound_ahead, looks_ahead, ways_in_group
from partitioner.methods.dp.levels_tables import Reached
from partitioner.problem.variants import PipelineProblem
from tests.methods.dp.pipeline_cases import problem_of
from tests.methods.slow_parameters import slow
from tests.random_pipelines import Case

SEEDS = [range(4), slow(range(4, 20))]
DEVICES = Devices((DeviceKind("gpu", 4),), levels=(Level("server", {"gpu": 2}, 3.0),))


def some_problem(seed: int) -> PipelineProblem:
    """Eight nodes with random times, edges and costs on two servers of two."""
    rng = np.random.default_rng([seed, 8])
    edges = [(v, w) for w in range(8) for v in range(w) if rng.random() < 0.3]
    graph = Graph.from_arrays({"gpu": rng.uniform(1, 5, 8)}, edges, cost=rng.uniform(0, 1, len(edges)))
    return problem_of(Case(graph, DEVICES))


def searches(seeds: range) -> Iterator[Reached]:
    """Searches with tight and loose thresholds, that have not begun."""
    for seed in seeds:
        problem = some_problem(seed)
        lattice = ideal_lattice(problem, 10_000, 100_000)
        assert lattice is not None
        tables = LevelsTables(problem, relax(problem), lattice)
        for threshold in (6.0, 8.0, 10.0, 14.0):
            yield tables.filling(threshold, 0.0).chain.reached


def least(reached: Reached, low: int, high: int, position: int) -> float:
    """The value of what is between two ideals on the group at a position; infinity above the threshold."""
    return min((end.value for end in ways_in_group(reached, low, high, position, 0)), default=np.inf)


def values(reached: Reached) -> list[float]:
    """The value of the best pipeline whose first group ends at an ideal, for each but the last."""
    high = reached.stretch.high
    return [max(least(reached, 0, i, 0), least(reached, i, high, 1)) for i in range(1, high)]


@pytest.mark.parametrize("seeds", SEEDS)
def test_no_pipeline_with_a_border_is_better_than_the_bound(seeds: range) -> None:
    above = 0
    for reached in searches(seeds):
        assert looks_ahead(reached)
        assert reached.target.after is not None
        for low, value in enumerate(values(reached), 1):
            bound = bound_ahead(reached, low, 1)
            assert bound <= value * (1 + 1e-9)
            above += bound > reached.target.after[1, low]
    assert above > len(seeds) // 2


@pytest.mark.parametrize("seeds", SEEDS)
def test_weights_of_transfers_prune_only_what_is_above_the_threshold(seeds: range) -> None:
    finite = 0
    for reached in searches(seeds):
        found = values(reached)
        price, reached.segments.weights.price = reached.segments.weights.price, 0.0
        assert values(reached) == pytest.approx(found)
        reached.segments.weights.price = price
        finite += int(np.isfinite(found).sum())
    assert finite > 2.5 * len(seeds)
