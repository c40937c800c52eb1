"""The rules of explicit groups and of the links between them, which are checked with the devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from partitioner.base.errors import Flaw, shown
from partitioner.workload.groups import DeviceGroup, GroupLink

GROUPS_RULE = "must be a sequence of DeviceGroup"
LINKS_RULE = "must be a sequence of GroupLink"
NO_LINK = "have no link: name the pair, or give one link without `between`"


def group_flaws(present: Mapping[str, int], groups: Sequence[Any], links: Sequence[Any]) -> list[Flaw]:
    """Return every rule that groups and links break.

    Every device must be in exactly one group, and every pair of groups must have one link.

    Parameters
    ----------
    present
        The number of devices of each kind that has at least one.
    groups, links
        The user's groups and links.
    """
    wrong = [
        Flaw("devices", "groups", shown(x), GROUPS_RULE) for x in groups if not isinstance(x, DeviceGroup)
    ]
    wrong += [Flaw("devices", "links", shown(x), LINKS_RULE) for x in links if not isinstance(x, GroupLink)]
    if wrong:
        return wrong
    names = [group.name for group in groups]
    flaws = [
        Flaw("devices", "groups", shown(name), "is the name of two groups")
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    return flaws or _size_flaws(present, groups) + _link_flaws(names, links)


def _size_flaws(present: Mapping[str, int], groups: Sequence[DeviceGroup]) -> list[Flaw]:
    rule = f"must be a kind that has devices: {', '.join(present)}"
    flaws = [
        Flaw(f"group {group.name}", "devices", shown(kind), rule)
        for group in groups
        for kind in dict(group.devices)
        if kind not in present
    ]
    held = {kind: sum(group.size(kind) for group in groups) for kind in present}
    rule = "devices of the kind are in groups, and every device must be in one"
    return flaws + [
        Flaw(f"device kind {kind}", "count", shown(count), f"{held[kind]} {rule}")
        for kind, count in present.items()
        if groups and held[kind] != count
    ]


def _link_flaws(names: Sequence[str], links: Sequence[GroupLink]) -> list[Flaw]:
    flaws = [
        Flaw(link.title, "between", shown(name), f"must be the name of a group: {', '.join(names) or 'none'}")
        for link in links
        for name in link.between
        if name not in names
    ]
    flaws += [
        Flaw(link.title, "between", shown(list(link.between)), "must be two different groups")
        for link in links
        if len(set(link.between)) == 1
    ]
    given = [frozenset(link.between) for link in links]
    flaws += [
        Flaw(link.title, "", "", "is given twice") for i, link in enumerate(links) if given[i] in given[:i]
    ]
    if flaws or frozenset() in given:
        return flaws
    return [
        Flaw(
            "devices",
            "links",
            f"{one} and {other}",
            "have no link: name the pair, or give one without `between`",
        )
        for one, other in combinations(names, 2)
        if frozenset((one, other)) not in given
    ]
