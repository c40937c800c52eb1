"""Bytes of parameters in files and servers whose weights are not all of one type: GGUF, quantised models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from partitioner.base.errors import OptionError, one_of, shown
from partitioner.estimation.named_devices import BYTES, TORCH_PREFIX
from partitioner.formats.llm.decoder import DecoderBlock, Dense

BITS = 8
ENDS = 2.0  # bytes of a parameter outside of blocks in models of narrower blocks
GGUF: Mapping[str, float] = (
    MappingProxyType(  # bits of a weight, its share of the factors of a block included
        {"q4_0": 4.5, "q5_0": 5.5, "q8_0": 8.5, "q4_k": 4.5, "q5_k": 5.5, "q6_k": 6.5625}
    )
)
MIXES: Mapping[str, str] = MappingProxyType({"q4_k_m": "q4_k", "q5_k_m": "q5_k"})
FINER = "q6_k"  # of half of the values and of the last products of networks in a mix, and of its head
GROUPED: Mapping[str, float] = MappingProxyType({"int4": 4.25})  # 4 bits, and a factor for each 128 weights
NARROW = ("float8", "float8_block", "int8", "float4")
WEIGHT_TYPES = (*BYTES, *GROUPED, *GGUF, *MIXES)


class WeightBytes(NamedTuple):
    """Bytes of a parameter: in a block, of the finer ones in a mix, of embedding and norms, of the head."""

    block: float
    finer: float
    embedding: float
    head: float

    def of_block(self, block: DecoderBlock, hidden: int, count: float) -> float:
        """Return the bytes of a block of `count` parameters.

        In a mix half of the blocks have finer values and last products of networks (llama.cpp's rule for the
        types that end in ``_m``); each block is counted as the mean of both.
        """
        if self.finer == self.block:
            return count * self.block
        attention, network = block.attention, block.network
        down = network.width * (1 if isinstance(network, Dense) else network.count / network.over)
        finer = hidden * (attention.kv_heads * attention.value + down)
        return count * self.block + finer * (self.finer - self.block) / 2


def weight_bytes(dtype: str) -> WeightBytes:
    """Return the bytes of parameters by where they are.

    Types of one byte or less are those of blocks: embedding, norms and head have two bytes, as in the models
    that vLLM reads. ``"int4"`` has a factor of two bytes for each 128 weights. Types of GGUF are those of all
    matrices, where a file of a mix has some in finer types.

    Raises
    ------
    OptionError
        If the type is not known.

    Examples
    --------
    >>> weight_bytes("bfloat16").head, weight_bytes("int8").block, weight_bytes("int8").head
    (2, 1, 2.0)
    >>> weight_bytes("q4_k_m").block * 8, weight_bytes("q4_k_m").head * 8
    (4.5, 6.5625)
    """
    plain = dtype.removeprefix(TORCH_PREFIX) if isinstance(dtype, str) else dtype
    if plain in MIXES:
        base, finer = GGUF[MIXES[plain]] / BITS, GGUF[FINER] / BITS
        return WeightBytes(base, finer, base, finer)
    if plain in GGUF:
        each = GGUF[plain] / BITS
        return WeightBytes(each, each, each, max(each, GGUF[FINER] / BITS))
    if plain in GROUPED:
        return WeightBytes(GROUPED[plain] / BITS, GROUPED[plain] / BITS, ENDS, ENDS)
    if plain not in BYTES:
        raise OptionError(f"weight_dtype = {shown(dtype)}: must be {one_of(plain, WEIGHT_TYPES)}")
    each = BYTES[plain]
    ends = ENDS if plain in NARROW else each
    return WeightBytes(each, each, ends, ends)
