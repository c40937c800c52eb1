"""A layer of a network with its costs: the input of :meth:`partitioner.Graph.chain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ACCELERATOR = "accelerator"
Times = float | Mapping[str, float]


@dataclass(frozen=True)
class Layer:
    """A layer of a network, with its costs for one sample; times are in ms, sizes in bytes.

    Parameters
    ----------
    name
        The name: for a module of a model its path, such as ``"model.layers.3"``.
    forward, backward
        The time of each pass: one number for kind ``"accelerator"``, or a mapping from kinds of devices; on
        a kind that is left out the layer may not run. A `backward` of None: the layer has no backward pass.
    parameters
        Bytes of its parameters, shared ones included.
    activations
        Bytes that it keeps of one sample for the backward pass.
    output
        Bytes that it sends to each layer that reads it.
    inputs
        The names of the layers whose output it reads, all of them earlier in the list, or a mapping from
        names to the bytes that it reads; None for the layer before it.
    shared
        The bytes of those of its parameters that other layers hold, too, by a name that all of them use.
    gradients
        Bytes of the gradients of its parameters; None for the bytes of the parameters. For training only.
    optimizer
        Bytes of the optimizer's state. For training only.
    workspace
        Bytes that it needs only while it runs.
    size
        Further bytes that it takes on its device, whatever is in flight.
    cache
        Bytes that it keeps for every sample in flight, such as its keys and values of a sequence.
    more
        Further fields of its nodes, which a graph keeps and no solver reads.

    Examples
    --------
    >>> Layer("head", forward={"gpu": 1.0, "cpu": 9.0}, inputs=("embedding",), shared={"wte": 4e8}).output
    0.0
    """

    name: str
    forward: Times
    backward: Times | None = None
    parameters: float = 0.0
    activations: float = 0.0
    output: float = 0.0
    inputs: Sequence[str] | Mapping[str, float] | None = None
    shared: Mapping[str, float] = field(default_factory=dict)
    gradients: float | None = None
    optimizer: float = 0.0
    workspace: float = 0.0
    size: float = 0.0
    cache: float = 0.0
    more: Mapping[str, Any] = field(default_factory=dict)


def by_kind(times: Times | None) -> Mapping[str, float]:
    """Return the times by kind of device; a number is that of an accelerator."""
    if times is None:
        return {}
    return times if isinstance(times, Mapping) else {ACCELERATOR: times}


def inputs_of(layers: Sequence[Layer]) -> list[tuple[str, ...]]:
    """Return the names of the layers that each layer reads, each once."""
    return [
        tuple(layer.name for layer in layers[max(i - 1, 0) : i])
        if layer.inputs is None
        else tuple(dict.fromkeys(layer.inputs))
        for i, layer in enumerate(layers)
    ]
