"""The types and sizes of a model's tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from partitioner.estimation.named_devices import BYTES

# Of each type of ONNX the bits of a number, and the name under which devices have a speed for it.
TYPES: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "DOUBLE": (64, "float64"),
        "FLOAT": (32, "float32"),
        "FLOAT16": (16, "float16"),
        "BFLOAT16": (16, "bfloat16"),
        **{f"FLOAT8{kind}": (8, "float8") for kind in ("E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ", "E8M0")},
        "FLOAT4E2M1": (4, "float4"),
        **{f"{sign}INT{bits}": (bits, "int8") for sign in ("", "U") for bits in (2, 4, 8)},
        **{f"{sign}INT{bits}": (bits, "") for sign in ("", "U") for bits in (16, 32, 64)},
        "BOOL": (8, ""),
        "COMPLEX64": (64, ""),
        "COMPLEX128": (128, ""),
    }
)
FLOATS = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class OnnxTensor:
    """The shape of a tensor, the type of its numbers, and its bytes.

    `dtype` is empty for numbers that devices have no speed for, such as indices.
    """

    shape: tuple[int, ...]
    dtype: str
    nbytes: int

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def is_weight(self) -> bool:
        """Whether it looks like a parameter, and not like a scalar, a shape or a mask."""
        return self.count > 1 and (self.dtype in FLOATS or (bool(self.dtype) and len(self.shape) > 1))


def tensor_of(kind: str, shape: tuple[int, ...], dtype: str | None = None) -> OnnxTensor | None:
    """Return the tensor of a type of ONNX, None if its bytes are not known; floats become `dtype`.

    Examples
    --------
    >>> tensor_of("FLOAT", (2, 3)).nbytes, tensor_of("FLOAT", (2, 3), "bfloat16").nbytes
    (24, 12)
    >>> tensor_of("UINT4", (3,)).nbytes, tensor_of("STRING", (3,))
    (2, None)
    """
    if kind not in TYPES or any(size < 0 for size in shape):
        return None
    bits, own = TYPES[kind]
    wanted = dtype if dtype is not None and own in FLOATS else own
    bits = int(8 * BYTES[wanted]) if wanted != own else bits
    return OnnxTensor(shape, wanted, -(-math.prod(shape) * bits // 8))


def sized(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor in a model's own words, None if it is not known."""
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return None
    found = value.type.tensor_type.shape.dim
    if any(dimension.WhichOneof("value") != "dim_value" for dimension in found):
        return None
    return tuple(dimension.dim_value for dimension in found)
