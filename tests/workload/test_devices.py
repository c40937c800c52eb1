"""Devices hold what they were given, and refuse what no hardware is."""

from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, WorkloadError


def test_names_count_up_kind_by_kind() -> None:
    devices = Devices((DeviceKind("fast", 2), DeviceKind("slow", 0), DeviceKind("host", 1)))
    assert devices.names == ("fast0", "fast1", "host0")


def test_accelerated_is_the_set_of_the_paper() -> None:
    """Accelerators have memory and pay for transfers; CPUs have no limit and do not."""
    accelerator, cpu = Devices.accelerated(3, memory=16e9, cpus=2, communication="duplex").kinds
    assert (accelerator.count, accelerator.memory, accelerator.pays_communication) == (3, 16e9, True)
    assert (cpu.count, cpu.memory, cpu.pays_communication) == (2, None, False)


@pytest.mark.parametrize("name", ["a", "gpu", "gpu1x", "1x", "é-"])
def test_kind_of_finds_the_way_back_from_a_name(name: str) -> None:
    devices = Devices((DeviceKind("other", 1), DeviceKind(name, 12)))
    assert devices.kind_of(devices.kinds[1].device(11)) == (1, 11)


def test_kind_of_does_not_judge_whether_the_device_exists() -> None:
    assert Devices.accelerated(1).kind_of("accelerator7") == (0, 7)


@pytest.mark.parametrize(
    "name", ["", "0", "gpu", "gpu01", "gpu-1", "gpu1.0", "gpu\u0661", "xgpu0", "gpu" + "1" * 10]
)
def test_kind_of_knows_no_other_names(name: str) -> None:
    assert Devices((DeviceKind("gpu", 1),)).kind_of(name) is None


def test_memory_limit_forgives_rounding_only() -> None:
    kind = DeviceKind("gpu", 1, 100.0)
    assert 100 * (1 + 1e-12) <= kind.memory_limit < 100.001


def kind(**changes: Any) -> tuple[DeviceKind, ...]:
    """One kind with some fields changed."""
    return (DeviceKind(**{"name": "gpu", "count": 1, **changes}),)


@pytest.mark.parametrize(
    ("kinds", "field", "rule"),
    [
        (kind(count=-1), "count", "0 to 65,536"),
        (kind(count=65_537), "count", "0 to 65,536"),
        (kind(count=True), "count", "integer"),
        (kind(count=1.0), "count", "integer"),
        (kind(count="2"), "count", "integer"),
        (kind(count=0), "count", "at least one device"),
        ((), "count", "at least one device"),
        (kind(memory=-1.0), "memory", "at least 0"),
        (kind(memory=float("nan")), "memory", "finite"),
        (kind(memory=float("inf")), "memory", "finite"),
        (kind(memory=10**400), "memory", "1e+100"),
        (kind(memory="16 GB"), "memory", "finite number"),
        (kind(memory=True), "memory", "finite number"),
        (kind(name="A1") + kind(name="A1:"), "name", "without :"),
        (kind(name=""), "name", "text"),
        (kind(name=7), "name", "text"),
        (kind() + kind(), "name", "two kinds"),
        ("gpu", "kinds", "sequence of DeviceKind"),
        (5, "kinds", "sequence of DeviceKind"),
        (("gpu",), "kinds", "sequence of DeviceKind"),
    ],
)
def test_what_no_hardware_is_is_refused(kinds: Any, field: str, rule: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        Devices(kinds)
    assert [flaw.field for flaw in caught.value.flaws] == [field]
    assert rule in str(caught.value)


def test_an_unknown_model_of_communication_is_refused() -> None:
    with pytest.raises(WorkloadError, match="'half': must be one of sequential, overlapped, duplex"):
        Devices.accelerated(1, communication="half")


def test_pickle_gives_an_equal_set() -> None:
    devices = Devices.accelerated(2, memory=5.0, cpus=1, communication="overlapped")
    assert pickle.loads(pickle.dumps(devices)) == devices


def test_kinds_may_end_in_a_digit() -> None:
    """The index of their devices stands behind a colon; names of other kinds stay as they were."""
    devices = Devices((DeviceKind("A100", 2), DeviceKind("MI300X", 1), DeviceKind("gpu", 1)))
    assert devices.names == ("A100:0", "A100:1", "MI300X0", "gpu0")


def test_every_name_means_one_device() -> None:
    """Every set of up to three kinds with similar names: no two devices share a name, each is found again."""
    letters = ("A", "A1", "A10", "A1:", "A:", "A:1", "A:10", "1", "A1A")
    checked = 0
    for names in [*combinations(letters, 1), *combinations(letters, 2), *combinations(letters, 3)]:
        kinds = tuple(DeviceKind(name, 12) for name in names)
        if {"A1", "A1:"} <= set(names):
            with pytest.raises(WorkloadError, match="must differ"):
                Devices(kinds)
            continue
        devices = Devices(kinds)
        assert len(set(devices.names)) == 12 * len(kinds)
        found = [devices.kind_of(name) for name in devices.names]
        assert found == [(kind, index) for kind in range(len(kinds)) for index in range(12)]
        checked += 1
    assert checked == 9 + 36 + 84 - 1 - 7


def test_an_array_without_items_is_no_sequence_of_kinds() -> None:
    with pytest.raises(WorkloadError, match=r"kinds = array.2.: must be a sequence of DeviceKind"):
        Devices(np.array(2))  # type: ignore[arg-type]
