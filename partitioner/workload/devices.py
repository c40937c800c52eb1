"""The hardware: kinds of devices, the number of devices of each kind, and the model of communication."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from partitioner.base.argument_types import is_one_of
from partitioner.base.errors import Flaw, WorkloadError, one_of, shown
from partitioner.workload.device_validation import SEPARATOR, is_amount, kind_flaws, number_rule
from partitioner.workload.exchange import EXCHANGES
from partitioner.workload.groups import DeviceGroup, GroupLink
from partitioner.workload.levels import LEVELS_RULE, Level, level_flaws

# The rules of explicit groups and of the links between them, which are checked with the devices.

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


COMMUNICATION_MODELS = ("sequential", "overlapped", "duplex")
SYNCHRONISATIONS = ("added", "overlapped")
DIRECTLY = "from device to device, each end busy for half of the time"
SHARES = {"host": 1.0, "direct": 0.5}  # of a transfer's cost, that each end is busy for, by route
MODELS = {
    "communication": COMMUNICATION_MODELS,
    "synchronisation": SYNCHRONISATIONS,
    "exchange": EXCHANGES,
    "route": tuple(SHARES),
}
NEWER = {
    "groups": (),
    "links": (),
    "exchange": "ring",
    "route": "host",
    "link_latency": 0.0,
}  # fields whose default is not part of `Devices.text`
SINGLE = ("exchange", "route", "link_latency")  # of them those that are one value
MEMORY_TOLERANCE = 1e-9
SHOWN_KINDS = 6
LONGEST_INDEX = 9  # digits
KINDS_RULE = "must be a sequence of DeviceKind"
SEQUENCES = {"kinds": KINDS_RULE, "levels": LEVELS_RULE, "groups": GROUPS_RULE, "links": LINKS_RULE}


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device; all devices of a kind are equal.

    Parameters
    ----------
    name
        The kind's name, such as ``"accelerator"`` or ``"A100"``; a graph gives the time of every node by
        kind name.
    count
        How many devices of this kind there are, 0 to 65,536.
    memory
        Memory of one device in bytes (in the unit of the graph's sizes); None for no limit.
    pays_communication
        True for a device with its own memory, which spends time on transfers; False for a CPU,
        whose data is in host memory already.
    times
        The name of the kind in the graph whose times apply to this one; None if that is `name`.
    time_factor, transfer_factor
        The time of a node is the graph's time times `time_factor`; the time of a transfer is the cost of the
        edge times `transfer_factor`.
    bandwidth
        Weights that a replica sends in a unit of time, in the unit of the graph's sizes (paper, Appendix
        H.2); None if they do not exchange weights, as for inference.
    """

    name: str
    count: int
    memory: float | None = None
    pays_communication: bool = True
    times: str | None = None
    time_factor: float = 1.0
    transfer_factor: float = 1.0
    bandwidth: float | None = None

    @property
    def row(self) -> str:
        """The name of the kind in the graph whose times apply to this one."""
        return self.name if self.times is None else self.times

    @property
    def effective_transfer_factor(self) -> float:
        """The time that a transfer of cost 1 takes the device; 0 if it does not pay for transfers."""
        return self.transfer_factor if self.pays_communication else 0.0

    @property
    def memory_limit(self) -> float:
        """The largest total size that fits, with a tolerance for rounding; infinity without a limit."""
        return math.inf if self.memory is None else self.memory * (1 + MEMORY_TOLERANCE)

    @property
    def prefix(self) -> str:
        """The start of its devices' names: the kind's name, with a colon if it ends in a digit."""
        return f"{self.name}{SEPARATOR}" if self.name[-1].isdigit() else self.name

    def device(self, index: int) -> str:
        """Return the name of device `index` of this kind.

        Examples
        --------
        >>> DeviceKind("accelerator", 2).device(0), DeviceKind("A100", 2).device(0)
        ('accelerator0', 'A100:0')
        """
        return f"{self.prefix}{index}"


@dataclass(frozen=True)
class Devices:
    """The devices, by kind, and the model of communication (paper, Section 3 and Appendix H.1).

    Parameters
    ----------
    kinds
        The kinds, with distinct names.
    communication
        The load of a device: ``"sequential"``: in + compute + out; ``"overlapped"``: the larger of
        compute and in + out; ``"duplex"``: the largest of in, compute and out.
    levels
        Groups of devices with faster links inside, the smallest groups first; empty if all links are equal.
    synchronisation
        When replicas of a stage exchange weights: ``"added"``: after the processing; ``"overlapped"``: at
        the same time (Appendix H.2).
    groups, links
        Groups of devices that need not be equal, and the links between pairs of them; empty if all links
        are equal or in levels.
    exchange
        How r replicas exchange weights of size w over links of bandwidth b. ``"ring"``: by an all-reduce in a
        ring, 2 (r - 1) w / (r b), once a batch if the number of microbatches is known and the schedule is not
        ``"1f1b_async"``, which exchanges for every sample. ``"paper"``: always for every sample. An exchange
        for every sample takes (r - 1) w / (r b), the mean over samples (Appendix H.2).
    route
        How a tensor of cost c gets from one device to another. ``"host"``: through host memory, as in the
        paper; the sender is busy for c, then every receiver for c. ``"direct"``: over a link between the
        devices that carries both directions at once; the transfer takes c, and each end is busy for c / 2, so
        that a device which receives and sends as much does both in the time of one. Operators placed one by
        one (:class:`partitioner.Transfers`) always exchange tensors directly.
    link_latency
        The time that a message takes in addition to that of its bytes, in the unit of the graph's times. The
        cost of a tensor that is sent, if it is above 0, grows by it, and so does each step of an exchange of
        weights: a ring of r replicas takes 2 (r - 1) steps, the mean for every sample is r - 1.
        Factors for transfers and slowdowns of links apply to it, too.

    Raises
    ------
    WorkloadError
        If a field is out of its range or there is no device.

    Examples
    --------
    >>> devices = Devices.accelerated(2, memory=16e9, cpus=1)
    >>> devices.names
    ('accelerator0', 'accelerator1', 'cpu0')
    """

    kinds: tuple[DeviceKind, ...]
    communication: str = "sequential"
    levels: tuple[Level, ...] = ()
    synchronisation: str = "added"
    groups: tuple[DeviceGroup, ...] = ()
    links: tuple[GroupLink, ...] = ()
    exchange: str = "ring"
    route: str = "host"
    link_latency: float = 0.0

    def __post_init__(self) -> None:
        for name, rule in SEQUENCES.items():
            given = getattr(self, name)
            try:
                listed = tuple(given)
            except TypeError:
                listed = None
            if isinstance(given, str) or listed is None:
                raise WorkloadError([Flaw("devices", name, shown(given), rule)])
            object.__setattr__(self, name, listed)
        wrong = [kind for kind in self.kinds if not isinstance(kind, DeviceKind)]
        if wrong:
            raise WorkloadError([Flaw("devices", "kinds", shown(kind), KINDS_RULE) for kind in wrong])
        flaws = kind_flaws(self.kinds)
        for name, known in MODELS.items():
            if not is_one_of(getattr(self, name), known):
                rule = f"must be {one_of(getattr(self, name), known)}"
                flaws.append(Flaw("devices", name, shown(getattr(self, name)), rule))
        if not flaws:
            present = {kind.name: kind.count for kind in self.kinds if kind.count}
            flaws = level_flaws(present, self.levels) + group_flaws(present, self.groups, self.links)
            flaws += self._route_flaws()
        if not is_amount(self.link_latency):
            flaws.append(
                Flaw("devices", "link_latency", shown(self.link_latency), number_rule(self.link_latency))
            )
        if self.levels and self.groups:
            flaws.append(Flaw("devices", "groups", "", "must not be given in addition to levels"))
        if flaws:
            raise WorkloadError(flaws)

    @classmethod
    def accelerated(
        cls,
        accelerators: int,
        *,
        memory: float | None = None,
        cpus: int = 0,
        communication: str = "sequential",
    ) -> Devices:
        """Return the devices of the paper: equal accelerators of `memory` bytes each, and CPUs."""
        accelerator = DeviceKind("accelerator", accelerators, memory)
        cpu = DeviceKind("cpu", cpus, pays_communication=False)
        return cls((accelerator, cpu), communication)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all devices, kind by kind."""
        return tuple(kind.device(i) for kind in self.kinds for i in range(kind.count))

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON, in the layout of a devices file."""
        plain = self.normal()
        levels = [asdict(level) | {"devices": dict(level.devices)} for level in plain.levels]
        return {
            "kinds": [asdict(kind) for kind in plain.kinds],
            "communication": plain.communication,
            "levels": levels,
            "synchronisation": plain.synchronisation,
            **plain.grouping,
            **{
                name: getattr(plain, name)
                for name in ("exchange", "route", "link_latency")
                if self._differs(name)
            },
        }

    def _route_flaws(self) -> list[Flaw]:
        by_host = [kind.name for kind in self.kinds if kind.count and not kind.pays_communication]
        if self.route == NEWER["route"] or not by_host:
            return []
        rule = f"must be host where data of devices is in host memory: {by_host[0]}"
        return [Flaw("devices", "route", shown(self.route), rule)]

    def _differs(self, name: str) -> bool:
        return bool(getattr(self, name) != NEWER[name])

    @property
    def transfer_words(self) -> str:
        """How tensors get from one device to another, and how transfers and processing add up, in words."""
        way = {"host": "through host memory, both ends busy one after the other", "direct": DIRECTLY}
        beside = {
            "sequential": "added to processing",
            "overlapped": "beside processing",
            "duplex": "beside processing, in and out apart",
        }
        late = f"; {self.link_latency:g} of latency for every message" if self.link_latency else ""
        return f"{way[self.route]}; {beside[self.communication]}{late}"

    @property
    def transfer_factors(self) -> tuple[float, ...]:
        """For each kind the time that a transfer of cost 1 keeps a device busy that takes part in it."""
        return tuple(kind.effective_transfer_factor * SHARES[self.route] for kind in self.kinds)

    @property
    def grouping(self) -> dict[str, Any]:
        """Groups and links as plain data for JSON; empty if there are none."""
        groups = [asdict(group) | {"devices": dict(group.devices)} for group in self.groups]
        links = [
            {"slowdown": link.slowdown} | ({"between": list(link.between)} if link.between else {})
            for link in self.links
        ]
        return ({"groups": groups} if groups else {}) | ({"links": links} if links else {})

    def normal(self) -> Devices:
        """Return equal devices whose sizes, factors and slowdowns are of type float."""
        kinds = tuple(
            replace(
                kind,
                memory=_as_float(kind.memory),
                time_factor=float(kind.time_factor),
                transfer_factor=float(kind.transfer_factor),
                bandwidth=_as_float(kind.bandwidth),
            )
            for kind in self.kinds
        )
        levels = tuple(replace(level, slowdown=float(level.slowdown)) for level in self.levels)
        groups = tuple(replace(group, slowdown=float(group.slowdown)) for group in self.groups)
        links = tuple(replace(link, slowdown=float(link.slowdown)) for link in self.links)
        late = float(self.link_latency)
        return replace(self, kinds=kinds, levels=levels, groups=groups, links=links, link_latency=late)

    @property
    def text(self) -> str:
        """All fields as text, equal for equal devices; part of :attr:`partitioner.Workload.sha256`."""
        plain = self.normal()
        named = [(entry.name, getattr(plain, entry.name)) for entry in fields(plain)]
        named = [(name, value) for name, value in named if name not in NEWER or value != NEWER[name]]
        return f"Devices({', '.join(f'{name}={value!r}' for name, value in named)})"

    def __repr__(self) -> str:
        kinds = ", ".join(f"{kind.count} {kind.name}" for kind in self.kinds[:SHOWN_KINDS])
        more = f" and {len(self.kinds) - SHOWN_KINDS} more kinds" if len(self.kinds) > SHOWN_KINDS else ""
        levels = f", {len(self.levels)} levels" if self.levels else ""
        groups = f", {len(self.groups)} groups" if self.groups else ""
        route = f", {self.route}" if self._differs("route") else ""
        return f"<Devices: {kinds}{more}; {self.communication}{route}{levels}{groups}>"

    def kind_of(self, device: str) -> tuple[int, int] | None:
        """Return the position of the device's kind and its index in that kind; None for a name of no kind.

        The index may exceed the number of devices of the kind; the caller checks that.
        """
        found = []
        name = device if isinstance(device, str) else ""
        for cut in range(len(name) - 1, max(0, len(name) - 1 - LONGEST_INDEX), -1):
            if not (name[cut].isascii() and name[cut].isdigit()):
                break
            if name[:cut] in self._position and _is_index(name[cut:]):
                found.append((self._position[name[:cut]], int(name[cut:])))
        return min(found, default=None)

    @cached_property
    def _position(self) -> dict[str, int]:
        """The position of the first kind with each prefix."""
        return {kind.prefix: i for i, kind in reversed(list(enumerate(self.kinds)))}


def _as_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_INDEX and str(int(text)) == text
