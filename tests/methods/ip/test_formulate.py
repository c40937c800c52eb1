"""The program says what the definitions say: its optimum is the best of all placements."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.base.registry import imported
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.ip.formulate import formulate
from partitioner.methods.ip.splits import Task
from partitioner.methods.loads import value_of
from partitioner.methods.places import parts_at, places_of
from partitioner.methods.rules import obeys
from partitioner.methods.solvers.backends.backend import SolverLimits
from partitioner.methods.solvers.backends.catalogue import BACKENDS
from partitioner.methods.solvers.program import Program
from partitioner.problem.variants import PartsProblem
from tests.contracted import of_type
from tests.methods.ip.backends import EACH_BACKEND
from tests.methods.ip.cases import best_value, problem_of
from tests.methods.slow_parameters import slow
from tests.random_problems import cases


def solved(task: Task, backend: str) -> tuple[str, float, float]:
    """Why the backend stopped, the value of its parts (infinity without), and its bound."""
    form = formulate(task)
    answer = imported(BACKENDS[backend].place)(form.program, SolverLimits(), lambda values, bound: None)
    bound = answer.bound * task.scale
    if answer.values is None:
        return answer.stop, np.inf, bound
    parts = form.solution(answer.values)
    assert obeys(task.problem, parts)
    return answer.stop, value_of(task.problem, parts), bound


@pytest.mark.parametrize("count", [8, slow(20)])
@pytest.mark.parametrize("backend", EACH_BACKEND)
@pytest.mark.parametrize("split", ["free", "convex"])
def test_the_optimum_is_that_of_all_placements(backend: str, split: str, count: int) -> None:
    """Without a cutoff, with one that just lets the optimum pass, and with one that does not."""
    feasible = 0
    for case in cases(40_000, count, most_nodes=5):
        problem = of_type(PartsProblem, case.problem(split))
        best = best_value(problem)
        bound = relax(problem).bound
        if np.isinf(bound):
            continue
        stop, value, proven = solved(Task(problem, np.inf, bound), backend)
        where = f"seed {case.seed}"
        assert value == pytest.approx(best, rel=1e-6), where
        assert proven <= best * (1 + 1e-6) or np.isinf(best), where
        if np.isinf(best):
            assert stop == "infeasible", where
        elif best > 0:
            feasible += 1
            assert solved(Task(problem, best * (1 + 1e-4), bound), backend)[1] == pytest.approx(best)
            assert solved(Task(problem, best * (1 - 1e-4), 0.0), backend)[0] == "infeasible", where
    assert feasible > count // 4


def test_equal_devices_are_told_apart_by_one_order_only() -> None:
    """On four equal devices the heaviest supernode may be on one, the next on two, and so on."""
    graph = Graph.from_arrays({"accelerator": [1.0, 4.0, 2.0, 3.0]}, [(0, 1), (1, 2), (2, 3)], 1.0)
    may = Task(problem_of(graph, Devices.accelerated(4)), np.inf, 0.0).open()
    assert may.sum(axis=1).tolist() == [4, 1, 3, 2]


def test_a_cutoff_fixes_what_exceeds_it() -> None:
    """A node too slow for the CPU leaves it; a net too dear to be cut keeps its pins together."""
    graph = Graph.from_arrays(
        {"accelerator": [1.0, 1.0, 1.0], "cpu": [9.0, 2.0, 2.0]}, [(0, 1), (1, 2)], [8.0, 1.0]
    )
    task = Task(problem_of(graph, Devices.accelerated(2, cpus=1)), 5.0, 0.0)
    assert task.whole().tolist() == [[True, False], [False, False]]
    assert not task.open()[0, 2]
    assert formulate(task).program.columns < formulate(Task(task.problem, np.inf, 0.0)).program.columns


def test_homes_and_parts_are_inverse() -> None:
    """Parts move to the first devices of their kind and keep their supernodes."""
    graph = Graph.from_arrays({"accelerator": [1.0] * 4, "cpu": [1.0] * 4}, [(0, 1)], 1.0)
    problem = problem_of(graph, Devices.accelerated(3, cpus=2))
    home = places_of(problem, parts_at(problem, np.array([2, 1, 4, 1])))
    assert home.tolist() == [1, 0, 3, 0]


def test_a_cover_is_cut_off() -> None:
    """Supernodes that were refused together are not proposed together again, on any equal device."""
    graph = Graph.from_arrays({"accelerator": [1.0] * 3}, [(0, 1), (1, 2)], 1.0)
    problem = problem_of(graph, Devices.accelerated(2))
    assert solved(Task(problem, np.inf, 0.0), "scip")[1] == 3.0
    everything = (0, np.arange(3))
    assert solved(Task(problem, np.inf, 0.0, (everything,)), "scip")[1] == 3.0
    pairs = tuple((0, np.array(pair)) for pair in ((0, 1), (1, 2), (0, 2)))
    assert solved(Task(problem, np.inf, 0.0, pairs), "scip")[0] == "infeasible"


def test_rows_of_a_program_are_sparse_rows() -> None:
    """Every column is in range and no row names a column twice."""
    graph = Graph.from_arrays({"accelerator": [1.0, 2.0, 3.0]}, [(0, 1), (0, 2)], 1.0)
    program: Program = formulate(Task(problem_of(graph, Devices.accelerated(2)), 9.0, 0.0)).program
    assert program.entry.start[-1] == len(program.entry.items) == len(program.factor)
    assert program.entry.items.max() < program.columns
    pairs = set(zip(program.entry.owners().tolist(), program.entry.items.tolist(), strict=True))
    assert len(pairs) == len(program.factor)
