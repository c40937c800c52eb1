"""The layers of a decoder that is served: prefill and decode of a sequence, and the cache that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from partitioner.formats.llm.decoder import Decoder
from partitioner.formats.llm.model import Setting, layers_of
from partitioner.formats.llm.operators import TokenRun
from partitioner.formats.llm.server import ProfilingRun, with_profiling_run
from partitioner.workload.extras import Extras
from partitioner.workload.graph import Graph
from partitioner.workload.layer import ACCELERATOR, Layer
from partitioner.workload.layer_graph import time_per_byte
from partitioner.workload.phases import PHASES

PREFILL, DECODE = "prefill", "decode"


def serving_graph(
    decoder: Decoder,
    setting: Setting,
    generate: int,
    bandwidth: float,
    profiled: ProfilingRun | None = None,
) -> Graph:
    """Return the graph of a decoder in which a sample is a sequence that is read and then continued.

    Its phases are ``prefill``, in which the tokens of the prompt pass together, and ``decode``, in which one
    token passes, after half of those that are generated. Both run for the sequences of a batch together, and
    a sequence has its share of the time. A node's cache is that of all tokens of a sequence.

    Parameters
    ----------
    decoder
        The model.
    setting
        How prompts pass it; `setting.run` has the number of sequences and the tokens of a prompt.
    generate
        Tokens that every sequence generates, at least 1.
    bandwidth
        Bytes per second between a device and host memory.
    profiled
        The largest batch of the server, whose peak is counted in place of activations; None if there is none.
    """
    run = setting.run
    read = run.context + run.sequence
    steps = [run, TokenRun(run.batch, 1, read + generate // 2), TokenRun(run.batch, 1, read + generate - 1)]
    prefill, decode, full = (layers_of(decoder, replace(setting, run=step)) for step in steps)
    layers = [_served(*three, share=1 / run.batch) for three in zip(prefill, decode, full, strict=True)]
    if profiled is not None:
        together = setting.parallelism.devices
        layers = with_profiling_run(layers, decoder, setting.numbers, profiled, together)
    graph = Graph.chain(layers, bandwidth=bandwidth, training=False)
    return _with_costs(graph, {PREFILL: prefill, DECODE: decode}, time_per_byte(bandwidth) / run.batch)


def _served(prefill: Layer, decode: Layer, full: Layer, share: float) -> Layer:
    """Return a layer with the times of a sequence in both phases; `full` holds the cache of all tokens."""
    phases = {PREFILL: prefill.forward, DECODE: decode.forward}
    times = {name: {ACCELERATOR: share * time} for name, time in phases.items()}  # type: ignore[operator]
    return replace(prefill, size=0.0, cache=share * full.size, more={**prefill.more, PHASES: times})


def _with_costs(graph: Graph, phases: dict[str, Sequence[Layer]], per_byte: float) -> Graph:
    """Return the graph whose edges have their cost in every phase."""
    sent = {name: {one.name: one.output * per_byte for one in layers} for name, layers in phases.items()}
    edges = [
        {PHASES: {name: outputs[graph.ids[source]] for name, outputs in sent.items()}}
        for source in graph.edges[:, 0].tolist()
    ]
    return replace(graph, extras=Extras(graph.extras.top, graph.extras.nodes, edges))
