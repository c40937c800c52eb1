"""A pool of devices of a sweep: what it changes in the devices of a workload."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.base.argument_types import is_count, is_one_of
from partitioner.base.errors import OptionError, one_of, shown
from partitioner.base.units import byte_count
from partitioner.evaluation.text.figures import given_amount
from partitioner.formats.devices_in_place import changed
from partitioner.workload.device_validation import LARGEST, MAX_COUNT, is_amount
from partitioner.workload.devices import COMMUNICATION_MODELS, Devices

OWN = "own devices"
COUNT_RULE = f"must be an integer from 0 to {MAX_COUNT:,}, or None"
MEMORY_RULE = f"must be a number of bytes from 0 to {LARGEST:g}, such as 16e9 or '16GiB', or None"


@dataclass(frozen=True)
class DevicePool:
    """The devices for a workload of a sweep: given ones, or those of the workload, with changes.

    Parameters
    ----------
    name
        A title; by default one that :attr:`label` makes of the other fields.
    accelerators, cpus
        The numbers of devices of these two kinds; None for those of the workload or of `devices`.
    memory
        Bytes that an accelerator holds, also as a text such as ``"16GiB"``; None as above.
    communication
        The model of communication, see :class:`partitioner.Devices`; None as above.
    devices
        The devices, in place of those of the workload; None for those of the workload.

    Raises
    ------
    OptionError
        Naming the field, its value and what it may be.

    Examples
    --------
    >>> pool = DevicePool(accelerators=4, memory="16GB")
    >>> pool.label, pool.of(Devices.accelerated(1, cpus=1))
    ('4 x 16G', <Devices: 4 accelerator, 1 cpu; sequential>)
    >>> DevicePool(accelerators=4, memory="16GiB").label
    '4 x 16GiB'
    """

    name: str = ""
    accelerators: int | None = None
    memory: float | str | None = None
    cpus: int | None = None
    communication: str | None = None
    devices: Devices | None = None

    def __post_init__(self) -> None:
        if isinstance(self.memory, str):
            object.__setattr__(self, "memory", byte_count(self.memory))
        for field, rule in flaws_of(self).items():
            raise OptionError(f"{field} = {shown(getattr(self, field))}: {rule}")

    @property
    def label(self) -> str:
        """The name, or the changes in words."""
        count = "" if self.accelerators is None else str(self.accelerators)
        memory = "" if self.memory is None else given_amount(float(self.memory))
        parts = [
            "" if self.devices is None else f"{sum(kind.count for kind in self.devices.kinds)} devices",
            " x ".join(filter(None, (count, memory))) if memory else count and f"{count} accelerators",
            "" if self.cpus is None else f"{self.cpus} cpus",
            self.communication or "",
        ]
        return self.name or ", ".join(filter(None, parts)) or OWN

    @property
    def names_devices(self) -> bool:
        """Whether the pool says how many devices there are, for workloads that do not."""
        return self.devices is not None or self.accelerators is not None

    def of(self, own: Devices) -> Devices:
        """Return the devices of the pool for a workload whose devices are `own`."""
        given = own if self.devices is None else self.devices
        memory = None if self.memory is None else float(self.memory)
        return changed(given, self.accelerators, memory, self.cpus, self.communication)


def flaws_of(pool: DevicePool) -> dict[str, str]:
    """Return the fields that break a rule, each with the rule."""
    models = one_of(pool.communication, COMMUNICATION_MODELS)
    checks = (
        ("name", isinstance(pool.name, str), "must be a text"),
        ("accelerators", _is_count(pool.accelerators), COUNT_RULE),
        ("cpus", _is_count(pool.cpus), COUNT_RULE),
        ("memory", pool.memory is None or is_amount(pool.memory), MEMORY_RULE),
        (
            "communication",
            is_one_of(pool.communication, (*COMMUNICATION_MODELS, None)),
            f"must be {models}",
        ),
        (
            "devices",
            pool.devices is None or isinstance(pool.devices, Devices),
            "must be a partitioner.Devices, or None",
        ),
    )
    return {field: rule for field, holds, rule in checks if not holds}


def _is_count(value: object) -> bool:
    return value is None or is_count(value, 0, MAX_COUNT)
