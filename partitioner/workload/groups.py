"""Explicit groups of devices, which need not be equal, and the links between pairs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.levels import counted_devices

MOST_SLOWDOWN = 1e9


@dataclass(frozen=True)
class DeviceGroup:
    """A group of devices, such as a server, with a name of its own.

    Parameters
    ----------
    name
        The name of the group, e.g. ``"server 1"``; groups have distinct names.
    devices
        How many devices of each kind the group holds, at least 1; kinds that it does not hold are left out.
        The devices of a kind are numbered group by group, in the order of the groups.
    slowdown
        Factor, from 1 to 1e9, for the cost of a transfer between two devices of the group.

    Raises
    ------
    WorkloadError
        If a field is not of its type or range.

    Examples
    --------
    >>> DeviceGroup("server 1", {"A100-80": 4}).size("A100-80")
    4
    """

    name: str
    devices: Mapping[str, int] | tuple[tuple[str, int], ...]
    slowdown: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise WorkloadError([Flaw("devices", "groups", shown(self.name), "must have a name, a text")])
        pairs = counted_devices(self.devices)
        if pairs is None:
            rule = "must give a number of at least 1 for each kind of device in the group"
            raise WorkloadError([Flaw(f"group {self.name}", "devices", shown(self.devices), rule)])
        object.__setattr__(self, "devices", pairs)
        _check_slowdown(f"group {self.name}", self.slowdown)

    def size(self, kind: str) -> int:
        """Return how many devices of that kind the group holds."""
        return dict(self.devices).get(kind, 0)


@dataclass(frozen=True)
class GroupLink:
    """The link between two groups.

    Parameters
    ----------
    slowdown
        Factor, from 1 to 1e9, for the cost of a transfer between a device of one group and one of the other.
    between
        The names of the two groups; empty for all pairs that no other link names.

    Raises
    ------
    WorkloadError
        If a field is not of its type or range.

    Examples
    --------
    >>> GroupLink(8, ("server 1", "server 2")).title
    'link between server 1 and server 2'
    """

    slowdown: float
    between: Sequence[str] = ()

    def __post_init__(self) -> None:
        given: Any = self.between
        sequence = isinstance(given, Sequence) and not isinstance(given, str)
        if not sequence or len(given) not in (0, 2) or not all(isinstance(name, str) for name in given):
            rule = "must be the names of two groups, or empty for all other pairs"
            raise WorkloadError([Flaw("link", "between", shown(given), rule)])
        object.__setattr__(self, "between", tuple(given))
        _check_slowdown(self.title, self.slowdown)

    @property
    def title(self) -> str:
        """The link in words, for messages."""
        return f"link between {' and '.join(map(str, self.between)) or 'all other groups'}"


def group_numbers(groups: Sequence[DeviceGroup], kind: str, count: int) -> NDArray[np.int64]:
    """Return the number of the group of each device of a kind, shape (count,).

    Devices beyond those that the groups hold count as in the last group.

    Examples
    --------
    >>> group_numbers((DeviceGroup("a", {"gpu": 1}), DeviceGroup("b", {"gpu": 2})), "gpu", 3).tolist()
    [0, 1, 1]
    """
    ends = np.cumsum([group.size(kind) for group in groups])
    return np.minimum(np.searchsorted(ends, np.arange(count), side="right"), len(groups) - 1)


def link_slowdowns(groups: Sequence[DeviceGroup], links: Sequence[GroupLink]) -> NDArray[np.float64]:
    """Return the slowdown between each two groups, shape (groups, groups), of checked groups and links.

    Examples
    --------
    >>> groups = tuple(DeviceGroup(name, {"gpu": 2}) for name in "abc")
    >>> link_slowdowns(groups, (GroupLink(2, ("a", "c")), GroupLink(9))).tolist()
    [[1.0, 9.0, 2.0], [9.0, 1.0, 9.0], [2.0, 9.0, 1.0]]
    """
    given = {frozenset(link.between): float(link.slowdown) for link in links}
    rest = given.get(frozenset(), 1.0)
    found = np.diag([float(group.slowdown) for group in groups])
    for one, other in combinations(range(len(groups)), 2):
        pair = frozenset((groups[one].name, groups[other].name))
        found[one, other] = found[other, one] = given.get(pair, rest)
    return found


def _check_slowdown(where: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MOST_SLOWDOWN:
        raise WorkloadError([Flaw(where, "slowdown", shown(value), "must be a number from 1 to 1e+09")])
