"""Named devices: peak speeds, memory, bandwidths and links, as their vendors state them, without sparsity.

``devices.json`` beside this file has them, in the format in which :func:`read_device` reads a device of the
user's own::

    {
      "name": "A100-80",
      "memory_gb": 80, "bandwidth_gb_s": 2039, "peer_gb_s": 300, "host_gb_s": 32,
      "peak_tflops": {"float32": 19.5, "bfloat16": 312},
      "source": "NVIDIA A100 data sheet", "like": "A100-80"
    }

``like`` names the device whose measured curves serve for it (:mod:`partitioner.estimation.device_time`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from types import MappingProxyType
from typing import Any

from partitioner.base.errors import Flaw, OptionError, WorkloadError, one_of, shown
from partitioner.base.files import path_name, read_json
from partitioner.workload.device_validation import is_amount, number_rule

TERA, GIGA = 1e12, 1e9
BYTES: Mapping[str, float] = MappingProxyType(
    {
        "float64": 8,
        "float32": 4,
        "tf32": 4,
        "bfloat16": 2,
        "float16": 2,
        "float8": 1,
        "float8_block": 1,
        "int8": 1,
        "float4": 0.5,
    }
)
TORCH_PREFIX = "torch."
SAME_SPEED = {"float8_block": "float8"}  # with a factor for each block of numbers, as in DeepSeek-V3
SUFFIX = ".json"
SIZES = ("memory_gb", "bandwidth_gb_s")
LINKS = ("peer_gb_s", "host_gb_s")
TEXTS = ("name", "source", "like")
FIELDS = ("aliases", "cpu", *TEXTS, *SIZES, *LINKS, "peak_tflops")


@dataclass(frozen=True)
class NamedDevice:
    """The figures of a device in its vendor's data sheet.

    Parameters
    ----------
    name
        The name, such as ``"H100"``.
    peak
        Operations a second for each type of number, without sparsity; of matrix units where the device has
        some for the type.
    bandwidth
        Bytes a second between the device and its memory.
    memory
        Bytes of its memory.
    source
        Where the figures are stated.
    peer
        Bytes a second that the device sends to the others in its server; None if not known.
    host
        Bytes a second between the device and its host's memory in one direction; None if not known.
    like
        The name of the device whose measured curves serve for it; None for the one with the nearest speed.
    cpu
        Whether its memory is that of the host, so that it pays for no transfers.
    """

    name: str
    peak: Mapping[str, float]
    bandwidth: float
    memory: float
    source: str
    peer: float | None = None
    host: float | None = None
    like: str | None = None
    cpu: bool = False

    def speed(self, dtype: str) -> float:
        """Return the peak operations a second for numbers of a type, such as ``"bfloat16"``.

        Raises
        ------
        OptionError
            If the device has no figure for the type.
        """
        plain = dtype_name(dtype)
        plain = plain if plain in self.peak else SAME_SPEED.get(plain, plain)
        if plain not in self.peak:
            raise OptionError(
                f"dtype = {shown(dtype)}: device {self.name} has speeds for {', '.join(self.peak)}"
            )
        return self.peak[plain]


def device_from(data: Any, source: str) -> NamedDevice:
    """Return the device that a JSON object describes.

    Raises
    ------
    WorkloadError
        Naming the file and every field that breaks a rule.

    Examples
    --------
    >>> sizes = {"memory_gb": 16, "bandwidth_gb_s": 500, "peak_tflops": {"float16": 50}}
    >>> device_from({"name": "mine"} | sizes, "mine.json").speed("float16")
    50000000000000.0
    """
    if not isinstance(data, Mapping):
        raise WorkloadError([Flaw("device", "", shown(data), "must be an object")], source)
    flaws = [*_unknown(data), *_cpu_flaws(data), *_text_flaws(data), *_number_flaws(data), *_peak_flaws(data)]
    if flaws:
        raise WorkloadError(flaws, source)
    peer, host = (None if data.get(name) is None else data[name] * GIGA for name in LINKS)
    peak = {dtype_name(dtype): value * TERA for dtype, value in data["peak_tflops"].items()}
    return NamedDevice(
        data["name"],
        MappingProxyType(peak),
        data["bandwidth_gb_s"] * GIGA,
        data["memory_gb"] * GIGA,
        data.get("source") or source,
        peer,
        host,
        data.get("like"),
        data.get("cpu", False),
    )


def _unknown(data: Mapping[str, Any]) -> list[Flaw]:
    return [
        Flaw("device", shown(name), "", f"is unknown; a field is {one_of(name, FIELDS)}")
        for name in data
        if name not in FIELDS
    ]


def _cpu_flaws(data: Mapping[str, Any]) -> list[Flaw]:
    given = data.get("cpu", False)
    return [] if isinstance(given, bool) else [Flaw("device", "cpu", shown(given), "must be true or false")]


def _text_flaws(data: Mapping[str, Any]) -> list[Flaw]:
    return [
        Flaw("device", name, shown(data.get(name)), "must be a text that is not empty")
        for name in TEXTS
        if (name == "name" or data.get(name) is not None)
        and not (isinstance(data.get(name), str) and data.get(name))
    ]


def _number_flaws(data: Mapping[str, Any]) -> list[Flaw]:
    given = [name for name in (*SIZES, *LINKS) if name in SIZES or data.get(name) is not None]
    return [
        Flaw("device", name, shown(data.get(name)), number_rule(data.get(name)))
        for name in given
        if not (is_amount(data.get(name)) and data[name])
    ]


def _peak_flaws(data: Mapping[str, Any]) -> list[Flaw]:
    peak = data.get("peak_tflops")
    if not isinstance(peak, Mapping) or not peak:
        return [Flaw("device", "peak_tflops", shown(peak), "must have a speed for at least one type")]
    flaws = [
        Flaw("device", "peak_tflops", shown(dtype), f"must be {one_of(dtype, BYTES)}")
        for dtype in peak
        if dtype not in BYTES
    ]
    return flaws + [
        Flaw("device", f"peak_tflops.{dtype}", shown(value), number_rule(value))
        for dtype, value in peak.items()
        if not (is_amount(value) and value)
    ]


def read_device(path: str | os.PathLike[str]) -> NamedDevice:
    """Return the device that a JSON file describes, in the format that this module shows.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or naming every field that breaks a rule.
    """
    return device_from(read_json(path), path_name(path))


def named_device(name: str | os.PathLike[str] | NamedDevice) -> NamedDevice:
    """Return the device of a name; upper and lower case, spaces, hyphens and underscores do not matter.

    A name that ends in ``.json`` is that of a file, which :func:`read_device` reads; a device is returned as
    it is.

    Raises
    ------
    OptionError
        If there is none of that name; the message lists the names, with the nearest ones.
    WorkloadError
        If a file cannot be read or breaks a rule.

    Examples
    --------
    >>> named_device("rtx4090").bandwidth
    1008000000000.0
    """
    if isinstance(name, NamedDevice):
        return name
    if isinstance(name, os.PathLike) or (isinstance(name, str) and name.endswith(SUFFIX)):
        return read_device(name)
    wanted = _plain(name) if isinstance(name, str) else None
    for known in (*DEVICES, *ALIASES):
        if _plain(known) == wanted:
            return DEVICES[ALIASES.get(known, known)]
    raise OptionError(
        f"device = {shown(name)}: must be one of {', '.join(DEVICES)}, or a JSON file of a device"
        f"{_meant(wanted)}"
    )


def _meant(wanted: str | None) -> str:
    """Return a question that names the devices whose first word was given, else the most similar one."""
    plain = {_plain(known): known for known in DEVICES}
    near = [known for known in DEVICES if known.lower().replace("-", " ").split()[0] == wanted]
    near = near or [plain[text] for text in get_close_matches(wanted or "", plain, 1)]
    return f"; did you mean {' or '.join(repr(known) for known in near)}?" if near else ""


def devices_named(device: object) -> dict[str, NamedDevice]:
    """Return the figures of one device or of several, by the names given for them.

    Raises
    ------
    OptionError
        If a name is not known, or two of several devices are the same.
    """
    several = isinstance(device, list | tuple)
    given: Sequence[Any] = device if several else [device]  # type: ignore[assignment]
    if not given:
        raise OptionError("device = []: must name at least one device")
    found = [named_device(each) for each in given]
    if len({each.name for each in found}) < len(found):
        raise OptionError(f"device = {shown(list(given))}: must not name a device twice")
    return {
        each if several and isinstance(each, str) and not each.endswith(SUFFIX) else one.name: one
        for each, one in zip(given, found, strict=True)
    }


def dtype_name(dtype: str) -> str:
    """Return the name of a type of numbers without the prefix of torch.

    Raises
    ------
    OptionError
        If it is not a known type.

    Examples
    --------
    >>> dtype_name("torch.bfloat16"), BYTES[dtype_name("float8")]
    ('bfloat16', 1)
    """
    plain = dtype.removeprefix(TORCH_PREFIX) if isinstance(dtype, str) else dtype
    if not isinstance(plain, str) or plain not in BYTES:
        raise OptionError(f"dtype = {shown(dtype)}: must be {one_of(plain, BYTES)}")
    return plain


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def _packaged() -> tuple[dict[str, NamedDevice], dict[str, str]]:
    """Return the devices of ``devices.json`` by name, and the name for each other name."""
    text = resources.files("partitioner.estimation").joinpath("devices.json").read_text(encoding="utf-8")
    records = json.loads(text)
    found = {record["name"]: device_from(record, "devices.json") for record in records}
    return found, {other: record["name"] for record in records for other in record.get("aliases", ())}


_FOUND, ALIASES = _packaged()
DEVICES: Mapping[str, NamedDevice] = MappingProxyType(_FOUND)
