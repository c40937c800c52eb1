"""What the groups that are left need at least is a bound, and complements are found in the turned lattice."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.lattice import Lattice, ideal_lattice
from partitioner.methods.dp.levels_model import layout_of
from partitioner.methods.dp.levels_tables import Remainders
from partitioner.methods.dp.pipeline_links import solve_pipeline
from partitioner.methods.method import Settings
from partitioner.problem.variants import PipelineProblem
from tests.methods.dp.pipeline_cases import problem_of
from tests.random_pipelines import random_case


def some_problem(seed: int) -> tuple[PipelineProblem, Lattice]:
    """A random problem with levels and its ideals."""
    problem = problem_of(random_case(np.random.default_rng([seed, 5]), ["levels"], 8))
    lattice = ideal_lattice(problem, 10_000, 100_000)
    assert lattice is not None
    return problem, lattice


def test_an_ideal_and_its_complement_hold_all() -> None:
    for seed in range(10):
        problem, lattice = some_problem(seed)
        after = Remainders(problem, relax(problem), lattice, layout_of(problem))
        for ideal in range(lattice.size):
            left = problem.n - 1 - after.tables.lattice.members(int(after.complement[ideal]))
            both = np.concatenate((lattice.members(ideal), left))
            assert sorted(both.tolist()) == list(range(problem.n))


def test_all_groups_for_the_empty_ideal_need_the_optimum_on_equal_links() -> None:
    dearer = 0
    for seed in range(20):
        problem, lattice = some_problem(seed)
        flat = solve_pipeline(problem.without_levels, Settings())
        if flat.parts is None:
            continue
        after = Remainders(problem, relax(problem), lattice, layout_of(problem))
        least = after.by_groups(after.outside(1e200, 1e200, 0.0, summed=False))
        assert np.isclose(least[-1, 0], flat.value)
        assert (np.diff(least, axis=0) <= 0).all()
        assert (least[:, -1] == 0).all()
        dearer += least[1, 0] > least[-1, 0]
    assert dearer > 3
