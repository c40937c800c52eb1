"""An operator takes the sum over its products, each by a roofline, an overhead and the curve of its sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioner import OptionError
from partitioner.estimation import AttentionScores, Product, Traffic, named_device, operation_time
from partitioner.estimation.curves import curve_of
from partitioner.estimation.operator_times import OperatorWork, SizedPart, operator_times

DEVICES = ("A100-80", "H100", "L40S")  # which have curves of their own
SIZE = st.integers(1, 9000)


def one(work: OperatorWork, device: str, efficiency: float | None = None) -> float:
    return float(operator_times([work], named_device(device), efficiency)[0])


@given(SIZE, SIZE, SIZE, st.integers(1, 9), st.sampled_from(DEVICES))
@settings(max_examples=1000, deadline=None)
def test_a_product_alone_takes_its_operations_time(m: int, n: int, k: int, count: int, device: str) -> None:
    product = Product(m, n, k, count)
    part = SizedPart(product.flops, product)
    work = OperatorWork(product.flops, product.nbytes(2, 2), (part,), "bfloat16")
    assert one(work, device) == pytest.approx(float(operation_time(device, product)))


PARTS = st.lists(st.tuples(SIZE, SIZE, SIZE, st.integers(1, 5)), min_size=1, max_size=4)


@given(PARTS, st.floats(1, 1e10), st.integers(0, 3), st.sampled_from(DEVICES))
@settings(max_examples=1000, deadline=None)
def test_parts_share_the_traffic_and_the_rest_is_a_square(
    given_parts: list[tuple[int, int, int, int]], nbytes: float, more: int, device: str
) -> None:
    """Against the formula, with peaks, bandwidths and curves; `more` tera-operations have no sizes."""
    figures = named_device(device)
    parts = [SizedPart(2.0 * m * n * k * s, Product(m, n, k), s) for m, n, k, s in given_parts]
    rest = more * 1e12
    flops = sum(part.flops for part in parts) + rest
    curve = curve_of(device, "product", "bfloat16")
    assert curve is not None
    side = (rest / 2) ** (1 / 3)
    counted = [(2.0 * m * n * k * s, (float(m), float(n), float(k)), s) for m, n, k, s in given_parts]
    counted += [(rest, (side, side, side), 1)] if more else []
    total = 0.0
    for own, sizes, steps in counted:
        seconds = max(own / figures.peak["bfloat16"], nbytes * own / flops / figures.bandwidth)
        total += (seconds * 1e3 + steps * 0.002) * float(curve.factor([*sizes, 1]))
    work = OperatorWork(flops, nbytes, tuple(parts), "bfloat16")
    assert one(work, device) == pytest.approx(total, rel=1e-6)


@given(st.floats(1, 1e12), st.sampled_from(DEVICES))
def test_what_computes_nothing_is_traffic(nbytes: float, device: str) -> None:
    work = OperatorWork(0.0, nbytes, (), "float32")
    assert one(work, device) == pytest.approx(float(operation_time(device, Traffic(nbytes / 2))))
    assert one(OperatorWork(0.0, 0.0, (), "float32"), device) == 0  # a view


def test_scores_take_the_curve_of_attention() -> None:
    """Without a mask twice the operations of the causal kernel take twice its time where they count."""
    scores = AttentionScores(8, 4096, 0, 32, 8, 128, 128)
    part = SizedPart(2 * scores.flops, scores)
    work = OperatorWork(part.flops, scores.nbytes(2, 2), (part,), "bfloat16")
    assert one(work, "H100") == pytest.approx(2 * float(operation_time("H100", scores)), rel=0.01)


@given(st.floats(0, 1e15), st.floats(0, 1e12), st.floats(0.01, 1))
def test_an_efficiency_is_that_part_of_the_roofline(flops: float, nbytes: float, efficiency: float) -> None:
    work = OperatorWork(flops, nbytes, (), "bfloat16")
    expected = max(flops / 312e12, nbytes / 2039e9) / efficiency * 1e3
    assert one(work, "A100-80", efficiency) == pytest.approx(expected)


@pytest.mark.parametrize("efficiency", [0, 1.5, "1"])
def test_an_efficiency_is_in_its_range(efficiency: Any) -> None:
    with pytest.raises(OptionError, match=r"efficiency = .*: must be"):
        one(OperatorWork(1.0, 1.0, (), "bfloat16"), "H100", efficiency)
