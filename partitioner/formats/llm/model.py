"""The layers of a decoder with times by a roofline, memory, cache and shared parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from partitioner.base.errors import OptionError, one_of, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.named_devices import NamedDevice
from partitioner.formats.llm.collectives import (
    NOTHING,
    SERVER,
    Exchanges,
    Links,
    exchanges_of_block,
    exchanges_of_ends,
    gathered_states,
)
from partitioner.formats.llm.decoder import Decoder, DecoderBlock
from partitioner.formats.llm.memory import Activations, NumberBytes, kept_of_block
from partitioner.formats.llm.operators import (
    Operators,
    TokenRun,
    block_operators,
    expert_parameters,
    lookup,
    loss,
    norm,
    product,
)
from partitioner.formats.llm.parallelism import Parallelism
from partitioner.formats.llm.stored_weights import ALONE, Place, is_finer
from partitioner.formats.llm.times import PassTimes, expert_time, pass_times, update_times
from partitioner.workload.device_validation import is_amount
from partitioner.workload.layer import Layer

WEIGHT = ".weight"
TOLD = ("collectiveTime", "updateTime")  # fields of nodes: what collectives and updates add to both passes
OCCUPIED = (
    16 / 132
)  # of an H100's multiprocessors, by a collective over NVLink: "16 or more" (NVIDIA, NCCL 2.27)


@dataclass(frozen=True)
class Setting:
    """How a model runs: what passes it at once, on which device, with which types of numbers.

    `parallelism` says among how many devices layers are divided, and what they compute again; `bandwidth` how
    many bytes per second these exchange between servers, which have `server` devices; `microbatches` after
    how many samples parameters are updated. `scale`: a measured time over that of the curves.
    """

    run: TokenRun
    device: NamedDevice
    dtype: str
    efficiency: float | None
    training: bool
    numbers: NumberBytes
    bandwidth: float = math.inf
    microbatches: int = 1
    parallelism: Parallelism = field(default_factory=Parallelism)
    scale: float = 1.0
    server: int = SERVER


class States(NamedTuple):
    """Bytes of a layer's parameters, gradients and optimizer, and of what is gathered while it runs."""

    parameters: float
    gradients: float
    optimizer: float
    gathered: float


def layers_of(decoder: Decoder, setting: Setting) -> list[Layer]:
    """Return the layers of a decoder, first to last, each one module of the model."""
    names, hidden, run = decoder.names, decoder.hidden, setting.run
    embedded = decoder.embedded or hidden
    found = _entries(decoder, embedded, setting)
    weights, count = setting.numbers.weights, len(decoder.blocks)
    stack = [
        (block, Place(weights.mixed and is_finer(i, count), count)) for i, block in enumerate(decoder.blocks)
    ]
    kinds = {kind: _block_layer(names.blocks, *kind, hidden, setting) for kind in set(stack)}
    blocks = [replace(kinds[kind], name=f"{names.blocks}.{i}") for i, kind in enumerate(stack)]
    passed = bool(names.project_in or names.embedding_norm)
    entries = [layer.name for layer in found if layer.name != names.embedding or not passed]
    found += [replace(blocks[0], inputs=tuple(entries)), *blocks[1:]]
    if names.norm:
        found.append(_layer(names.norm, [norm(run.between, hidden, decoder.norm_bias)], setting, hidden))
    if names.project_out:
        found.append(_projection(names.project_out, hidden, embedded, setting))
    head = product(run.tokens, embedded, decoder.vocabulary, decoder.head_bias, run.between)
    logits = replace(head, kept=head.kept + run.tokens * decoder.vocabulary)
    shared = _vocabulary_weights(decoder, setting)
    held = [shared[-1]] if decoder.tied or decoder.predictors else []
    each = weights.embedding if decoder.tied else weights.head
    operators = [logits, *[loss(run.tokens, decoder.vocabulary)] * setting.training]
    _, summed = exchanges_of_ends(decoder, run, setting.parallelism, setting.numbers)
    found.append(replace(_layer(names.head, operators, setting, 0, each=each, own=summed), shared=dict(held)))
    found += _predictors(decoder, setting, blocks[-1].name, dict(shared))
    return found if setting.scale == 1 else [_scaled(layer, setting.scale) for layer in found]


def experts_of(decoder: Decoder, setting: Setting) -> dict[str, tuple[float, float]]:
    """Return the milliseconds and bytes of the experts in each layer that has some, by its name."""
    weights, count = setting.numbers.weights, len(decoder.blocks)
    places = [Place(weights.mixed and is_finer(i, count), count) for i in range(count)]
    stack = list(zip(decoder.blocks, places, strict=True))
    kinds = {kind: _experts(*kind, decoder.hidden, setting) for kind in set(stack)}
    return {f"{decoder.names.blocks}.{i}": kinds[kind] for i, kind in enumerate(stack) if kinds[kind][1]}


def _experts(block: DecoderBlock, place: Place, hidden: int, setting: Setting) -> tuple[float, float]:
    """Return the milliseconds and bytes of a block's experts; 0 without any."""
    weights, operators = setting.numbers.weights, block_operators(block, hidden, setting.run)
    count = sum(one.parameters for one in operators)
    stored = weights.of_block(block, hidden, count, place) / count
    parameters = expert_parameters(block.network, hidden)
    nbytes = weights.of_experts(block.network, hidden, parameters, place)
    return expert_time(operators, setting, stored), nbytes if parameters else 0.0


def _scaled(layer: Layer, scale: float) -> Layer:
    backward = None if layer.backward is None else layer.backward * scale  # type: ignore[operator]
    more = {**layer.more, **{name: layer.more[name] * scale for name in TOLD if name in layer.more}}
    return replace(layer, forward=layer.forward * scale, backward=backward, more=more)  # type: ignore[operator]


def calibrated(decoder: Decoder, setting: Setting, measured: float | Mapping[str, float]) -> Setting:
    """Return the setting whose times are scaled so that their sum is what was measured.

    Parameters
    ----------
    decoder, setting
        The model as one device runs it, and how.
    measured
        Seconds of one sample in all layers, forward and, for training, backward; or those of some layers, by
        their names.

    Raises
    ------
    OptionError
        If a layer is not known, or a time is not a number above 0.
    """
    layers = {layer.name: layer.forward + (layer.backward or 0.0) for layer in layers_of(decoder, setting)}  # type: ignore[operator]
    given = measured if isinstance(measured, Mapping) else {}
    for name in given:
        if name not in layers:
            raise OptionError(f"measured: layer {shown(name)} must be {one_of(name, layers)}")
    values = list(given.values()) if isinstance(measured, Mapping) else [measured]
    if not values or not all(is_amount(value) and value for value in values):
        rule = "must be seconds above 0, of all layers or of some by their names"
        raise OptionError(f"measured = {shown(measured)}: {rule}")
    total = sum(layers[name] for name in given) if given else sum(layers.values())
    return replace(setting, scale=sum(values) * MS_PER_SECOND / total)


def _entries(decoder: Decoder, embedded: int, setting: Setting) -> list[Layer]:
    """Return the layers before the first block: embeddings of tokens and positions, a projection."""
    names, hidden, tokens = decoder.names, decoder.hidden, setting.run.tokens
    summed, _ = exchanges_of_ends(decoder, setting.run, setting.parallelism, setting.numbers)
    looked_up = [lookup(tokens, decoder.vocabulary, embedded)]
    first = _layer(names.embedding, looked_up, setting, embedded, own=summed)
    held = _vocabulary_weights(decoder, setting)[:1] if decoder.tied or decoder.predictors else []
    found = [replace(first, inputs=(), shared=dict(held))]
    if names.embedding_norm:
        found.append(_layer(names.embedding_norm, [norm(setting.run.between, hidden, True)], setting, hidden))
    if names.project_in:
        found.append(_projection(names.project_in, embedded, hidden, setting))
    if decoder.positions:
        table = _layer(names.positions, [lookup(tokens, decoder.positions, hidden)], setting, hidden)
        found.append(replace(table, inputs=()))
    return found


def _vocabulary_weights(decoder: Decoder, setting: Setting) -> list[tuple[str, float]]:
    """Return name and bytes of the embedding's weights and, if it has its own, of the head's."""
    paths = [decoder.names.embedding] if decoder.tied else [decoder.names.embedding, decoder.names.head]
    count = decoder.vocabulary * (decoder.embedded or decoder.hidden) / setting.parallelism.share(zero=3)
    weights = setting.numbers.weights
    widths = (weights.embedding, weights.head)
    return [(path + WEIGHT, count * each) for path, each in zip(paths, widths, strict=False)]


def _predictors(decoder: Decoder, setting: Setting, last: str, shared: dict[str, float]) -> list[Layer]:
    """Return the layers that predict further tokens; they hold embedding and head, shared with the others."""
    hidden, run, names = decoder.hidden, setting.run, decoder.names
    head = product(run.tokens, hidden, decoder.vocabulary, kept=run.between)
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


def _block_layer(name: str, block: DecoderBlock, place: Place, hidden: int, setting: Setting) -> Layer:
    return _layer(name, block_operators(block, hidden, setting.run), setting, hidden, block, place)


def _projection(name: str, inner: int, outer: int, setting: Setting) -> Layer:
    return _layer(name, [product(setting.run.tokens, inner, outer)], setting, outer)


def _layer(
    name: str,
    operators: Operators,
    setting: Setting,
    outer: int,
    block: DecoderBlock | None = None,
    place: Place = ALONE,
    each: float | None = None,
    own: Exchanges = NOTHING,
) -> Layer:
    """Return the layer of some operators, which sends `outer` numbers for each token.

    A `block` has a `place` in the model. Outside of blocks `each` is the bytes of a parameter, None
    for those of the embedding, and `own` what its devices exchange.
    """
    run, numbers, training = setting.run, setting.numbers, setting.training
    count = sum(one.parameters for one in operators)
    cache = block.attention.cache * numbers.cache if block is not None else 0.0
    weights = numbers.weights
    stored = count * (weights.embedding if each is None else each)
    if block is not None:
        stored = weights.of_block(block, outer, count, place)
        own = exchanges_of_block(block, outer, run, setting.parallelism, numbers, setting.server)
    computed = pass_times(operators, setting, block, outer, stored / count if count else 0.0)
    routed = 0.0 if block is None else expert_parameters(block.network, outer) / count
    times, *told = _times(computed, setting, stored, count, own, routed)
    kept, states = _activations(operators, setting, block, outer), _states(count, setting, stored, routed)
    return Layer(
        name,
        forward=times.forward,
        backward=times.backward if training else None,
        parameters=states.parameters,
        activations=kept.held,
        output=run.tokens * outer * numbers.computed / setting.parallelism.tensor,
        gradients=states.gradients,
        optimizer=states.optimizer,
        workspace=kept.working + states.gathered,
        size=0.0 if training or block is None else _seen(block, run) * cache,
        more={"parameterCount": count, "flops": sum(one.flops for one in operators)}
        | ({"cachePerToken": cache} if cache else {})
        | {name: time for name, time in zip(TOLD, told, strict=True) if time},
    )


def _times(
    computed: PassTimes, setting: Setting, stored: float, count: float, own: Exchanges, routed: float
) -> tuple[PassTimes, float, float]:
    """Return the times of a layer's passes, and what collectives and updates add to the computation in both.

    Parameters that replicas divide are gathered during the passes, and take a part of the device meanwhile;
    tensors that devices exchange may be, too, and then the longer of both counts.
    """
    links = Links(
        setting.device, setting.bandwidth, setting.efficiency, setting.server, captured=not setting.training
    )
    updates = update_times(count, setting)
    gathered = gathered_states(stored, count * setting.numbers.gradients, setting.parallelism, routed)
    exchanged = links.time(own.forward), links.time(own.backward) * setting.training
    if setting.parallelism.overlapped:
        passes = max(computed.forward, exchanged[0]), max(computed.backward, exchanged[1])
    else:
        passes = computed.forward + exchanged[0], computed.backward + exchanged[1]
    apart = setting.parallelism.devices  # ranks between two replicas
    forward = _beside(passes[0], links.time(gathered.forward, apart))
    backward = _beside(passes[1], links.time(gathered.backward, apart)) + updates
    added = forward + backward - sum(computed) - updates
    return PassTimes(forward, backward), max(0.0, added), updates


def _beside(computed: float, exchanged: float) -> float:
    """Return the time of computation during which collectives run, which take a part of the device."""
    return max(exchanged, computed + OCCUPIED * exchanged)


def _states(count: float, setting: Setting, stored: float, routed: float = 0.0) -> States:
    """Return the bytes that a device holds of `count` parameters, of `stored` bytes, and of their states.

    Parameters that replicas divide among them are gathered while the layer runs, and so are their gradients.
    The share `routed` of them, those of experts that devices divide, has fewer replicas by that degree.
    """
    numbers, parallelism = setting.numbers, setting.parallelism
    gradients = count * numbers.gradients * setting.training
    whole = (stored + gradients) * (parallelism.share(zero=3) > 1)
    return States(
        stored * parallelism.held(3, routed),
        gradients * parallelism.held(2, routed),
        count * numbers.optimizer * parallelism.held(1, routed),
        whole,
    )


def _activations(
    operators: Operators, setting: Setting, block: DecoderBlock | None, hidden: int
) -> Activations:
    numbers = setting.numbers
    if block is None or not setting.training:
        return Activations(sum(one.kept for one in operators) * numbers.computed, 0.0)
    return kept_of_block(block, hidden, operators, setting.run, setting.parallelism, numbers)


def _seen(block: DecoderBlock, run: TokenRun) -> float:
    """Return the tokens of all sequences that a block has in its cache on one device."""
    seen, window = run.context + run.sequence, block.attention.window
    return run.batch * (seen if window is None else min(seen, window)) / run.spread
