"""The hierarchy of links between devices: servers, racks of servers (paper, Appendix H.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError, shown

LEVELS_RULE = "must be a sequence of Level, the smallest groups first"


@dataclass(frozen=True)
class Level:
    """A level of equal groups of devices, such as servers, with faster links inside a group than out of it.

    Parameters
    ----------
    name
        The name of the level, e.g. ``"server"``.
    devices
        How many devices of each kind a group holds; the devices of a kind are numbered group by group.
    slowdown
        Factor, at least 1, for the cost of a transfer between two groups of this level that are in the same
        group of the next level. Inside the smallest groups a transfer costs what the graph says.

    Raises
    ------
    WorkloadError
        If a field is not of its type.

    Examples
    --------
    >>> Level("server", {"gpu": 4, "cpu": 1}, slowdown=8.0).size("gpu")
    4
    """

    name: str
    devices: Mapping[str, int] | tuple[tuple[str, int], ...]
    slowdown: float

    def __post_init__(self) -> None:
        where = f"level {self.name}"
        pairs = counted_devices(self.devices)
        if pairs is None:
            rule = "must give a number of at least 1 for each kind of device"
            raise WorkloadError([Flaw(where, "devices", shown(self.devices), rule)])
        object.__setattr__(self, "devices", pairs)
        slow = self.slowdown
        if isinstance(slow, bool) or not isinstance(slow, int | float) or not 1 <= slow <= 1e9:
            rule = "must be a number from 1 to 1e+09"
            raise WorkloadError([Flaw(where, "slowdown", shown(slow), rule)])

    def size(self, kind: str) -> int:
        """Return how many devices of that kind a group holds; 0 if `devices` does not name the kind."""
        return dict(self.devices).get(kind, 0)


def level_flaws(present: Mapping[str, int], levels: Sequence[Any]) -> list[Flaw]:
    """Return every rule that the levels break.

    Groups of a level must be equal, groups of the next level must consist of whole groups, and links must
    not get faster from one level to the next.

    Parameters
    ----------
    present
        The number of devices of each kind that has at least one.
    levels
        The user's levels.
    """
    wrong = [Flaw("devices", "levels", shown(x), LEVELS_RULE) for x in levels if not isinstance(x, Level)]
    if wrong:
        return wrong
    flaws = [flaw for level in levels for flaw in _group_flaws(present, level)]
    for inner, outer in pairwise(levels) if not flaws else ():
        if outer.slowdown < inner.slowdown:
            rule = f"must be at least that of level {inner.name}, {inner.slowdown:g}"
            flaws.append(Flaw(f"level {outer.name}", "slowdown", shown(outer.slowdown), rule))
        ratios = {outer.size(kind) / inner.size(kind) for kind in present}
        if len(ratios) > 1 or not min(ratios).is_integer() or min(ratios) < 2:
            rule = f"must hold a whole number of groups of level {inner.name}, at least 2"
            flaws.append(Flaw(f"level {outer.name}", "devices", shown(dict(outer.devices)), rule))
    return flaws


def _group_flaws(present: Mapping[str, int], level: Level) -> list[Flaw]:
    where, named = f"level {level.name}", dict(level.devices)
    flaws = [
        Flaw(where, "devices", shown(name), f"must be a kind that has devices: {', '.join(present)}")
        for name in named
        if name not in present
    ]
    flaws += [
        Flaw(where, "devices", shown(kind), "is missing: give how many devices of it a group holds")
        for kind in present
        if kind not in named
    ]
    if flaws:
        return flaws
    uneven = any(count % named[kind] for kind, count in present.items())
    if uneven or len({count / named[kind] for kind, count in present.items()}) > 1:
        counts = ", ".join(f"{count} of kind {kind}" for kind, count in present.items())
        return [Flaw(where, "devices", shown(named), f"must divide the devices into equal groups: {counts}")]
    return []


def counted_devices(devices: object) -> tuple[tuple[str, int], ...] | None:
    """Return numbers of at least 1 by kind as pairs; None if `devices` is not a mapping or pairs of these.

    Examples
    --------
    >>> counted_devices({"gpu": 4}), counted_devices({"gpu": 0})
    ((('gpu', 4),), None)
    """
    items: Any = devices.items() if isinstance(devices, Mapping) else devices
    if isinstance(items, str) or not isinstance(items, Iterable):
        return None
    pairs = tuple(items)
    sound = [
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and _is_count(pair[1])
        for pair in pairs
    ]
    return pairs if pairs and all(sound) else None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
