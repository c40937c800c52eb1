"""Lines for links: exact on lines, the best ones that never fall, one a pair, unmeasured pairs free."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from partitioner import Devices, Graph, WorkloadError, evaluate
from partitioner.estimation import fit_link, fit_transfers

THREE = Devices.accelerated(3)
A, B, C = THREE.names
sizes = st.lists(st.integers(0, 10_000), min_size=2, max_size=8)


@given(sizes.filter(lambda d: len(set(d)) > 1), st.integers(0, 100), st.integers(0, 100))
def test_exact_on_lines(d: list[int], k: int, b: int) -> None:
    slope, intercept = fit_link(d, [k * x + b for x in d])
    assert slope * 5000 + intercept == pytest.approx(k * 5000 + b, rel=1e-6, abs=1e-3)
    assert slope == pytest.approx(k, rel=1e-6, abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=6))
def test_no_line_without_falling_is_nearer(points: list[tuple[int, int]]) -> None:
    """Against a grid of slopes, each with its best intercept."""
    d, t = np.array(points, dtype=float).T

    def miss(k: float, b: float) -> float:
        return float(((k * d + b - t) ** 2).sum())

    slope, intercept = fit_link(d, t)
    assert slope >= 0 and intercept >= 0
    rivals = [(k, max(0.0, float((t - k * d).mean()))) for k in np.linspace(0, 20, 401)]
    assert miss(slope, intercept) <= min(miss(*rival) for rival in rivals) * (1 + 1e-9) + 1e-9


def test_one_size_gives_a_line_through_the_origin() -> None:
    assert fit_link([10.0, 10.0], [4.0, 6.0]) == (0.5, 0.0)
    assert fit_link([0.0], [3.0]) == (0.0, 3.0)


def test_close_where_measurements_are_noisy() -> None:
    rng = np.random.default_rng(3)
    d = rng.uniform(0, 1e6, 400)
    slope, intercept = fit_link(d, np.maximum(0, 1e-5 * d + 2.0 + rng.normal(0, 0.1, 400)))
    assert slope == pytest.approx(1e-5, rel=0.02) and intercept == pytest.approx(2.0, abs=0.05)


def test_a_line_for_each_pair_of_devices() -> None:
    lines = {(A, B): (0.5, 2.0), (B, A): (0.25, 0.0), (B, C): (0.0, 4.0)}
    runs = [(s, t, d, k * d + b) for (s, t), (k, b) in lines.items() for d in (4.0, 8.0, 24.0)]
    fit = fit_transfers(THREE, runs[::-1], contention=True)
    assert fit.transfers.contention
    slope, intercept = fit.transfers.times(THREE)
    for (i, s), (j, t) in product(enumerate(THREE.names), repeat=2):
        k, b = lines.get((s, t), (0.0, 0.0))
        assert (slope[i, j], intercept[i, j]) == pytest.approx((k, b), abs=1e-9)
    assert fit.unmeasured == ((A, C), (C, A), (C, B))


def test_costs_of_edges_are_sizes() -> None:
    """Eight bytes from the first to the second device take 0.5 * 8 + 2."""
    graph = Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)], 8.0)
    fit = fit_transfers(THREE, [(A, B, d, 0.5 * d + 2.0) for d in (2.0, 6.0)])
    placed = evaluate(graph, THREE, {0: A, 1: B}, "makespan", transfers=fit.transfers)
    assert placed.value == 1.0 + 6.0 + 1.0
    free = evaluate(graph, THREE, {0: B, 1: A}, "makespan", transfers=fit.transfers)
    assert free.value == 2.0


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ((A, "gpu7", 1.0, 1.0), "measurement 1: 'gpu7': must be one of the devices accelerator0"),
        ((A, A, 1.0, 1.0), "must lead from one device to another"),
        ((A, B, 1.0), "measurement 1: ('accelerator0', 'accelerator1', 1.0): must be source"),
        (5, "measurement 1: 5: must be source, destination, size and time"),
        ((A, [], 1.0, 1.0), "must be source, destination, size and time"),
        ((A, B, -1.0, 1.0), "sizes = -1.0: must be finite and at least 0"),
        ((A, B, 1.0, "long"), "must be numbers"),
    ],
)
def test_errors_name_the_measurement(run: Any, words: str) -> None:
    with pytest.raises(WorkloadError) as error:
        fit_transfers(THREE, [(A, B, 1.0, 1.0), run])
    assert words in str(error.value)


@given(st.lists(st.floats(), max_size=4), st.lists(st.floats(), max_size=4))
def test_bad_numbers_are_refused(d: list[float], t: list[float]) -> None:
    good = len(d) == len(t) > 0 and all(0 <= x < float("inf") for x in d + t)
    assume(not good)
    with pytest.raises(WorkloadError):
        fit_link(d, t)


@given(st.lists(st.tuples(st.floats(0, 1e308), st.floats(0, 1e308)), min_size=1, max_size=4))
def test_good_numbers_give_a_line_or_the_reason(points: list[tuple[float, float]]) -> None:
    try:
        slope, intercept = fit_link([d for d, _ in points], [t for _, t in points])
    except WorkloadError as error:
        assert "too large or too near" in str(error)
    else:
        assert 0 <= slope < float("inf") and 0 <= intercept < float("inf")
