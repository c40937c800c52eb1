"""The unit divides every cost, and rounding up to it never passes a value that loads can have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.units import load_unit, rounded_up
from partitioner.problem.variants import ChainProblem
from tests.contracted import contract_to


@pytest.mark.parametrize(
    ("times", "cost", "unit"),
    [
        ([6.0, 9.0], 0.0, 3.0),
        ([0.25, 1.5], 0.0, 0.25),
        ([6.0, 9.0], 0.5, 0.5),
        ([1 / 3, 1.0], 0.0, 0.0),
        ([4.0, 6.5, 2.0], 3.0, 0.5),
    ],
)
def test_units(times: list[float], cost: float, unit: float) -> None:
    graph = Graph.from_arrays({"accelerator": times}, [(0, 1)], cost)
    assert load_unit(contract_to(ChainProblem, graph, Devices.accelerated(2))) == pytest.approx(unit)


def test_multiples_stay_as_they_are() -> None:
    """On 2,000 multiples of decimal units, as sums of floats have them."""
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        unit = float(10.0 ** -int(rng.integers(0, 7)) * int(rng.integers(1, 9)))
        exact = int(rng.integers(1, 10**6)) * Fraction(unit)
        assert rounded_up(float(exact), unit) == pytest.approx(float(exact), rel=1e-12)
        assert rounded_up(float(exact - Fraction(unit) / 3), unit) == pytest.approx(float(exact), rel=1e-12)
