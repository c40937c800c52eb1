"""The layers of a language model from its ``config.json``: times by a roofline, memory, cache per token."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from partitioner.base.argument_types import check_counts
from partitioner.base.errors import Flaw, OptionError, WorkloadError, one_of, shown
from partitioner.estimation.device_time import curve_note
from partitioner.estimation.named_devices import BYTES, NamedDevice, devices_named, dtype_name
from partitioner.formats.devices_in_place import one_accelerator
from partitioner.formats.llm.config import Config
from partitioner.formats.llm.decoder import Decoder
from partitioner.formats.llm.families import FAMILIES
from partitioner.formats.llm.layout_options import (
    LayoutOptions,
    numbers_of,
    parallelism_of,
    profiling_run,
)
from partitioner.formats.llm.model import Setting, calibrated, layers_of
from partitioner.formats.llm.operators import TokenRun
from partitioner.formats.llm.parallelism import Parallelism, one_share
from partitioner.formats.llm.server import ProfilingRun
from partitioner.formats.llm.serving import DECODE, PREFILL, serving_graph
from partitioner.formats.llm.stored_weights import stored_types
from partitioner.formats.llm.times import BACKWARD
from partitioner.formats.llm.ways import checked_ways, with_ways
from partitioner.formats.several_kinds import joined, one_of_each
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.layer_graph import time_per_byte
from partitioner.workload.phases import weigh_phases

MOST_LAYERS = 10_000
AnyDevice = str | NamedDevice


def config_graph(
    content: Any,
    source: str,
    *,
    sequence: int | None = None,
    batch: int = 1,
    device: AnyDevice | Sequence[AnyDevice] | None = None,
    bandwidth: float | None = None,
    training: bool = True,
    dtype: str | None = None,
    efficiency: float | None = None,
    context: int = 0,
    microbatches: int = 1,
    predictors: bool | None = None,
    generate: int | None = None,
    phases: Mapping[str, float] | None = None,
    ways: Sequence[LayoutOptions] | None = None,
    measured: float | Mapping[str, float] | None = None,
    **layout: Unpack[LayoutOptions],
) -> tuple[Graph, Devices]:
    """Return the layer graph of a config, and one device of each kind named.

    :func:`partitioner.load_config` describes the options.

    Raises
    ------
    WorkloadError
        Naming the file, the field, its value and what it may be.
    OptionError
        If an option is missing or not in its range.
    """
    decoder = decoder_of(content, source)
    check_counts(batch=batch, sequence=sequence)
    check_counts(0, context=context)
    check_counts(microbatches=microbatches)
    _check_generate(generate, training, phases)
    _check_flags(training=training, predictors=training if predictors is None else predictors)
    several, figures = isinstance(device, list | tuple), devices_named(device)
    kind, layout = _types(content, source, dtype, training, list(figures.values()), layout)
    numbers, parallelism = numbers_of(kind, training, layout), parallelism_of(layout)
    run = TokenRun(batch, sequence or 1, context, parallelism.context_parallel, parallelism.scattered)
    if not (training if predictors is None else predictors):
        decoder = replace(decoder, predictors=())
    network = math.inf if bandwidth is None else bandwidth
    runs = {
        name: Setting(run, each, kind, efficiency, training, numbers, network, microbatches, parallelism)
        for name, each in figures.items()
    }
    if measured is not None:
        _check_measured(measured, several)
        own_share = one_share(decoder, parallelism)
        runs = {name: calibrated(own_share, setting, measured) for name, setting in runs.items()}
    profiled = profiling_run(layout, generate)
    serving = None if generate is None else (generate, phases, profiled)
    _check_ways(ways, several, generate)
    layouts = checked_ways(ways, layout)

    def graph_of(setting: Setting, way: LayoutOptions) -> Graph:
        its = parallelism_of(way)
        run = TokenRun(batch, sequence or 1, context, its.context_parallel, its.scattered)
        return _on_one_kind(
            one_share(decoder, its), replace(setting, run=run, parallelism=its), bandwidth, serving
        )

    graphs = {
        name: with_ways(graph_of(setting, layout), ways, layouts, partial(graph_of, setting))
        for name, setting in runs.items()
    }
    own = {
        name: one_accelerator(graph, figures[name].memory, figures[name].cpu and several)
        for name, graph in graphs.items()
    }
    graph = joined(graphs) if several else next(iter(graphs.values()))
    known = [each.name for each in figures.values()]
    given = {"model": content["model_type"], "batch": batch, "sequence": sequence, "context": context}
    given |= {"device": known if several else known[0], "dtype": kind}
    scale = next(iter(runs.values())).scale
    given |= (
        {"times": _times(list(figures.values()), scale)} if efficiency is None else {"efficiency": efficiency}
    )
    given |= {"scale": scale} if measured is not None else {}
    given |= {} if generate is None else {"generate": generate}
    given |= {name: value for name, value in layout.items() if value is not None}
    given |= {"ways": [dict(way) for way in ways]} if ways else {}
    given |= _work(decoder, next(iter(runs.values())), generate)
    given |= {} if several else _speed(next(iter(figures.values())), kind, parallelism.devices)
    extras = replace(graph.extras, top={**graph.extras.top, **given})
    devices = one_of_each(own) if several else next(iter(own.values()))
    linked = all(each.peer is not None and not each.cpu for each in figures.values())
    return replace(graph, extras=extras), replace(devices, route="direct") if linked else devices


def _on_one_kind(
    decoder: Decoder,
    setting: Setting,
    bandwidth: float | None,
    serving: tuple[int, Mapping[str, float] | None, ProfilingRun | None] | None,
) -> Graph:
    """Return the graph with times on one kind; `serving`: tokens, weights of phases, largest batch."""
    if serving is None:
        layers = layers_of(decoder, setting)
        given = {"bandwidth": bandwidth, "training": setting.training, "microbatches": setting.microbatches}
        return Graph.chain(layers, **given)  # type: ignore[arg-type]
    generate, phases, profiled = serving
    time_per_byte(bandwidth)  # type: ignore[arg-type]
    graph = serving_graph(decoder, setting, generate, bandwidth, profiled)  # type: ignore[arg-type]
    return weigh_phases(graph, {PREFILL: 1, DECODE: generate} if phases is None else phases)


def _times(devices: Sequence[NamedDevice], scale: float) -> str:
    """Return where the times on some devices come from."""
    more = f", times {scale:.3g} as one step was measured" if scale != 1 else ""
    return "; ".join(dict.fromkeys(curve_note(device) for device in devices)) + more


def _check_measured(measured: object, several: bool) -> None:
    if several:
        raise OptionError(f"measured = {shown(measured)}: must be None with several devices")


def _work(decoder: Decoder, setting: Setting, generate: int | None) -> dict[str, float]:
    """Return the tokens of a sample, and its operations on all devices that run it together.

    Of training these are the operations of the model, without any that are computed again.
    """
    if generate is not None:
        return {"tokens_per_sample": generate}
    run = replace(setting.run, spread=1, scattered=1)
    whole = layers_of(decoder, replace(setting, run=run, parallelism=Parallelism()))
    flops = sum(layer.more["flops"] for layer in whole) * (1 + BACKWARD * setting.training)
    return {"tokens_per_sample": run.batch * run.sequence, "flops_per_sample": flops}


def _speed(device: NamedDevice, dtype: str, gpus: int) -> dict[str, float]:
    """Return the operations a second of a GPU, and the number of those that a device stands for."""
    return {"peak_flops": device.speed(dtype), "gpus_per_device": gpus}


def _check_generate(generate: object, training: object, phases: object) -> None:
    if generate is None:
        if phases is not None:
            raise OptionError(f"phases = {shown(phases)}: a config has phases with the option generate only")
        return
    check_counts(generate=generate)
    if training:
        rule = "must be None for training; training = False (--inference) leaves the backward pass out"
        raise OptionError(f"generate = {shown(generate)}: {rule}")


def _check_ways(ways: object, several: bool, generate: object) -> None:
    if ways is not None and (several or generate is not None):
        what = "devices of one name" if several else "a config without the option generate"
        raise OptionError(f"ways = {shown(ways)}: are for {what}")


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise OptionError(f"{name} = {shown(value)}: must be True or False")


def _types(
    content: Mapping[str, Any],
    source: str,
    dtype: str | None,
    training: bool,
    devices: Sequence[NamedDevice],
    layout: LayoutOptions,
) -> tuple[str, LayoutOptions]:
    """Return the type of the factors of products, and the layout with that of the weights.

    A model that is stored quantised is served so; where a device has no such products, only its weights are.
    """
    if dtype is not None or training:
        return (_dtype(content, source) if dtype is None else dtype_name(dtype)), layout
    stored = stored_types(content)
    narrow, weights = stored.products, stored.weights
    if narrow is not None and not all(_runs(device, narrow) for device in devices):
        narrow, weights = None, narrow
    if weights is not None and layout.get("weight_dtype") is None:
        layout = {**layout, "weight_dtype": weights}
    return narrow or _dtype(content, source), layout


def _runs(device: NamedDevice, dtype: str) -> bool:
    """Whether a device has products in a type of numbers."""
    try:
        return device.speed(dtype) > 0
    except OptionError:
        return False


def _dtype(content: Mapping[str, Any], source: str) -> str:
    """Return the type of the numbers in a config: `torch_dtype`, or as later versions call it, `dtype`."""
    field = "torch_dtype" if content.get("torch_dtype") is not None else "dtype"
    given = content.get(field)
    if given is None:
        return "bfloat16"
    try:
        return dtype_name(given)
    except OptionError:
        rule = f"must be {one_of(given, BYTES)}; or give the option dtype (--dtype)"
        raise WorkloadError([Flaw("file", field, shown(given), rule)], source) from None


def decoder_of(content: Any, source: str) -> Decoder:
    """Return the shape of the decoder that a config describes.

    Raises
    ------
    WorkloadError
        If the family is unknown, or a field breaks a rule.
    """
    config = Config(content, source)
    family = config.data.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        config.refuse("model_type", family, f"must be {one_of(family, FAMILIES)}")
    for name in ("num_hidden_layers", "n_layer", "num_nextn_predict_layers"):
        config.at_most(name, config.number(name, 0), MOST_LAYERS)
    return FAMILIES[str(family)](config)
