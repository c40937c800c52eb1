"""The device of torch that stands for each device of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from partitioner.base.errors import OptionError, shown

HOST = "cpu"


def torch_devices(names: Iterable[str], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a device of torch for each name: the given ones, else CUDA's in order, else the CPU for all.

    Raises
    ------
    OptionError
        If a name has no device, or a device is unknown to torch or not in this machine.

    Examples
    --------
    >>> torch_devices(["accelerator0"], {"accelerator0": "cpu"})
    {'accelerator0': device(type='cpu')}
    """
    return {name: _device(name, given) for name in names} if given is not None else _default(list(names))


def _default(names: list[str]) -> dict[str, Any]:
    accelerators = [name for name in names if not name.startswith(HOST)]
    enough = torch.cuda.is_available() and torch.cuda.device_count() >= len(accelerators)
    found = {name: torch.device("cuda", i) for i, name in enumerate(accelerators)} if enough else {}
    return {name: found.get(name, torch.device(HOST)) for name in names}


def _device(name: str, given: Mapping[str, Any]) -> Any:
    if not isinstance(given, Mapping) or name not in given:
        raise OptionError(f"devices = {shown(given)}: must have a device of torch for {shown(name)}")
    try:
        device = torch.device(given[name])
    except (RuntimeError, TypeError) as error:
        line = str(error).partition("\n")[0]
        raise OptionError(f"devices: {shown(given[name])} for {shown(name)}: {line}") from None
    if device.type != "cuda":
        return device
    index, count = device.index or 0, torch.cuda.device_count()
    if index >= count:
        raise OptionError(f"devices: {device} for {shown(name)}: this machine has {count} CUDA devices")
    return torch.device("cuda", index)
