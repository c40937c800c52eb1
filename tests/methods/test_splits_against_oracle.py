"""The integer program finds what exhaustive search finds, with every backend that is present.

Most of these solves run their solver in this process, since starting another one takes longer than the
solve; a few at the end do as users do.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

from partitioner import InfeasibleError, Plan, solve
from partitioner.methods.ip import solve as ip
from partitioner.methods.ip import solve as solving
from partitioner.methods.solvers.backends.catalogue import BACKENDS, is_present
from tests.methods.inline_worker_pool import InlineWorkerPool, used
from tests.oracle import best_values
from tests.random_problems import Case, cases

PRESENT = [name for name, backend in BACKENDS.items() if is_present(backend)]
SOLVER_TOLERANCE = 1e-5  # a solver in numerical trouble ends a little short of its own optimum
SPLITS = ("convex", "free")
CHUNK = 250
PRECISION = 1e-6  # a solver proves no closer than this


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run solvers in this process."""
    monkeypatch.setattr(ip, "WorkerPool", InlineWorkerPool)


@pytest.fixture
def unaided(inline: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave finding and proving to the solver: no first plan, no bound but zero."""
    monkeypatch.setattr(ip, "find_start", lambda *known: None)
    monkeypatch.setattr(ip, "relax", lambda problem: SimpleNamespace(bound=0.0))
    monkeypatch.setattr(ip, "least_cyclic", lambda *known: 0.0)
    monkeypatch.setattr(solving, "tighten", lambda *known: None)
    monkeypatch.setattr(ip, "least_part", lambda problem, settings, known: known)


def solved(case: Case, split: str, backend: str) -> Plan | None:
    """The plan of the integer program; None if it is proven that there is none."""
    try:
        return solve(
            case.graph,
            case.devices,
            case.objective,
            method="ip",
            split=split,
            backend=backend,
            workers=1,
            **case.contiguity(split),
        )
    except InfeasibleError:
        return None


def check(case: Case, backend: str) -> dict[str, float | None]:
    """Solve for both splits, hold the plans against the oracle, and return the oracle's values."""
    options = (case.objective, case.contiguous_cpus, case.contiguous_backward)
    best = best_values(case.graph, case.devices, *options)
    for split in SPLITS:
        where = f"seed {case.seed}, {split}, {backend}, {case.objective}, {case.devices.communication}"
        plan, expected = solved(case, split, backend), best[split]
        assert (plan is None) == (expected is None), where
        if plan is not None and expected is not None:
            assert plan.gap <= SOLVER_TOLERANCE, where
            assert plan.value == pytest.approx(expected, rel=PRECISION, abs=1e-9), where
            assert plan.value >= expected * (1 - 1e-9), where
    _check_order(case, best)
    return best


def _check_order(case: Case, best: dict[str, float | None]) -> None:
    """More freedom never costs: free <= convex <= chain, where a chain counts as convex."""
    free, convex = best["free"], best["convex"]
    assert free is not None or convex is None
    assert free is None or convex is None or free <= convex
    if case.objective == "throughput" and not case.contiguous_backward:
        try:
            chain = solve(case.graph, case.devices, method="dp").value
        except InfeasibleError:
            return
        assert convex is not None
        assert convex <= chain * (1 + 1e-9)


def check_chunk(first: int, count: int = CHUNK, backends: Sequence[str] = PRESENT) -> None:
    """One backend in turn for each graph; both verdicts and differing splits turn up."""
    infeasible = apart = 0
    for i, case in enumerate(cases(first, count)):
        best = check(case, backends[i % len(backends)])
        infeasible += best["free"] is None
        apart += best["free"] != best["convex"]
    assert infeasible > 0
    assert apart > 0


@pytest.mark.usefixtures("unaided")
@pytest.mark.parametrize(("first", "count"), [(35, 30), slow(0, CHUNK), slow(CHUNK, CHUNK)])
def test_solvers_alone_equal_the_oracle(first: int, count: int) -> None:
    """Both splits and objectives, all models and rules of contiguity; a backend a graph."""
    before = used.copy()
    check_chunk(first, count)
    for backend in PRESENT:
        assert (used - before)[BACKENDS[backend].place] > count // 10, backend


@pytest.mark.slow
@pytest.mark.usefixtures("unaided")
@pytest.mark.parametrize("first", range(2 * CHUNK, 9 * CHUNK, CHUNK))
def test_solvers_alone_equal_the_oracle_on_many_graphs(first: int) -> None:
    """As above, on more of them."""
    check_chunk(first)


@pytest.mark.slow
@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("first", range(9 * CHUNK, 10 * CHUNK, CHUNK))
def test_the_method_equals_the_oracle(first: int) -> None:
    """With a first plan and bounds from elsewhere, which leave less to the solver or nothing."""
    before = used.copy()
    check_chunk(first)
    assert (used - before).total() > CHUNK // 20


@pytest.mark.usefixtures("unaided")
@pytest.mark.parametrize(("first", "count"), [(20_000, 3), slow(20_003, 12)])
@pytest.mark.parametrize("backend", PRESENT)
def test_every_backend_on_the_same_graphs(backend: str, first: int, count: int) -> None:
    """Each backend by itself on graphs that the others solve too, a little larger."""
    for case in cases(first, count, most_nodes=9, most_devices=4):
        check(case, backend)


@pytest.mark.parametrize(("backend", "count"), [("auto", 1), *(slow(name, 2) for name in ("auto", *PRESENT))])
def test_worker_processes_change_nothing(backend: str, count: int) -> None:
    """As users call it: solvers in processes of their own."""
    seen = 0
    for case in cases(30_000, count):
        check(case, backend)
        seen += 1
    assert seen == count


def test_the_free_solvers_are_present() -> None:
    """The packages that this one depends on bring HiGHS, SCIP, CP-SAT and CBC; gurobipy is optional."""
    assert {"highs", "scip", "cpsat", "cbc"} <= set(PRESENT)
    assert ("gurobi" in PRESENT) == (find_spec("gurobipy") is not None)
