"""Uniform layouts: equal numbers of blocks in every stage, devices of a stage that follow one another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import partitioner as pt


class Predicted(NamedTuple):
    """A predicted batch: seconds, and the most memory that a GPU needs and has, in bytes."""

    seconds: float
    memory: float
    limit: float


def with_exchange(devices: pt.Devices, bandwidth: float) -> pt.Devices:
    """Return devices whose replicas exchange weights at a bandwidth in bytes per second."""
    kinds = [replace(kind, bandwidth=bandwidth / 1e3) if kind.count else kind for kind in devices.kinds]
    return replace(devices, kinds=tuple(kinds))


def uniform(graph: pt.Graph, devices: pt.Devices, stages: int, data: int, chunks: int) -> dict[Any, str]:
    """Return the placement of equal numbers of blocks in each chunk; chunk i is on stage i modulo `stages`.

    Blocks are the layers with the most frequent number of parameters. Where they cannot be dealt equally, the
    layers before them and those after them count as a block each.
    """
    layers = list(dict.fromkeys(graph.layer.tolist()))
    weights = [round(graph.parts[0, graph.layer == layer].sum()) for layer in layers]
    usual = max(set(weights), key=weights.count)
    first, blocks, parts = weights.index(usual), weights.count(usual), stages * chunks
    ends = 0 if blocks % parts == 0 else 1
    each = (blocks + 2 * ends) // parts
    places = [min(max(i - first, -ends), blocks - 1 + ends) + ends for i in range(len(layers))]
    return dealt(graph, devices, [place // each % stages for place in places], data)


def dealt(graph: pt.Graph, devices: pt.Devices, stage: list[int], data: int) -> dict[Any, str]:
    """Return the placement of each layer on the first device of its stage; a stage has `data` devices."""
    layers = dict.fromkeys(graph.layer.tolist())
    of_layer = {layer: devices.names[i * data] for layer, i in zip(layers, stage, strict=True)}
    return {node: of_layer[layer] for node, layer in zip(graph.ids, graph.layer.tolist(), strict=True)}


def copies(devices: pt.Devices, stages: int, data: int) -> dict[str, list[str]]:
    """Return the further devices of each stage."""
    names = devices.names
    return {names[i * data]: list(names[i * data + 1 : (i + 1) * data]) for i in range(stages) if data > 1}
