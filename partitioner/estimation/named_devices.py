"""Peak speeds and memory bandwidths of named devices, as their vendors state them, without sparsity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from partitioner.base.errors import OptionError, one_of, shown

TERA, GIGA = 1e12, 1e9
BYTES: Mapping[str, float] = MappingProxyType(
    {
        "float64": 8,
        "float32": 4,
        "tf32": 4,
        "bfloat16": 2,
        "float16": 2,
        "float8": 1,
        "int8": 1,
        "float4": 0.5,
    }
)
TORCH_PREFIX = "torch."


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
    """

    name: str
    peak: Mapping[str, float]
    bandwidth: float
    memory: float
    source: str

    def speed(self, dtype: str) -> float:
        """Return the peak operations a second for numbers of a type, such as ``"bfloat16"``.

        Raises
        ------
        OptionError
            If the device has no figure for the type.
        """
        plain = dtype_name(dtype)
        if plain not in self.peak:
            raise OptionError(
                f"dtype = {shown(dtype)}: device {self.name} has speeds for {', '.join(self.peak)}"
            )
        return self.peak[plain]


def _device(
    name: str, source: str, gigabytes: float, gigabytes_per_second: float, **teraflops: float
) -> NamedDevice:
    peak = {dtype: value * TERA for dtype, value in teraflops.items()}
    return NamedDevice(name, MappingProxyType(peak), gigabytes_per_second * GIGA, gigabytes * GIGA, source)


_AMPERE = {"float64": 19.5, "float32": 19.5, "tf32": 156, "bfloat16": 312, "float16": 312, "int8": 624}
_HOPPER = {
    "float64": 66.9, "float32": 66.9, "tf32": 494.7, "bfloat16": 989.4, "float16": 989.4,
    "float8": 1978.9, "int8": 1978.9,
}  # fmt: skip
_BLACKWELL = {
    "float64": 37, "float32": 75, "tf32": 1100, "bfloat16": 2250, "float16": 2250,
    "float8": 4500, "int8": 4500, "float4": 9000,
}  # fmt: skip
_CDNA3 = {
    "float64": 163.4, "float32": 163.4, "tf32": 653.7, "bfloat16": 1307.4, "float16": 1307.4,
    "float8": 2614.9, "int8": 2614.9,
}  # fmt: skip
_ADA = {
    "float64": 1.29, "float32": 82.6, "tf32": 82.6, "bfloat16": 165.2, "float16": 165.2,
    "float8": 330.3, "int8": 660.6,
}  # fmt: skip
_SAPPHIRE_RAPIDS = {"float64": 3.584, "float32": 7.168, "bfloat16": 229.4, "int8": 458.8}
DEVICES: Mapping[str, NamedDevice] = MappingProxyType(
    {
        device.name: device
        for device in (
            _device("A100-40", "NVIDIA A100 data sheet, SXM 40 GB", 40, 1555, **_AMPERE),
            _device("A100-80", "NVIDIA A100 data sheet, SXM 80 GB", 80, 2039, **_AMPERE),
            _device(
                "H100", "NVIDIA H100 data sheet, SXM; half of the figures with sparsity", 80, 3350, **_HOPPER
            ),
            _device(
                "H200", "NVIDIA H200 data sheet, SXM; half of the figures with sparsity", 141, 4800, **_HOPPER
            ),
            _device(
                "B200",
                "NVIDIA Blackwell data sheet, one GPU of HGX B200; half of the figures with sparsity",
                180,
                7700,
                **_BLACKWELL,
            ),
            _device("MI300X", "AMD Instinct MI300X data sheet", 192, 5300, **_CDNA3),
            _device(
                "RTX 4090",
                "NVIDIA Ada whitepaper, GeForce RTX 4090; float16 and float8 with float32 sums",
                24,
                1008,
                **_ADA,
            ),
            _device(
                "CPU",
                "one socket of 56 cores at 2 GHz with AVX-512 and AMX and eight channels of DDR5-4800 "
                "(Intel Xeon Platinum 8480+): cores x clock x operations a cycle",
                512,
                307.2,
                **_SAPPHIRE_RAPIDS,
            ),
        )
    }
)


def named_device(name: str) -> NamedDevice:
    """Return the device of a name; upper and lower case, spaces, hyphens and underscores do not matter.

    Raises
    ------
    OptionError
        If there is none of that name; the message lists the names, with the nearest one.

    Examples
    --------
    >>> named_device("rtx4090").bandwidth
    1008000000000.0
    """
    wanted = _plain(name) if isinstance(name, str) else None
    for known, device in DEVICES.items():
        if _plain(known) == wanted:
            return device
    raise OptionError(f"device = {shown(name)}: must be {one_of(name, DEVICES)}")


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
