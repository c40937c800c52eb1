"""Times are those of the roofline times the curve; without curves of its own a device takes the nearest's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner import OptionError
from partitioner.estimation import (
    DEVICES,
    AttentionScores,
    Collective,
    ExpertProducts,
    NamedDevice,
    Product,
    Traffic,
    curve_note,
    named_device,
    operation_time,
    read_operation_tables,
)

MINE = NamedDevice("mine", {"bfloat16": 300e12}, 2e12, 80e9, "a test")


@given(st.integers(1, 10**5), st.integers(1, 10**5), st.integers(1, 10**5), st.sampled_from(sorted(DEVICES)))
def test_an_efficiency_is_that_part_of_the_roofline(m: int, n: int, k: int, name: str) -> None:
    device = named_device(name)
    dtype = next(kind for kind in ("bfloat16", "float16") if kind in device.peak)
    seconds = max(2 * m * n * k / device.peak[dtype], 2 * (m * k + n * k + m * n) / device.bandwidth)
    assert operation_time(name, Product(m, n, k), dtype, efficiency=0.5) == pytest.approx(2e3 * seconds)


@pytest.mark.parametrize("name", DEVICES)
def test_every_device_has_honest_times(name: str) -> None:
    """A large product takes longer than at the peak, and not many times as long."""
    device = named_device(name)
    dtype = next(kind for kind in ("bfloat16", "float16") if kind in device.peak)
    for operation in (Product(8192, 8192, 8192), AttentionScores(8, 4096, 0, 32, 8, 128, 128)):
        best = operation_time(name, operation, dtype, efficiency=1)
        assert best < operation_time(name, operation, dtype) < 4 * best


@given(st.integers(1, 2**17), st.integers(32, 2**16), st.integers(32, 2**16))
def test_many_are_timed_as_one(m: int, n: int, k: int) -> None:
    sizes = np.array([m, 512]), np.array([n, 512]), np.array([k, 512])
    many = operation_time("A100-80", Product(*sizes))
    assert many[0] == pytest.approx(operation_time("A100-80", Product(m, n, k)))


def test_measured_products_are_met() -> None:
    """Rows of the measured tables of A100 and H100 (github.com/ai-dynamo/aiconfigurator), milliseconds."""
    for name, size, measured in (
        ("A100-80", (8192, 8192, 8192), 3.7434),
        ("A100-80", (4096, 4096, 4096), 0.5395),
        ("A100-80", (64, 8192, 8192), 0.1008),
        ("H100", (8192, 4096, 4096), 0.347),
        ("H100", (16, 8192, 8192), 0.0464),
    ):
        assert operation_time(name, Product(*size)) == pytest.approx(measured, rel=0.15)


def test_collectives_take_the_measured_bandwidth() -> None:
    """128 MiB in eight GPUs of one server, measured by NCCL on A100: 1.169 ms, on H100 0.579 ms."""
    message = Collective("all_reduce", 8, 2.0**27)
    assert operation_time("A100-80", message) == pytest.approx(1.169, rel=0.1)
    assert operation_time("H100", message) == pytest.approx(0.579, rel=0.1)
    assert operation_time("A800", message) > 1.3 * operation_time("A100-80", message)  # 2/3 of the links


def test_servers_sum_up_by_their_own_kernels() -> None:
    """256 KiB on four H100: 7.2 us in a captured graph, 11.8 by NCCL; where none is measured, NCCL's."""
    served, plain = (Collective("all_reduce", 4, 2.0**18, captured=each) for each in (True, False))
    assert operation_time("H100", served) == pytest.approx(0.00718, rel=0.15)
    assert operation_time("H100", plain) == pytest.approx(0.01176, rel=0.15)
    assert operation_time("L40S", served) == operation_time("L40S", plain)
    assert served.sent == plain.sent


def test_a_device_of_the_users_own_takes_the_nearest_curves() -> None:
    assert curve_note(MINE) == "curves measured on A100-80, scaled to the peak speeds and bandwidths of mine"
    product = Product(8192, 8192, 8192)
    assert operation_time(MINE, product) == pytest.approx(
        operation_time("A100-80", product) * 312 / 300, rel=0.01
    )


def test_experts_are_read_by_their_routing(tmp_path: Path) -> None:
    """Balanced ones only where all experts are on one device; by a power law wherever they are."""
    pytest.importorskip("pyarrow")
    from pyarrow import Table, parquet

    rows = [
        {"moe_dtype": "bfloat16", "num_tokens": 64, "topk": 2, "num_experts": 8, "moe_ep_size": apart,
         "moe_tp_size": 1, "hidden_size": 32, "inter_size": 48, "distribution": kind, "latency": 1.0}
        for kind in ("balanced", "power_law_1.01", "power_law_1.2")
        for apart in (1, 4)
    ]  # fmt: skip
    parquet.write_table(Table.from_pylist(rows), tmp_path / "moe.parquet")
    found = {one.operation.kind: one.operation for one in read_operation_tables(tmp_path)}
    assert set(found) == {"experts", "balanced_experts"}
    rows_of = {kind: experts.rows.tolist() for kind, experts in found.items()}  # type: ignore[union-attr]
    assert rows_of == {"experts": [128, 32], "balanced_experts": [128]}


def test_balanced_experts_are_met_wherever_they_are() -> None:
    """A row of the tables of H100: 16,384 tokens choose 8 of 256 experts in 19.05 ms; divided, a part."""
    whole = ExpertProducts(131072.0, 256, 7168, 2048, routing="balanced")
    measured = pytest.approx(19.05, rel=0.1)
    assert operation_time("H100", whole, "float8_block") == measured
    part = replace(whole, rows=131072 / 32, local=8, apart=32)
    assert 32 * operation_time("H100", part, "float8_block") == pytest.approx(19.05, rel=0.25)
    skewed = replace(part, routing="power_law")
    assert operation_time("H100", skewed, "float8_block") > 2 * operation_time("H100", part, "float8_block")


def test_without_balanced_tables_all_experts_on_one_device_stand_for_them() -> None:
    skewed = ExpertProducts(8192.0, 8, 4096, 14336)
    balanced = replace(skewed, routing="balanced")
    assert operation_time("A100-80", balanced) == pytest.approx(operation_time("A100-80", skewed), rel=0.02)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(OptionError, match=r"device = 'mine': must have the bytes a second .* peer_gb_s"):
        operation_time(MINE, Collective("all_reduce", 8, 1e6))
    with pytest.raises(OptionError, match="dtype = 'float8': device mine has speeds for bfloat16"):
        operation_time(MINE, Product(1, 1, 1), "float8")


def test_narrow_numbers_leave_the_rest_at_two_bytes() -> None:
    assert operation_time("H100", Traffic(1e9), "float8") == operation_time("H100", Traffic(1e9))
    product = Product(8192, 8192, 8192)
    assert operation_time("H100", product, "float8") < 0.7 * operation_time("H100", product)
