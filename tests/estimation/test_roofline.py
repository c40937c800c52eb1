"""An operation takes the longer of arithmetic and traffic, on the figures that the vendors state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner import OptionError, WorkloadError
from partitioner.estimation import named_device, roofline_time

NVIDIA = ["A100-40", "A100-80", "H100", "H200", "B200", "RTX 4090"]


@given(
    st.sampled_from(NVIDIA),
    st.sampled_from(["bfloat16", "float32", "int8"]),
    st.floats(0, 1e18),
    st.floats(0, 1e15),
    st.floats(0.01, 1),
)
def test_the_longer_of_two_times(name: str, dtype: str, flops: float, nbytes: float, part: float) -> None:
    """By the definition, in whole seconds first."""
    device = named_device(name)
    seconds = max(flops / (device.peak[dtype] * part), nbytes / (device.bandwidth * part))
    found = roofline_time(flops, nbytes, name, dtype, efficiency=part)
    assert found == pytest.approx(seconds * 1e3)


def test_arrays_keep_their_shape() -> None:
    """1 GFLOP at 312 TFLOP/s, and 1 GB at 1,555 GB/s."""
    found = roofline_time(np.array([[1e9], [0.0]]), np.array([[0.0], [1e9]]), "a100 40", "torch.float16")
    assert found.tolist() == [[pytest.approx(1e3 / 312e3)], [pytest.approx(1e3 / 1555)]]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((1.0, 1.0, "H10"), {}, "device = 'H10': must be one of V100, .*; did you mean 'H100'"),
        ((1.0, 1.0, None), {}, "device = None: must be one of V100"),
        ((1.0, 1.0, "H100", "bfloat61"), {}, "dtype = 'bfloat61': must be one of .* did you mean 'bfloat16'"),
        ((1.0, 1.0, "H100", "float4"), {}, "dtype = 'float4': device H100 has speeds for float64, "),
        ((1.0, 1.0, "H100"), {"efficiency": 0}, "efficiency = 0: must be a number above 0 and at most 1"),
        ((1.0, 1.0, "H100"), {"efficiency": 1.5}, "efficiency = 1.5: must be a number above 0"),
        ((1.0, 1.0, "H100"), {"efficiency": True}, "efficiency = True: must be a number above 0"),
    ],
)
def test_what_is_unknown_is_named(
    arguments: tuple[object, ...], options: dict[str, object], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        roofline_time(*arguments, **options)  # type: ignore[arg-type]


def test_amounts_are_checked() -> None:
    with pytest.raises(WorkloadError, match=r"measurements: flops = -1.0: must be finite and at least 0"):
        roofline_time([1.0, -1.0], [0.0, 0.0], "H100")
    with pytest.raises(WorkloadError, match="nbytes = 'many': must be numbers"):
        roofline_time(1.0, "many", "H100")
    with pytest.raises(WorkloadError, match=r"nbytes = shape \(2,\): must have shape \(1,\), as flops"):
        roofline_time([1.0], [1.0, 2.0], "H100")
    with pytest.raises(WorkloadError, match=r"flops = .*: must be numbers in rows of equal length"):
        roofline_time([[1.0], [1.0, 2.0]], 1.0, "H100")
