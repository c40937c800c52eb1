"""Pools of devices with another number of devices of a kind, or with other memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from partitioner.base.errors import OptionError, one_of, shown
from partitioner.evaluation.loads import DeviceLoad
from partitioner.workload.devices import DeviceKind, Devices


def kind_in_question(devices: Devices, name: object = None) -> DeviceKind:
    """Return the kind of that name; for None the only kind that pays for transfers, or else the only kind.

    Raises
    ------
    OptionError
        If no kind with devices has that name, or there are several kinds to choose from.

    Examples
    --------
    >>> kind_in_question(Devices.accelerated(2, cpus=1)).name
    'accelerator'
    """
    present = [kind for kind in devices.kinds if kind.count]
    chosen = [kind for kind in present if isinstance(name, str) and kind.name == name]
    if name is None:
        chosen = [kind for kind in present if kind.pays_communication] or present
    if len(chosen) != 1:
        raise OptionError(f"kind = {shown(name)}: must be {one_of(name, [kind.name for kind in present])}")
    return chosen[0]


def with_count(devices: Devices, name: str, count: int) -> Devices:
    """Return the devices with another number of devices of a kind.

    Raises
    ------
    OptionError
        If the devices are in levels or groups.

    Examples
    --------
    >>> with_count(Devices.accelerated(2, cpus=1), "accelerator", 3)
    <Devices: 3 accelerator, 1 cpu; sequential>
    """
    for field in ("levels", "groups"):
        if getattr(devices, field):
            raise OptionError(f"{field} of devices: must be empty where the number of devices is looked for")
    return replace(devices, kinds=_changed(devices, name, count=count))


def with_memory(devices: Devices, name: str, memory: float | None) -> Devices:
    """Return the devices with another memory of each device of a kind, None for no limit.

    Examples
    --------
    >>> with_memory(Devices.accelerated(2, memory=4.0), "accelerator", 5.0).kinds[0].memory
    5.0
    """
    return replace(devices, kinds=_changed(devices, name, memory=memory))


def most_held(loads: Sequence[DeviceLoad], name: str) -> float:
    """Return the largest memory that a device of a kind holds, 0 if there is none."""
    return max((load.memory for load in loads if load.kind == name), default=0.0)


def _changed(devices: Devices, name: str, **fields: float | None) -> tuple[DeviceKind, ...]:
    return tuple(replace(kind, **fields) if kind.name == name else kind for kind in devices.kinds)  # type: ignore[arg-type]
