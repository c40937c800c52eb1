"""The hardware: kinds of devices, the number of devices of each kind, and the model of communication."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from partitioner.base.argument_types import is_one_of
from partitioner.base.errors import Flaw, WorkloadError, one_of, shown
from partitioner.workload.levels import LEVELS_RULE, Level, level_flaws

COMMUNICATION_MODELS = ("sequential", "overlapped", "duplex")
SYNCHRONISATIONS = ("added", "overlapped")
MAX_COUNT = 65_536
MEMORY_TOLERANCE = 1e-9
SMALLEST, LARGEST = 1e-100, 1e100
SEPARATOR = ":"
SHOWN_KINDS = 6
KINDS_RULE = "must be a sequence of DeviceKind"


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
        Weights that replicas exchange in a unit of time, in the unit of the graph's sizes (paper, Appendix
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

    def __post_init__(self) -> None:
        for name, rule in (("kinds", KINDS_RULE), ("levels", LEVELS_RULE)):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise WorkloadError([Flaw("devices", name, shown(given), rule)])
            object.__setattr__(self, name, tuple(given))
        flaws = _kind_flaws(self.kinds)
        for name, known in (("communication", COMMUNICATION_MODELS), ("synchronisation", SYNCHRONISATIONS)):
            if not is_one_of(getattr(self, name), known):
                rule = f"must be {one_of(getattr(self, name), known)}"
                flaws.append(Flaw("devices", name, shown(getattr(self, name)), rule))
        flaws = flaws or level_flaws(
            {kind.name: kind.count for kind in self.kinds if kind.count}, self.levels
        )
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

    @property
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
        }

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
        return replace(self, kinds=kinds, levels=levels)

    @property
    def text(self) -> str:
        """All fields as text, equal for equal devices; part of :attr:`partitioner.Workload.sha256`."""
        plain = self.normal()
        named = ((entry.name, getattr(plain, entry.name)) for entry in fields(plain))
        return f"Devices({', '.join(f'{name}={value!r}' for name, value in named)})"

    def __repr__(self) -> str:
        kinds = ", ".join(f"{kind.count} {kind.name}" for kind in self.kinds[:SHOWN_KINDS])
        more = f" and {len(self.kinds) - SHOWN_KINDS} more kinds" if len(self.kinds) > SHOWN_KINDS else ""
        levels = f", {len(self.levels)} levels" if self.levels else ""
        return f"<Devices: {kinds}{more}; {self.communication}{levels}>"

    def kind_of(self, device: str) -> tuple[int, int] | None:
        """Return the position of the device's kind and its index in that kind; None for a name of no kind.

        The index may exceed the number of devices of the kind; the caller checks that.
        """
        for position, kind in enumerate(self.kinds if isinstance(device, str) else ()):
            index = device.removeprefix(kind.prefix)
            if _is_index(index) and index != device:
                return position, int(index)
        return None


def _kind_flaws(kinds: Sequence[DeviceKind]) -> list[Flaw]:
    flaws = [
        Flaw("devices", "kinds", shown(kind), KINDS_RULE)
        for kind in kinds
        if not isinstance(kind, DeviceKind)
    ]
    if flaws:
        return flaws
    for kind in kinds:
        where = f"device kind {kind.name if isinstance(kind.name, str) else shown(kind.name)}"
        if not isinstance(kind.name, str) or not kind.name:
            flaws.append(Flaw("devices", "name", shown(kind.name), "must be a text that is not empty"))
        if isinstance(kind.count, bool) or not isinstance(kind.count, int):
            flaws.append(Flaw(where, "count", shown(kind.count), "must be an integer"))
        elif not 0 <= kind.count <= MAX_COUNT:
            flaws.append(Flaw(where, "count", shown(kind.count), f"must be 0 to {MAX_COUNT:,}"))
        if kind.memory is not None and not is_amount(kind.memory):
            flaws.append(Flaw(where, "memory", shown(kind.memory), number_rule(kind.memory)))
        flaws += _speed_flaws(kind, where)
    names = [kind.name for kind in kinds]
    flaws += [
        Flaw("devices", "name", shown(name), "is given to two kinds")
        for name in sorted({name for name in names if isinstance(name, str) and names.count(name) > 1})
    ]
    flaws += [
        Flaw("devices", "name", shown(name), f"must differ from the name of another kind without {SEPARATOR}")
        for name in names
        if isinstance(name, str) and name.endswith(SEPARATOR) and name[:-1] in names and name[-2:-1].isdigit()
    ]
    if not flaws and sum(kind.count for kind in kinds) == 0:
        flaws.append(Flaw("devices", "count", "0", "there must be at least one device"))
    return flaws


def _as_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _speed_flaws(kind: DeviceKind, where: str) -> list[Flaw]:
    given = {"time_factor": kind.time_factor, "transfer_factor": kind.transfer_factor}
    given |= {} if kind.bandwidth is None else {"bandwidth": kind.bandwidth}
    rule = f"must be a number from {SMALLEST:g} to {LARGEST:g}"
    flaws = [
        Flaw(where, name, shown(value), rule)
        for name, value in given.items()
        if not is_amount(value) or value == 0
    ]
    if kind.times is not None and not isinstance(kind.times, str):
        flaws.append(Flaw(where, "times", shown(kind.times), "must be the name of a kind, or None"))
    return flaws


def is_amount(value: Any) -> bool:
    """Whether the value is allowed as a time, cost or size: 0, or from 1e-100 to 1e100."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and bool(value == 0 or SMALLEST <= value <= LARGEST)


def number_rule(value: object) -> str:
    """Return the rule for times, costs and sizes that `value` breaks, for an error message."""
    if isinstance(value, int | float) and value is not True and 0 < value < math.inf:
        return f"must be 0, or from {SMALLEST:g} to {LARGEST:g}"
    return "must be a finite number of at least 0"


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9 and str(int(text)) == text
