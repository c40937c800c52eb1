"""Levels are equal groups that nest, with links that get slower outwards; all else is refused in words."""

from __future__ import annotations

import pytest

from partitioner import DeviceKind, Devices, Level, WorkloadError

GPUS, CPUS = DeviceKind("gpu", 8), DeviceKind("cpu", 2, pays_communication=False)


def test_groups_of_servers_in_racks() -> None:
    server = Level("server", {"gpu": 2, "cpu": 1}, 4.0)
    with pytest.raises(WorkloadError, match="must divide the devices into equal groups"):
        Devices((GPUS, CPUS), levels=(server,))
    devices = Devices((GPUS,), levels=(Level("server", {"gpu": 2}, 4.0), Level("rack", (("gpu", 4),), 4.0)))
    assert [level.size("gpu") for level in devices.levels] == [2, 4]
    assert devices.levels[0].size("cpu") == 0


def test_a_level_is_hashable_and_equal_by_value() -> None:
    assert len({Level("server", {"gpu": 2}, 4.0), Level("server", (("gpu", 2),), 4.0)}) == 1


@pytest.mark.parametrize(
    ("devices", "slowdown", "message"),
    [
        ({}, 2.0, "level x: devices = {}: must give a number of at least 1 for each kind"),
        ({"gpu": 0}, 2.0, "must give a number of at least 1"),
        ({"gpu": True}, 2.0, "must give a number of at least 1"),
        (4, 2.0, "must give a number of at least 1"),
        ("gpu", 2.0, "must give a number of at least 1"),
        ({"gpu": 4}, 0.5, "level x: slowdown = 0.5: must be a number from 1 to"),
        ({"gpu": 4}, float("nan"), "slowdown = nan"),
        ({"gpu": 4}, True, "slowdown = True"),
        ({"gpu": 4}, "8", "slowdown = '8'"),
    ],
)
def test_a_level_that_cannot_be(devices: object, slowdown: object, message: str) -> None:
    with pytest.raises(WorkloadError, match=message.replace("{", r"\{").replace("}", r"\}")):
        Level("x", devices, slowdown)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([Level("a", {"gpu": 3}, 2.0)], "level a: devices = {'gpu': 3}: must divide the devices"),
        ([Level("a", {"npu": 4}, 2.0)], "level a: devices = 'npu': must be a kind"),
        ([Level("a", {"gpu": 4, "npu": 1}, 2.0)], "'npu': must be a kind"),
        ([Level("a", {"gpu": 4}, 8.0), Level("b", {"gpu": 8}, 2.0)], "must be at least that of level a, 8"),
        ([Level("a", {"gpu": 4}, 2.0), Level("b", {"gpu": 4}, 2.0)], "whole number of groups of level a"),
        ([Level("a", {"gpu": 8}, 2.0), Level("b", {"gpu": 4}, 2.0)], "whole number of groups of level a"),
        (["server"], "levels = 'server': must be a sequence of Level"),
        ("server", "levels = 'server': must be a sequence of Level"),
        (5, "levels = 5: must be a sequence of Level"),
    ],
)
def test_levels_that_do_not_fit_the_devices(levels: object, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        Devices((GPUS,), levels=levels)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_every_kind_with_devices_is_in_every_level() -> None:
    with pytest.raises(WorkloadError, match="level a: devices = 'cpu': is missing"):
        Devices((GPUS, CPUS), levels=(Level("a", {"gpu": 4}, 2.0),))
    Devices((GPUS, DeviceKind("cpu", 0)), levels=(Level("a", {"gpu": 4}, 2.0),))
