"""The relative deviation is the paper's, and says what it can where nothing was measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner import WorkloadError
from partitioner.estimation import relative_deviation


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(1e-3, 1e6)), max_size=6))
def test_gap_over_actual(pairs: list[tuple[float, float]]) -> None:
    found = relative_deviation([e for e, _ in pairs], [a for _, a in pairs])
    assert found.tolist() == pytest.approx([abs(e - a) / a for e, a in pairs])


def test_without_an_actual_value() -> None:
    assert relative_deviation([0.0, 2.0], [0.0, 0.0]).tolist() == [0.0, float("inf")]


def test_lengths_must_agree() -> None:
    with pytest.raises(WorkloadError, match="estimate = 1 values: must be as many as the 2 actual ones"):
        relative_deviation([1.0], [1.0, 2.0])
