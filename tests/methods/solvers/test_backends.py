"""Every backend that is present says why it stopped and what it holds, and what it lacks is said."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from partitioner import BackendUnavailable, Devices, Graph
from partitioner.base.registry import imported
from partitioner.methods.ip.formulate import formulate
from partitioner.methods.ip.splits import Task
from partitioner.methods.solvers.backends import catalogue, cbc
from partitioner.methods.solvers.backends.backend import Answer, SolverLimits
from partitioner.methods.solvers.backends.catalogue import BACKENDS, pick
from partitioner.methods.solvers.program import Builder, Program
from tests.methods.ip.backends import EACH_BACKEND
from tests.methods.ip.cases import PRESENT, hard_graph, problem_of

every_backend = pytest.mark.parametrize("name", PRESENT)


def hard_program(devices: int = 4, cutoff: float = np.inf) -> Program:
    return formulate(Task(problem_of(hard_graph(), Devices.accelerated(devices)), cutoff, 0.0)).program


def large_program() -> Program:
    """More columns and rows than Gurobi's free licence covers."""
    builder = Builder()
    columns = builder.variables(2001, 1.0, integer=True)
    builder.at_most(columns[:-1], columns[1:])
    return builder.program(columns[:1])


def run(name: str, program: Program, limits: SolverLimits) -> tuple[Answer, list[float]]:
    """The answer, and the bounds told before it."""
    bounds: list[float] = []
    solver = imported(BACKENDS[name].place)
    return solver(program, limits, lambda values, bound: bounds.append(bound)), bounds


@pytest.mark.parametrize("name", EACH_BACKEND)
def test_time_limit_with_a_solution(name: str) -> None:
    """Both axes: the limit stopped it, and it holds a solution and a bound below it."""
    program = hard_program(4)
    answer, told = run(name, program, SolverLimits(seconds=2.0))
    assert answer.stop == "time_limit", answer.native
    assert answer.values is not None
    value = float(program.cost @ answer.values)
    assert -1e-6 < answer.bound < value
    assert all(bound <= value * (1 + 1e-6) for bound in told)


@every_backend
def test_time_limit_without_a_solution(name: str) -> None:
    """A value that is hard to reach: the limit comes first, and nothing is held."""
    answer, _ = run(name, hard_program(4, cutoff=40.0), SolverLimits(seconds=0.05))
    assert answer.stop == "time_limit", answer.native
    assert answer.values is None


@pytest.mark.parametrize(("seconds", "stop"), [(0.05, "time_limit"), (60.0, "infeasible")])
def test_what_cbc_proves_at_its_time_limit_is_no_proof(
    seconds: float, stop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped while it prepares the search, CBC 2.10 calls programs infeasible that have solutions."""
    program = tmp_path / "cbc"
    words = "Integer infeasible - objective value 0.00000000"
    program.write_text(f"#!/bin/sh\nsleep 0.1\nfor last; do :; done\necho '{words}' > \"$last\"\n")
    program.chmod(0o700)
    monkeypatch.setattr(cbc, "pulp_cbc_path", str(program))
    answer, _ = run("cbc", hard_program(), SolverLimits(seconds=seconds))
    assert (answer.stop, answer.values, answer.native) == (stop, None, "Integer infeasible")


@every_backend
def test_infeasible(name: str) -> None:
    """Three nodes of size 2 on two devices of size 3."""
    graph = Graph.from_arrays({"accelerator": [1.0] * 3}, [(0, 1), (1, 2)], 1.0, size=2.0)
    program = formulate(Task(problem_of(graph, Devices.accelerated(2, memory=3.0)), np.inf, 0.0)).program
    answer, _ = run(name, program, SolverLimits())
    assert (answer.stop, answer.values, answer.bound) == ("infeasible", None, np.inf)
    assert answer.native


@every_backend
def test_a_gap_is_enough(name: str) -> None:
    """Bound and solution may be apart by the gap asked for, and no more."""
    graph = hard_graph(14)
    program = formulate(Task(problem_of(graph, Devices.accelerated(2)), np.inf, 0.0)).program
    answer, _ = run(name, program, SolverLimits(seconds=60.0, gap=0.2))
    assert answer.stop in ("optimal", "gap")
    assert answer.values is not None
    assert answer.bound >= float(program.cost @ answer.values) * 0.8 - 1e-6


def test_gurobi_is_taken_where_its_licence_covers_the_program() -> None:
    pytest.importorskip("gurobipy")
    backends, note = pick("auto", hard_program(2))
    assert [backend.name for backend in backends] == ["gurobi"]
    assert "covers" in note


def test_a_licence_too_small_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gurobipy")
    monkeypatch.setattr(catalogue, "largest", lambda backend: 2000 if backend.name == "gurobi" else None)
    backends, note = pick("auto", large_program())
    assert [backend.name for backend in backends] == ["scip", "highs"]
    assert "covers 2,000 variables" in note and "has 2,001" in note
    with pytest.raises(BackendUnavailable, match=r"covers 2,000 variables .* has 2,001"):
        pick("gurobi", large_program())


def test_gurobis_own_refusal_is_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The licence that comes with gurobipy is recognised by the error that it raises."""
    gurobipy = pytest.importorskip("gurobipy")
    from partitioner.methods.solvers.backends import gurobi

    assert gurobi.largest() in (None, 2000)

    def refuse() -> None:
        raise gurobipy.GurobiError(10009, "no licence")

    monkeypatch.setattr(gurobi, "_environment", refuse)
    assert gurobi.largest() == 0


def test_without_gurobipy_the_free_ones_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    backends, note = pick("auto", hard_program(2))
    assert [backend.name for backend in backends] == ["scip", "highs"]
    assert "gurobipy is not installed" in note
    with pytest.raises(BackendUnavailable, match=r"partitioner\[gurobi\]"):
        pick("gurobi", hard_program(2))


def test_with_pulp_alone_cbc_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("gurobipy", "ortools"):
        monkeypatch.setitem(sys.modules, package, None)
    assert [backend.name for backend in pick("auto", hard_program(2))[0]] == ["cbc"]
    with pytest.raises(BackendUnavailable, match="needs ortools"):
        pick("highs", hard_program(2))


def test_with_no_solver_at_all_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("gurobipy", "ortools", "pulp"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BackendUnavailable, match="install ortools"):
        pick("auto", hard_program(2))
