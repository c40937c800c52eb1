"""Lines through small batches: exact on linear data, close with noise, never negative, errors in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from partitioner import WorkloadError
from partitioner.estimation import predict_memory, predict_time

whole = st.integers(0, 1000)


@given(
    st.lists(st.tuples(whole, whole), min_size=1, max_size=6),
    st.lists(st.integers(1, 64), min_size=2, max_size=6).filter(lambda b: len(set(b)) > 1),
    st.integers(0, 4096),
)
def test_exact_on_linear_data(lines: list[tuple[int, int]], batches: list[int], batch: int) -> None:
    memory = [[fixed + each * b for fixed, each in lines] for b in batches]
    expected = [fixed + each * batch for fixed, each in lines]
    assert predict_memory(batches, memory, batch) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert predict_time(batches, memory, batch) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_equal_to_least_squares() -> None:
    rng = np.random.default_rng(5)
    batches, memory = np.array([1.0, 2.0, 4.0, 8.0, 8.0]), rng.uniform(0, 100, (5, 40))
    slope, fixed = np.polyfit(batches, memory, 1)
    assert predict_memory(batches.tolist(), memory, 3.0) == pytest.approx(fixed + 3 * slope)
    assert (slope < 0).any()


def test_close_where_measurements_are_noisy() -> None:
    rng = np.random.default_rng(7)
    batches = [4, 8, 12, 16]
    fixed, each = rng.uniform(100, 200, 500), rng.uniform(5, 10, 500)
    truth = fixed + np.multiply.outer(batches, each)
    guess = predict_memory(batches, truth * rng.normal(1.0, 0.01, truth.shape), 32)
    deviation = np.abs(guess - (fixed + 32 * each)) / (fixed + 32 * each)
    assert 0 < deviation.mean() < 0.03


def test_never_negative() -> None:
    """From 10 at 1 and 4 at 2 the line falls to -8 at 4."""
    assert predict_memory([1, 2], [[10.0, 1.0], [4.0, 1.0]], 4).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("batches", "memory", "batch", "words"),
    [
        ([4, 4], [[1], [1]], 8, "batches = [4.0, 4.0]: must be at least two different batch sizes"),
        ([], np.zeros((0, 3)), 8, "must be at least two different batch sizes"),
        ([1, 2, 3], [[1], [1]], 8, "memory = 2 rows: must have one for each of the 3 batch sizes"),
        ([1, 2], [1, 2], 8, "memory = 1 dimensions: must have 2"),
        ([1, 2], [[1], [1, 2]], 8, "must be numbers in rows of equal length"),
        ([1, 2], [[1], [-2]], 8, "memory = -2.0: must be finite and at least 0"),
        ([1, float("nan")], [[1], [2]], 8, "batches = nan"),
        ([1, 2], [[1], [2]], float("inf"), "batch = inf"),
        ([1, 2], [[1e308], [1e308]], 3, "memory: values are too large or too near one another"),
        ([0.0, 5e-324], [[1], [2]], 3, "memory: values are too large or too near one another"),
    ],
)
def test_errors_name_the_field(batches: list[float], memory: ArrayLike, batch: float, words: str) -> None:
    with pytest.raises(WorkloadError) as error:
        predict_memory(batches, memory, batch)
    assert words in str(error.value)


anything = st.recursive(
    st.one_of(st.none(), st.text(max_size=2), st.booleans(), st.floats(), st.integers()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(anything, anything, anything)
def test_nothing_else_is_raised(batches: list[float], memory: ArrayLike, batch: float) -> None:
    """Whatever is given: numbers of at least 0 come back, or the error for input."""
    try:
        found = predict_memory(batches, memory, batch)
    except WorkloadError:
        return
    assert (found >= 0).all()
