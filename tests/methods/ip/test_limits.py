"""With constraints the integer program finds what exhaustive search over all placements finds."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from partitioner import Constraints, InfeasibleError, WorkloadError, solve
from partitioner.methods.ip import solve as ip
from partitioner.methods.ip import solve as solving
from tests.methods.inline_worker_pool import InlineWorkerPool
from tests.methods.slow_parameters import slow
from tests.oracle import best_values
from tests.random_limits import FIELDS, random_constraints, with_layers
from tests.random_problems import Case, cases

BACKENDS = ("highs", "cbc")
PRECISION = 1e-6  # a solver proves no closer than this
CHUNK = 100


@pytest.fixture(autouse=True)
def unaided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave finding and proving to a solver in this process: no first plan, no bound but zero."""
    monkeypatch.setattr(ip, "WorkerPool", InlineWorkerPool)
    monkeypatch.setattr(ip, "find_start", lambda *known: None)
    monkeypatch.setattr(ip, "relax", lambda problem: SimpleNamespace(bound=0.0, weight=np.ones(problem.n)))
    monkeypatch.setattr(ip, "least_cyclic", lambda *known: 0.0)
    monkeypatch.setattr(ip, "least_part", lambda *known: 0.0)
    monkeypatch.setattr(solving, "cover", lambda *known: None)


def solved(case: Case, split: str, backend: str, constraints: Constraints) -> float | None:
    """The value of the plan; None if it is proven that there is none."""
    try:
        plan = solve(
            case.graph,
            case.devices,
            case.objective,
            method="ip",
            split=split,
            backend=backend,
            workers=1,
            **case.contiguity(split),
            constraints=constraints,
        )
    except InfeasibleError:
        return None
    assert plan.status == "optimal"
    return plan.value


def check(case: Case, constraints: Constraints, backend: str) -> dict[str, float | None]:
    """Solve for both splits and hold the values against the oracle's."""
    options = (case.objective, case.contiguous_cpus, case.contiguous_backward)
    best = best_values(case.graph, case.devices, *options, constraints)
    for split in ("convex", "free"):
        where = f"seed {case.seed}, {split}, {backend}, {case.objective}, {constraints}"
        value, expected = solved(case, split, backend, constraints), best[split]
        assert (value is None) == (expected is None), where
        if value is not None and expected is not None:
            assert value == pytest.approx(expected, rel=PRECISION, abs=1e-9), where
    return best


def check_chunk(fields: tuple[str, ...], first: int, count: int = CHUNK, varied: bool = True) -> None:
    """The fields of constraints on many graphs: some have no plan, in some the optimum is another one."""
    infeasible = different = 0
    for i, case in enumerate(cases(first, count, most_nodes=7, most_devices=4)):
        case = replace(case, graph=with_layers(case.graph, case.rng))
        constraints = random_constraints(case.rng, case.graph, case.devices, fields)
        try:
            best = check(case, constraints, BACKENDS[i % len(BACKENDS)])
        except WorkloadError:
            continue
        plain = best_values(case.graph, case.devices, case.objective)
        infeasible += best["free"] is None and plain["free"] is not None
        different += best["free"] != plain["free"]
    assert different > 0 or not varied
    assert infeasible > 0 or not varied or fields in (("together",), ("neighbours_only",))


@pytest.mark.parametrize(("first", "count"), [(40_000, 4), slow(40_004, 36)])
@pytest.mark.parametrize("field", FIELDS)
def test_a_limit_equals_the_oracle(field: str, first: int, count: int) -> None:
    """Each field of constraints by itself."""
    check_chunk((field,), first, count, varied=False)


@pytest.mark.parametrize(("subsets", "graphs"), [(2, 3), slow(9, 12)])
def test_limits_together_equal_the_oracle(subsets: int, graphs: int) -> None:
    """Any subset of the fields at once."""
    rng = np.random.default_rng(7)
    for first in range(50_000, 50_000 + 12 * subsets, 12):
        fields = tuple(field for field in FIELDS if rng.random() < 0.4)
        for i, case in enumerate(cases(first, graphs, most_nodes=7, most_devices=4)):
            case = replace(case, graph=with_layers(case.graph, case.rng))
            constraints = random_constraints(case.rng, case.graph, case.devices, fields)
            check(case, constraints, BACKENDS[i % len(BACKENDS)])


@pytest.mark.slow
@pytest.mark.parametrize("first", (60_000,))
@pytest.mark.parametrize("field", FIELDS)
def test_a_limit_equals_the_oracle_on_many_graphs(field: str, first: int) -> None:
    """As above, on more of them."""
    check_chunk((field,), first, varied=field != "neighbours_only")
