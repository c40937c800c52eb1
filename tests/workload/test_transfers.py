"""Transfers take the lines that are given, or what the dearer end pays; bad ones are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Level, Transfers, WorkloadError
from partitioner.workload.transfers import DEFAULT_TRANSFERS

TWO = Devices.accelerated(2)


@pytest.mark.parametrize("name", ["slope", "intercept"])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1.0, "-1.0"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (True, "True"),
        ("2", "'2'"),
        ("fast", "'fast'"),
        ([1.0, 2.0], "[1.0, 2.0]"),
        ([[1.0], [2.0]], "[[1.0], [2.0]]"),
        ([[1.0, 2.0], [3.0]], "[[1.0, 2.0], [3.0]]"),
        ([[1.0, -2.0], [3.0, 0.0]], "[[1.0, -2.0], [3.0, 0.0]]"),
        ([[True, False], [False, True]], "[[True, False], [False, True]]"),
        ([["1", "2"], ["3", "4"]], "[['1', '2'], ['3', '4']]"),
        ([], "[]"),
        ({}, "{}"),
        (1j, "1j"),
    ],
)
def test_what_is_no_number_or_square_is_named(name: str, value: Any, text: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        Transfers(**{name: value})
    rule = "must be a number of at least 0, or one for each pair of devices"
    assert f"transfers: {name} = {text}: {rule}" in str(caught.value)


def test_no_intercept_is_an_error_but_no_slope_is_the_usual_one() -> None:
    assert Transfers(slope=None) == DEFAULT_TRANSFERS
    with pytest.raises(WorkloadError, match="intercept = None"):
        Transfers(intercept=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1, "yes", None, np.array([True, False])])
def test_contention_is_true_or_false(value: Any) -> None:
    with pytest.raises(WorkloadError, match=r"contention = .*: must be True or False"):
        Transfers(contention=value)


def test_all_flaws_are_told_at_once() -> None:
    with pytest.raises(WorkloadError) as caught:
        Transfers(-1.0, -2.0, 3)  # type: ignore[arg-type]
    assert all(f"transfers: {name} = " in str(caught.value) for name in ("contention", "slope", "intercept"))


@pytest.mark.parametrize("name", ["slope", "intercept"])
def test_a_square_has_a_row_for_each_device(name: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        Transfers(**{name: np.ones((3, 3))}).times(TWO)  # type: ignore[arg-type]
    rule = "must have one row and column for each of the 2 devices"
    assert f"transfers: {name} = 3 rows: {rule}" in str(caught.value)


def test_squares_are_kept_as_plain_tuples_and_cost_nothing_from_a_device_to_itself() -> None:
    given = Transfers(np.array([[5, 1], [2, 5]]), [[7, 3], [4, 7]])  # type: ignore[arg-type]
    assert given == Transfers(((5.0, 1.0), (2.0, 5.0)), ((7.0, 3.0), (4.0, 7.0)))
    slope, intercept = given.times(TWO)
    assert slope.tolist() == [[0, 1], [2, 0]] and intercept.tolist() == [[0, 3], [4, 0]]
    assert given.as_dict() == {
        "slope": ((5.0, 1.0), (2.0, 5.0)), "intercept": ((7.0, 3.0), (4.0, 7.0)), "contention": False,
    }  # fmt: skip


def random_devices(rng: np.random.Generator) -> Devices:
    """One or two kinds in up to two levels of equal groups; some do not pay."""
    racks, servers = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    per_server = {name: int(rng.integers(1, 3)) for name in ("gpu", "cpu")[: int(rng.integers(1, 3))]}
    kinds = tuple(
        DeviceKind(
            name,
            count * servers * racks,
            pays_communication=bool(rng.random() < 0.6),
            transfer_factor=float(rng.choice([0.5, 1.0, 2.0])),
        )
        for name, count in per_server.items()
    )
    levels = [Level("server", per_server, float(rng.choice([1.0, 3.0])))] if rng.random() < 0.8 else []
    if levels and servers > 1:
        levels.append(Level("rack", {k: c * servers for k, c in per_server.items()}, 8.0))
    return Devices(kinds, levels=tuple(levels))


def test_by_default_the_dearer_end_pays_times_the_slowdown_of_the_outermost_level_crossed() -> None:
    """Pair by pair, on 200 random sets of devices."""
    rng = np.random.default_rng(0)
    slowed = 0
    for _ in range(200):
        devices = random_devices(rng)
        slope, intercept = DEFAULT_TRANSFERS.times(devices)
        assert not intercept.any()
        ends = [(kind, i) for kind in devices.kinds for i in range(kind.count)]
        for a, (kind, i) in enumerate(ends):
            for b, (other, j) in enumerate(ends):
                crossed = [
                    level.slowdown
                    for level in devices.levels
                    if i // level.size(kind.name) != j // level.size(other.name)
                ]
                factor = max(kind.effective_transfer_factor, other.effective_transfer_factor) * (
                    crossed[-1] if crossed else 1.0
                )
                assert slope[a, b] == (0.0 if a == b else factor)
                slowed += bool(crossed)
    assert slowed > 1000
