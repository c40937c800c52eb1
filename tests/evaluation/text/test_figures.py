"""Gaps are put in words that are understood: a fraction where it is small, else a multiple of the bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partitioner import Certificate, compare_methods, solve
from partitioner.evaluation.text.figures import gap_cell, nearness
from tests.instances import training


@pytest.mark.parametrize(
    ("value", "bound", "words", "cell"),
    [
        (10.0, 10.0, "within 0.00% of the optimum", "0.00%"),
        (10.0, 9.0, "within 10.00% of the optimum", "10.00%"),
        (10.0, 8.9, "at most 1.12 x the lower bound", "11.00%"),
        (15.3, 1.0, "at most 15.3 x the lower bound", "93.46%"),
        (1e6, 1.0, "at most 1e+06 x the lower bound", "100.00%"),
        (1.0, 0.0, "no lower bound above 0 is known", "-"),
        (0.0, 0.0, "within 0.00% of the optimum", "0.00%"),
    ],
)
def test_a_gap_in_words(value: float, bound: float, words: str, cell: str) -> None:
    assert nearness(value, bound) == words
    assert gap_cell(value, bound) == cell


def test_plans_and_certificates_far_from_the_bound_say_how_many_times_it_they_are() -> None:
    plan = replace(solve(training().graph, training().devices), status="feasible", value=15.3, bound=1.0)
    assert plan.summary(80).splitlines()[0].endswith("15.3 per sample, at most 15.3 x the lower bound")
    assert plan.gap == pytest.approx(14.3 / 15.3)
    text = Certificate(15.3, plan).summary()
    assert "this one is at most 15.3 x the lower bound (method dp" in text


def test_comparisons_say_it_as_well() -> None:
    found = compare_methods(training().graph, training().devices, methods=["single_device", "dp"])
    far = replace(found, bounds={"chain": 0.5})
    row = next(line for line in far.summary(80).splitlines() if line.startswith("dp"))
    assert "93.33%" in row
