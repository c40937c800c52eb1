"""The layers of a decoder with times by a roofline, memory, cache and shared parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.estimation.named_devices import BYTES, NamedDevice
from partitioner.estimation.roofline import roofline_time
from partitioner.formats.llm.decoder import Decoder, DecoderBlock
from partitioner.formats.llm.operators import Operators, TokenRun, block_operators, lookup, norm, product
from partitioner.workload.layer import Layer

BACKWARD = 2  # arithmetic and traffic of a backward pass over those of the forward pass
WEIGHT = ".weight"


@dataclass(frozen=True)
class Setting:
    """How a model runs: what passes it at once, on which device, with which type of numbers.

    `optimizer` is the number of bytes that the optimizer keeps of a parameter.
    """

    run: TokenRun
    device: NamedDevice
    dtype: str
    efficiency: float
    training: bool
    optimizer: float

    @property
    def width(self) -> float:
        """Bytes of a number."""
        return BYTES[self.dtype]


def layers_of(decoder: Decoder, setting: Setting) -> list[Layer]:
    """Return the layers of a decoder, first to last, each one module of the model."""
    names, hidden, run = decoder.names, decoder.hidden, setting.run
    embedded = decoder.embedded or hidden
    found = _entries(decoder, embedded, setting)
    blocks = [
        _block_layer(f"{names.blocks}.{i}", block, hidden, setting) for i, block in enumerate(decoder.blocks)
    ]
    entries = [layer.name for layer in found if layer.name != names.embedding or not names.project_in]
    found += [replace(blocks[0], inputs=tuple(entries)), *blocks[1:]]
    if names.norm:
        found.append(_layer(names.norm, [norm(run.tokens, hidden, decoder.norm_bias)], setting, hidden))
    if names.project_out:
        found.append(_projection(names.project_out, hidden, embedded, setting))
    head = product(run.tokens, embedded, decoder.vocabulary, decoder.head_bias)
    logits = replace(head, kept=head.kept + run.tokens * decoder.vocabulary)
    weights = _vocabulary_weights(decoder, setting)
    held = [weights[-1]] if decoder.tied or decoder.predictors else []
    found.append(replace(_layer(names.head, [logits], setting, 0), shared=dict(held)))
    return found + _predictors(decoder, setting, blocks[-1].name, dict(weights))


def _entries(decoder: Decoder, embedded: int, setting: Setting) -> list[Layer]:
    """Return the layers before the first block: embeddings of tokens and positions, a projection."""
    names, hidden, tokens = decoder.names, decoder.hidden, setting.run.tokens
    first = _layer(names.embedding, [lookup(tokens, decoder.vocabulary, embedded)], setting, embedded)
    held = _vocabulary_weights(decoder, setting)[:1] if decoder.tied or decoder.predictors else []
    found = [replace(first, inputs=(), shared=dict(held))]
    if names.project_in:
        found.append(_projection(names.project_in, embedded, hidden, setting))
    if decoder.positions:
        table = _layer(names.positions, [lookup(tokens, decoder.positions, hidden)], setting, hidden)
        found.append(replace(table, inputs=()))
    return found


def _vocabulary_weights(decoder: Decoder, setting: Setting) -> list[tuple[str, float]]:
    """Return name and bytes of the embedding's weights and, if it has its own, of the head's."""
    paths = [decoder.names.embedding] if decoder.tied else [decoder.names.embedding, decoder.names.head]
    nbytes = decoder.vocabulary * (decoder.embedded or decoder.hidden) * setting.width
    return [(path + WEIGHT, nbytes) for path in paths]


def _predictors(decoder: Decoder, setting: Setting, last: str, shared: dict[str, float]) -> list[Layer]:
    """Return the layers that predict further tokens; they hold embedding and head, shared with the others."""
    hidden, run, names = decoder.hidden, setting.run, decoder.names
    head = product(run.tokens, hidden, decoder.vocabulary)
    found: list[Layer] = []
    for i, block in enumerate(decoder.predictors, len(decoder.blocks)):
        operators = [
            *[norm(run.tokens, hidden)] * 3,
            product(run.tokens, 2 * hidden, hidden),
            *block_operators(block, hidden, run),
            lookup(run.tokens, decoder.vocabulary, hidden),
            replace(head, parameters=0.0) if decoder.tied else head,
        ]
        layer = _layer(f"{names.blocks}.{i}", operators, setting, hidden, block)
        found.append(replace(layer, inputs=(found[-1].name if found else last,), shared=shared))
    return found


def _block_layer(name: str, block: DecoderBlock, hidden: int, setting: Setting) -> Layer:
    return _layer(name, block_operators(block, hidden, setting.run), setting, hidden, block)


def _projection(name: str, inner: int, outer: int, setting: Setting) -> Layer:
    return _layer(name, [product(setting.run.tokens, inner, outer)], setting, outer)


def _layer(
    name: str, operators: Operators, setting: Setting, outer: int, block: DecoderBlock | None = None
) -> Layer:
    """Return the layer of some operators, which sends `outer` numbers for each token."""
    run, width = setting.run, setting.width
    flops = np.array([one.flops for one in operators])
    traffic = np.array([one.read + one.moved for one in operators]) * width
    times = roofline_time(flops, traffic, setting.device, setting.dtype, efficiency=setting.efficiency)
    count = sum(one.parameters for one in operators)
    cache = block.attention.cache * width if block is not None else 0.0
    seen = run.context + run.sequence
    if block is not None and block.attention.window is not None:
        seen = min(seen, block.attention.window)
    training = setting.training
    return Layer(
        name,
        forward=float(times.sum()),
        backward=float(times.sum()) * BACKWARD if training else None,
        parameters=count * width,
        activations=sum(one.kept for one in operators) * width,
        output=run.tokens * outer * width,
        optimizer=count * setting.optimizer,
        size=0.0 if training else run.batch * seen * cache,
        more={"parameterCount": count, "flops": float(flops.sum())}
        | ({"cachePerToken": cache} if cache else {}),
    )
