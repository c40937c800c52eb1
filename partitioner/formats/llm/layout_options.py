"""The options of a config that say how its layers are divided, computed again, and kept in memory."""

from __future__ import annotations

from typing import Any, TypedDict

from partitioner.base.errors import OptionError, shown
from partitioner.formats.llm.memory import NumberBytes, number_bytes
from partitioner.formats.llm.parallelism import Parallelism
from partitioner.formats.llm.server import ProfilingRun


class LayoutOptions(TypedDict, total=False):
    """Options of :func:`partitioner.load_config` beyond what a model computes and on which device.

    Parameters
    ----------
    tensor, sequence_parallel, context_parallel, expert_parallel, data_parallel, zero, recompute, attention, \
    fused_gate, fused_gradients, copied_gradients, fused_casts, overlapped, routing
        See :class:`partitioner.formats.llm.parallelism.Parallelism`. The graph then has the times and the
        memory of one of `tensor` * `context_parallel` devices, each of which is a device of the workload.
    weight_dtype, gradient_dtype, cache_dtype
        The types of the numbers of parameters, gradients and cache; None for those of the model: with
        products in one byte or less the cache has two bytes, as have weights and gradients in training.
        Weights may also be of a type of GGUF, such as ``"q4_k_m"``, or ``"int4"`` with a factor for 128 of
        them.
    profile_tokens, profile_sequences
        With `generate`: the largest batch that a server runs before it finds what it can cache, such as
        vLLM's ``max_num_batched_tokens`` (without chunks of prompts that is ``max_model_len``) and
        ``max_num_seqs``. Its peak becomes the workspace. None for no such run.
    optimizer
        ``"adam"`` (8 bytes a parameter), ``"momentum"`` (4), ``"sgd"`` (0), each with 4 more for a copy of
        narrower parameters, or ``"adam_8bit"`` (2).
    optimizer_bytes
        Bytes that the optimizer keeps of a parameter, in place of `optimizer`; None for those of Adam.
    """

    tensor: int
    sequence_parallel: bool
    context_parallel: int
    expert_parallel: int
    data_parallel: int
    zero: int
    recompute: str
    attention: str
    fused_gate: bool
    fused_gradients: bool
    copied_gradients: bool
    fused_casts: bool
    overlapped: bool
    routing: str | None
    weight_dtype: str | None
    gradient_dtype: str | None
    cache_dtype: str | None
    optimizer: str | None
    optimizer_bytes: float | None
    profile_tokens: int | None
    profile_sequences: int | None


LAYOUT_OPTIONS = tuple(LayoutOptions.__annotations__)
DIVISION = tuple(Parallelism.__dataclass_fields__)
_PROFILE = ("profile_tokens", "profile_sequences")


def profiling_run(layout: LayoutOptions, generate: int | None) -> ProfilingRun | None:
    """Return the largest batch of a server; None if none is given.

    Raises
    ------
    OptionError
        If only one of the options is given, or nothing is generated.
    """
    given: list[Any] = [layout.get(name) for name in _PROFILE]
    if given == [None, None]:
        return None
    if generate is None:
        raise OptionError(f"profile_tokens = {shown(given[0])}: needs the option generate")
    return ProfilingRun(*given)


def parallelism_of(layout: LayoutOptions) -> Parallelism:
    """Return how layers are divided; the options that say nothing of it are left out."""
    return Parallelism(**{name: value for name, value in layout.items() if name in DIVISION})  # type: ignore[arg-type]


def numbers_of(dtype: str, training: bool, layout: LayoutOptions) -> NumberBytes:
    """Return the bytes of numbers by purpose, for products in `dtype`."""
    given = {name: value for name, value in layout.items() if name not in (*DIVISION, *_PROFILE)}
    return number_bytes(dtype, training, **given)  # type: ignore[arg-type]
