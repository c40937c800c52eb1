"""Memory of a decoder's layers: states by type of number, activations by what is computed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from partitioner.base.argument_types import check_word
from partitioner.base.errors import OptionError
from partitioner.estimation.named_devices import BYTES, dtype_name
from partitioner.estimation.optimizer import optimizer_bytes_of
from partitioner.formats.llm.decoder import DecoderBlock, Dense
from partitioner.formats.llm.operators import Operators, TokenRun, alternate_products
from partitioner.formats.llm.parallelism import Parallelism
from partitioner.formats.llm.stored_weights import WeightBytes, weight_bytes
from partitioner.workload.training_states import COPY, OPTIMIZERS

TRAINED = "bfloat16"  # weights that are trained with products in one byte or less
NARROWEST = 2.0  # bytes: what is computed between products in types of one byte or less is in two
MASK = 1.0  # bytes of a number in the mask of a dropout


@dataclass(frozen=True)
class NumberBytes:
    """Bytes of a number by its purpose, and those that the optimizer keeps of a parameter.

    Parameters
    ----------
    computed
        Of activations and of what is sent.
    factors
        Of the inputs of products.
    weights
        Of a parameter, by where it is.
    gradients
        Of the gradient of a parameter.
    cache
        Of keys and values that are kept for later tokens.
    optimizer
        Of the optimizer's state of a parameter, a copy of the parameter in four bytes included.
    """

    computed: float
    factors: float
    weights: WeightBytes
    gradients: float
    cache: float
    optimizer: float


def number_bytes(
    dtype: str,
    training: bool,
    *,
    weight_dtype: str | None = None,
    gradient_dtype: str | None = None,
    cache_dtype: str | None = None,
    optimizer: str | None = None,
    optimizer_bytes: float | None = None,
) -> NumberBytes:
    """Return the bytes of numbers by purpose of a model whose products are computed in `dtype`.

    Types of one byte or less are those of the factors of products: activations and cache then have two bytes,
    and, for training, weights and gradients too.

    Raises
    ------
    OptionError
        If an option is not in its range, or two of them say the same.

    Examples
    --------
    >>> found = number_bytes("bfloat16", True, gradient_dtype="float32")
    >>> found.weights.block, found.gradients, found.optimizer
    (2, 4, 12.0)
    >>> number_bytes("int8", False).weights.block, number_bytes("int8", False).cache
    (1, 2.0)
    """
    width = BYTES[dtype_name(dtype)]
    computed = max(width, NARROWEST)
    usual = TRAINED if training and width < computed else dtype
    weights = weight_bytes(usual if weight_dtype is None else weight_dtype)
    gradients = _width("gradient_dtype", gradient_dtype, weights.block)
    cache = _width("cache_dtype", cache_dtype, computed)
    return NumberBytes(
        computed, width, weights, gradients, cache, _state(optimizer, optimizer_bytes, weights.block)
    )


def _width(option: str, dtype: str | None, default: float) -> float:
    if dtype is None:
        return default
    try:
        return BYTES[dtype_name(dtype)]
    except OptionError as error:
        raise OptionError(str(error).replace("dtype", option, 1)) from None


def _state(optimizer: str | None, nbytes: float | None, weights: float) -> float:
    """Return the bytes of the optimizer's state of a parameter of `weights` bytes."""
    if optimizer is None:
        return optimizer_bytes_of(nbytes, weights)
    check_word("optimizer", optimizer, tuple(OPTIMIZERS))
    if nbytes is not None:
        raise OptionError("optimizer and optimizer_bytes say the same: give one of them")
    return OPTIMIZERS[optimizer] + COPY * (weights < COPY and optimizer != "adam_8bit")


class Activations(NamedTuple):
    """Bytes that a layer keeps of a sample for its backward pass, and those that it needs while it runs."""

    held: float
    working: float


def kept_of_block(
    block: DecoderBlock,
    hidden: int,
    operators: Operators,
    run: TokenRun,
    parallelism: Parallelism,
    numbers: NumberBytes,
) -> Activations:
    """Return what a block keeps of a sample.

    Without recomputation these are the inputs of its operators, two masks of dropout, and, if the kernel of
    attention is not fused, for every pair of tokens the softmax, its mask and what the mask leaves. Selective
    recomputation does not keep these; elementwise recomputation keeps no inputs of products that norms and
    activation functions give either; recomputation of alternate products keeps the block's input, what
    attention gives, and the results of the other products; full recomputation keeps the block's input alone.
    What is computed again is held while the block runs (Korthikanti et al. 2022, Section 4.1, Equations 1 to
    6).
    """
    products = sum(one.kept for one in operators if one.is_product) * numbers.factors
    others = sum(one.kept for one in operators if not one.is_product) * numbers.computed
    attended = run.tokens * block.attention.heads * block.attention.value * numbers.factors
    gate = _gate(block, run) * numbers.computed
    masks = 2 * MASK * block.dropout * run.between * hidden
    inputs = products + others - gate * parallelism.fused_gate + masks
    pairs = run.batch * run.sequence * (run.context + run.sequence) / run.spread * block.attention.heads
    square = numbers.computed + block.dropout * (numbers.computed + MASK)
    square *= pairs * (parallelism.attention == "unfused")
    entered = run.between * hidden * numbers.computed
    held = {
        "none": inputs + square,
        "selective": inputs,
        "elementwise": others - gate + attended + masks,
        "alternate": entered
        + attended
        + masks
        + alternate_products(block, hidden, run)[1] * numbers.computed,
        "full": entered,
    }[parallelism.recompute]
    return Activations(held, 0.0 if parallelism.recompute == "none" else inputs + square - held)


def _gate(block: DecoderBlock, run: TokenRun) -> float:
    """Return the numbers that an activation function gives and a gate is multiplied with."""
    network = block.network
    if isinstance(network, Dense):
        return run.tokens * network.width * network.gated
    return run.tokens * (network.top * network.width + network.shared)
