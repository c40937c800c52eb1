"""A pipeline swept in two segments that meet at an ideal is the best one with a cut there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp._fill_core import sweep
from partitioner.methods.dp.lattice import ideal_lattice
from partitioner.methods.dp.pipeline_tables import PipelineFilling, PipelineTables
from tests.methods.dp.pipeline_cases import problem_of
from tests.methods.slow_parameters import slow
from tests.random_pipelines import random_case


def swept(tables: PipelineTables, cuts: list[int]) -> float:
    """The best value of pipelines with a cut at each of these ideals."""
    filling = PipelineFilling(tables, tables.spec(1e200, 1e200, 0.0, summed=False))
    for first, last in pairwise(cuts):
        opened = np.zeros(tables.problem.n, dtype=bool)
        opened[tables.lattice.difference(last, first)] = True
        spec = filling.spec._replace(open=opened, growth=np.full_like(filling.spec.growth, np.inf))
        table, states = filling.table.linked(), tables.space.states
        sweep(tables.lattice, tables.model, states, spec, table, first, last, 10**9)
        for other in range(1, last):
            filling.table.value[other] = np.inf
    return float(np.where(tables.space.final, filling.table.value[-1], np.inf).min())


@pytest.mark.parametrize("seeds", [range(20), slow(range(20, 60))])
def test_two_segments_are_a_pipeline_with_a_cut(seeds: range) -> None:
    """No cut does better than the whole, and the best cut as well, unless one stage is best."""
    several = 0
    for seed in seeds:
        case = random_case(np.random.default_rng(seed), ("kinds", "replicas", "memory"), 6, 4)
        problem = problem_of(case)
        lattice = ideal_lattice(problem, 1000, 10_000)
        assert lattice is not None
        tables, last = PipelineTables(problem, relax(problem), lattice), lattice.size - 1
        found = PipelineFilling(tables, tables.spec(1e200, 1e200, 0.0, summed=False))
        found.advance(10**9)
        best = found.best()
        whole = swept(tables, [0, last])
        values = [swept(tables, [0, middle, last]) for middle in range(1, last)]
        assert (best is None) == np.isinf(whole)
        if best is None:
            assert np.isinf(values).all()
            continue
        assert np.isclose(best[0], whole)
        assert min(values, default=whole) >= whole * (1 - 1e-12)
        if len(best[1]) > 1:
            several += 1
            assert np.isclose(min(values), whole)
    assert several > len(seeds) // 4
