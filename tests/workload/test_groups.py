"""Every device is in one group, every pair has one link; all else is refused with group, field and rule."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import DeviceGroup, DeviceKind, Devices, GroupLink, Level, Transfers, WorkloadError
from partitioner.workload.groups import group_numbers, link_slowdowns

KINDS = (DeviceKind("A100-80", 4), DeviceKind("A100-40", 6), DeviceKind("cpu", 0))
ONE, TWO = DeviceGroup("one", {"A100-80": 4, "A100-40": 1}), DeviceGroup("two", {"A100-40": 5}, 2)
LINKS = (GroupLink(8, ("two", "one")),)


def test_devices_are_numbered_group_by_group() -> None:
    devices = Devices(KINDS, groups=(ONE, TWO), links=LINKS)
    assert devices.names[4:7] == ("A100-40:0", "A100-40:1", "A100-40:2")
    assert group_numbers(devices.groups, "A100-40", 6).tolist() == [0, 1, 1, 1, 1, 1]
    assert link_slowdowns(devices.groups, devices.links).tolist() == [[1, 8], [8, 2]]


def test_names_that_end_in_digits_are_read_back() -> None:
    devices = Devices(KINDS, groups=(ONE, TWO), links=LINKS)
    assert [devices.kind_of(name) for name in ("A100-80:3", "A100-40:12")] == [(0, 3), (1, 12)]
    assert devices.kind_of("A100-803") is None


def test_transfers_of_operators_are_slowed_by_the_link() -> None:
    devices = Devices((DeviceKind("gpu", 3),), groups=GROUPS, links=(GroupLink(4),))
    assert Transfers().times(devices)[0].tolist() == [[0, 3, 4], [3, 0, 4], [4, 4, 0]]


GROUPS = (DeviceGroup("a", {"gpu": 2}, 3), DeviceGroup("b", {"gpu": 1}))


def test_equal_groups_are_equal_and_others_change_the_hash_of_a_workload() -> None:
    assert len({DeviceGroup("a", {"gpu": 2}), DeviceGroup("a", (("gpu", 2),))}) == 1
    plain, linked = (
        Devices((DeviceKind("gpu", 3),), groups=g, links=k) for g, k in (((), ()), (GROUPS, (GroupLink(4),)))
    )
    assert "groups" not in plain.text
    assert "groups" in linked.text
    assert "2 groups" in repr(linked)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DeviceGroup("", {"gpu": 1}), "devices: groups = '': must have a name"),
        (
            lambda: DeviceGroup("a", {"gpu": 0}),
            "group a: devices = {'gpu': 0}: must give a number of at least 1",
        ),
        (lambda: DeviceGroup("a", {"gpu": 1}, 0.5), "group a: slowdown = 0.5: must be a number from 1 to"),
        (lambda: GroupLink(0.5), "link between all other groups: slowdown = 0.5: must be a number from 1"),
        (lambda: GroupLink(2, ("a",)), "link: between = ('a',): must be the names of two groups"),
        (lambda: GroupLink(2, "ab"), "link: between = 'ab': must be the names of two groups"),
        (
            lambda: GroupLink(2, (1, 2)),  # type: ignore[arg-type]
            "link: between = (1, 2): must be the names of two groups",
        ),
    ],
)
def test_a_group_or_link_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        make()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("groups", "links", "message"),
    [
        ("one", (), "devices: groups = 'one': must be a sequence of DeviceGroup"),
        (("one",), (), "devices: groups = 'one': must be a sequence of DeviceGroup"),
        ((ONE, TWO), (8,), "devices: links = 8: must be a sequence of GroupLink"),
        ((ONE, ONE), LINKS, "devices: groups = 'one': is the name of two groups"),
        ((ONE,), (), "device kind A100-40: count = 6: 1 devices of the kind are in groups"),
        (
            (ONE, DeviceGroup("two", {"npu": 5})),
            LINKS,
            "group two: devices = 'npu': must be a kind that has devices",
        ),
        ((ONE, TWO), (), "devices: links = one and two: have no link: name the pair"),
        ((ONE, TWO), (*LINKS, GroupLink(3, ("one", "two"))), "link between one and two: is given twice"),
        ((ONE, TWO), (GroupLink(3, ("one", "one")),), "must be two different groups"),
        (
            (ONE, TWO),
            (GroupLink(3, ("one", "three")),),
            "between = 'three': must be the name of a group: one, two",
        ),
        ((), LINKS, "must be the name of a group: none"),
    ],
)
def test_groups_that_do_not_fit_the_devices(groups: Any, links: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        Devices(KINDS, groups=groups, links=links)
    assert message in str(error.value)


def test_groups_take_the_place_of_levels() -> None:
    with pytest.raises(WorkloadError, match="groups: must not be given in addition to levels"):
        Devices(
            (DeviceKind("gpu", 3),), levels=(Level("a", {"gpu": 1}, 2),), groups=GROUPS, links=(GroupLink(4),)
        )
