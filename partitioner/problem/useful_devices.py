"""The devices that a plan of few devices needs: of equal ones a few, which stand for all of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from partitioner.problem.arrays import Floats, Ints
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Bools
from partitioner.workload.groups import group_numbers, link_slowdowns
from partitioner.workload.transfers import Transfers


def useful_devices(devices: Devices, transfers: Transfers, most: int) -> Ints:
    """Return devices such that every plan of at most `most` devices has an equal one on these alone.

    A plan keeps all its times if devices that it uses change places with equal ones: devices of one kind in
    one group, or whole groups with equal devices and equal links. So the first `most` equal devices of a
    group stand for all of them, and the first `most` of equal groups for all of these.

    Parameters
    ----------
    devices
        The devices.
    transfers
        The times of transfers. Where they are given for each pair, devices of a kind are equal if no time
        changes when they change places.
    most
        The largest number of devices that a plan uses.

    Returns
    -------
    Ints
        The numbers of the devices in the order of :attr:`Devices.names`, rising.

    Examples
    --------
    >>> from partitioner import Level
    >>> gpus = DeviceKind("gpu", 12)
    >>> useful_devices(Devices((gpus,)), Transfers(), 2).tolist()
    [0, 1]
    >>> servers = Devices((gpus,), levels=(Level("server", {"gpu": 4}, 3.0),))
    >>> useful_devices(servers, Transfers(), 2).tolist()
    [0, 1, 4, 5]
    """
    if any(isinstance(times, tuple) for times in (transfers.slope, transfers.intercept)):
        return _by_times(devices, *transfers.times(devices), most)
    alike = transfers.slope is not None
    kept = [_by_links(devices, kind, most, alike) for kind in devices.kinds]
    return np.flatnonzero(np.concatenate(kept))


def first_of_kinds(devices: Devices) -> Ints:
    """Return the number of the first device of every kind, shape (kinds,)."""
    counts = np.array([kind.count for kind in devices.kinds], dtype=np.int64)
    return np.cumsum(counts) - counts


def interchangeable(members: Iterable[int], *tables: Floats) -> list[list[int]]:
    """Return the members in classes: two of a class may change places without a change of any table.

    The relation is transitive, so a member is compared with the first one of each class only, and only if
    their rows and columns hold the same numbers.
    """
    classes: dict[bytes, list[list[int]]] = {}
    for member in members:
        lines = [np.sort(line) for table in tables for line in (table[member], table[:, member])]
        alike = classes.setdefault(np.concatenate(lines).tobytes(), [])
        home = next((each for each in alike if _are_equal(each[0], member, tables)), None)
        if home is None:
            alike.append([member])
        else:
            home.append(member)
    return [each for alike in classes.values() for each in alike]


def _by_links(devices: Devices, kind: DeviceKind, most: int, alike: bool) -> Bools:
    """Return which devices of a kind are useful, where kinds and groups decide the times; shape (count,)."""
    index = np.arange(kind.count)
    if alike or not (devices.levels or devices.groups):
        return index < most
    if devices.levels:
        sizes = [level.size(kind.name) for level in devices.levels] if kind.count else []
        inner, useful = [1, *sizes], np.ones(kind.count, dtype=bool)
        for size, outer in zip(inner, [*sizes, max(kind.count, 1)], strict=True):
            useful &= index % outer // size < most
        return useful
    group = group_numbers(devices.groups, kind.name, kind.count)
    begins = np.searchsorted(group, group)
    return np.asarray(_useful_groups(devices, most)[group] & (index - begins < most))


def _useful_groups(devices: Devices, most: int) -> Bools:
    """Return which explicit groups are useful, shape (groups,)."""
    names = [kind.name for kind in devices.kinds]
    held = [tuple(group.size(name) for name in names) for group in devices.groups]
    link = link_slowdowns(devices.groups, devices.links)
    useful = np.zeros(len(held), dtype=bool)
    for size in set(held):
        for groups in interchangeable([g for g, own in enumerate(held) if own == size], link):
            useful[groups[:most]] = True
    return useful


def _by_times(devices: Devices, slope: Floats, intercept: Floats, most: int) -> Ints:
    """Return the useful devices, where times are given for each pair, shape (devices, devices)."""
    kept: list[int] = []
    for kind, first in zip(devices.kinds, first_of_kinds(devices).tolist(), strict=True):
        members = range(first, first + kind.count)
        classes = [list(members)] if kind.count <= most else interchangeable(members, slope, intercept)
        kept += [device for equal in classes for device in equal[:most]]
    return np.array(sorted(kept), dtype=np.int64)


def _are_equal(one: int, other: int, tables: Iterable[Floats]) -> bool:
    """Return whether no table changes if two of its members change places."""
    for table in tables:
        swapped = np.arange(len(table))
        swapped[[one, other]] = other, one
        lines, turned = np.array([one, other]), np.array([other, one])
        same = np.array_equal(table[lines], table[np.ix_(turned, swapped)])
        if not (same and np.array_equal(table[:, lines], table[np.ix_(swapped, turned)])):
            return False
    return True
