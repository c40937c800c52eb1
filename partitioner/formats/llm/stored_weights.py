"""Bytes of parameters in files and servers whose weights are not all of one type: GGUF, quantised models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from partitioner.base.errors import OptionError, one_of, shown
from partitioner.estimation.named_devices import BYTES, TORCH_PREFIX
from partitioner.formats.llm.decoder import DecoderBlock, Dense, Experts

BITS = 8
ENDS = 2.0  # bytes of a parameter outside of blocks in models of narrower blocks
GGUF: Mapping[str, float] = (
    MappingProxyType(  # bits of a weight, its share of the factors of a block included
        {"q4_0": 4.5, "q5_0": 5.5, "q8_0": 8.5, "q4_k": 4.5, "q5_k": 5.5, "q6_k": 6.5625}
    )
)
MIXES: Mapping[str, str] = MappingProxyType({"q4_k_m": "q4_k", "q5_k_m": "q5_k"})
FINER = (
    "q6_k"  # of the values and of the last products of networks in half of a mix's blocks, and of its head
)
OF_80 = ("q4_k", 80, "q5_k")  # a mix's values in the other blocks of a model with this number, in what type
OF_EXPERTS = (8, "q8_0", "q5_k")  # in a mix with this number: keys and values, and the output, if below q5_k
GROUPED: Mapping[str, float] = MappingProxyType({"int4": 4.25})  # 4 bits, and a factor for each 128 weights
NARROW = ("float8", "float8_block", "int8", "float4")
WEIGHT_TYPES = (*BYTES, *GROUPED, *GGUF, *MIXES)


class Place(NamedTuple):
    """Whether a block is a finer one of a mix, and the number of blocks of its model."""

    finer: bool
    blocks: int


ALONE = Place(False, 1)


class WeightBytes(NamedTuple):
    """Bytes of a parameter: in a block, of the finer ones in a mix, of embedding and norms, of the head."""

    block: float
    finer: float
    embedding: float
    head: float

    @property
    def mixed(self) -> bool:
        """Whether the matrices of a block have several types."""
        return self.finer != self.block

    def of_block(self, block: DecoderBlock, hidden: int, count: float, place: Place) -> float:
        """Return the bytes of a block of `count` parameters at a place in a model.

        In a mix the finer blocks (:func:`is_finer`) have finer values and last products of networks, and some
        models more than that: llama.cpp's ``llama_tensor_get_type`` for the types that end in ``_m``.
        """
        if not self.mixed:
            return count * self.block
        attention, network = block.attention, block.network
        experts = 1 if isinstance(network, Dense) else network.count
        down = hidden * network.width * (1 if isinstance(network, Dense) else experts / network.over)
        keys, values = (
            hidden * attention.kv_heads * attention.key,
            hidden * attention.kv_heads * attention.value,
        )
        output = hidden * attention.heads * attention.value
        of_values, of_keys, of_output = self.finer if place.finer else self.block, self.block, self.block
        kind, many, better = OF_80
        shared = attention.kv_heads < attention.heads
        if not place.finer and shared and place.blocks == many and self.block == GGUF[kind] / BITS:
            of_values = GGUF[better] / BITS
        if experts == OF_EXPERTS[0]:
            of_values = of_keys = GGUF[OF_EXPERTS[1]] / BITS
            of_output = max(self.block, GGUF[OF_EXPERTS[2]] / BITS)
        more = ((values, of_values), (keys, of_keys), (output, of_output), (down * place.finer, self.finer))
        return count * self.block + sum(part * (each - self.block) for part, each in more)

    def of_experts(self, network: Dense | Experts, hidden: int, count: float, place: Place) -> float:
        """Return the bytes of `count` parameters of a block's experts, the finer ones of a mix included."""
        if not (self.mixed and place.finer) or isinstance(network, Dense):
            return count * self.block
        down = hidden * network.width * network.count / network.over
        return count * self.block + down * (self.finer - self.block)


def is_finer(place: int, blocks: int) -> bool:
    """Whether a block of a mix has finer matrices: the first and last eighth, and every third between them.

    That is llama.cpp's ``use_more_bits``.

    Examples
    --------
    >>> sum(is_finer(place, 80) for place in range(80))
    40
    """
    eighth = blocks // 8
    return place < eighth or place >= 7 * blocks // 8 or (place - eighth) % 3 == 2


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


# The types of a model that is stored quantised, from the field ``quantization_config`` of its config.

QUANTISED = "quantization_config"
FP8 = ("fp8", "fbgemm_fp8")
BY_BITS = {4: "int4", 8: "int8"}  # of weights alone
BOTH = {("int", 8): "int8", ("float", 8): "float8"}  # of weights and of what they are multiplied with


class StoredTypes(NamedTuple):
    """The type of the factors of products, and that of the weights; None for that of the model."""

    products: str | None = None
    weights: str | None = None


def stored_types(content: Mapping[str, Any]) -> StoredTypes:
    """Return the types of a quantised model that is served, as its config says them.

    Known are FP8 with one factor for a tensor or for blocks (``fp8`` with ``weight_block_size``, as
    DeepSeek-V3), AWQ and GPTQ of 4 or 8 bits, bitsandbytes, and compressed-tensors; of others the types are
    those of the model.

    Examples
    --------
    >>> stored_types({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})
    StoredTypes(products='float8_block', weights=None)
    >>> stored_types({"quantization_config": {"quant_method": "awq", "bits": 4}}).weights
    'int4'
    """
    given = content.get(QUANTISED)
    if not isinstance(given, Mapping):
        return StoredTypes()
    method = given.get("quant_method")
    if method in FP8:
        return StoredTypes("float8_block" if given.get("weight_block_size") else "float8")
    if method in ("awq", "gptq"):
        bits = given.get("bits", given.get("w_bit"))
        return StoredTypes(None, BY_BITS.get(bits) if isinstance(bits, int) else None)
    if method == "bitsandbytes":
        return StoredTypes(
            None, "int4" if given.get("load_in_4bit") else "int8" if given.get("load_in_8bit") else None
        )
    return _of_groups(given.get("config_groups")) if method == "compressed-tensors" else StoredTypes()


def _of_groups(groups: object) -> StoredTypes:
    """Return the types of the first group of compressed-tensors that has weights."""
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            kind = weights.get("type", "int"), weights.get("num_bits")
            if isinstance(group.get("input_activations"), Mapping) and kind in BOTH:
                return StoredTypes(BOTH[kind])
            if kind == ("float", 8):
                return StoredTypes(None, "float8")
            return StoredTypes(None, BY_BITS.get(kind[1]) if isinstance(kind[1], int) else None)
    return StoredTypes()
