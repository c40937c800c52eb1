"""Graphs of layers: a forward node for each layer and, for training, a backward node that mirrors it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from partitioner.base.argument_types import is_count, require_items
from partitioner.base.errors import Flaw, OptionError, WorkloadError, nearest, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.workload.device_validation import is_amount, number_rule
from partitioner.workload.extras import SHARED, Extras, ties_field
from partitioner.workload.layer import Layer, by_kind, inputs_of

BACKWARD = "/backward"
Edges = list[tuple[str, str]]


def layer_arguments(
    layers: Iterable[Layer], bandwidth: float | None, training: bool | None, microbatches: int
) -> dict[str, Any]:
    """Return the arguments of :meth:`partitioner.Graph.from_arrays` for the graph of a list of layers.

    A layer becomes a forward node whose id, layer and title are the layer's name. For training, a backward
    node of the same layer and colour class follows, whose id ends in ``/backward``: every edge has a mirrored
    edge for the gradient, and an edge leads from each forward node to its backward node.

    Parameters that several layers share are counted in the memory of each of these. For training, an edge
    leads from the backward node of each later one of them to that of the first one: it carries the bytes of
    the gradient once a batch, so a sample pays them divided by `microbatches`. The nodes list the
    names of what they share in the field ``sharedParameters`` of ``graph.extras.nodes``.

    Parameters
    ----------
    layers
        The layers, each after those that it reads.
    bandwidth
        Bytes per second between a device and host memory; None if nothing is sent.
    training
        Whether to add backward nodes; None: if the layers have times of the backward pass.
    microbatches
        The samples of a batch, after which shared parameters are exchanged.

    Raises
    ------
    WorkloadError
        Naming layer, field, value and rule.
    OptionError
        If the bandwidth is missing, or an argument is not in its range.
    """
    given = require_items("layers", layers)
    rule = "must be a Layer of partitioner"
    wrong = [Flaw("layers", "", shown(one), rule) for one in given if not isinstance(one, Layer)]
    if wrong:
        raise WorkloadError(wrong)
    _check_options(training, microbatches)
    mirrored = any(layer.backward is not None for layer in given) if training is None else training
    flaws = layer_flaws(given, mirrored)
    if flaws:
        raise WorkloadError(flaws)
    per_byte = _time_per_byte(given, bandwidth)
    copies = 2 if mirrored else 1
    names = [layer.name for layer in given]
    edges, costs = _edges(given, per_byte, mirrored, microbatches)
    return {
        **_times(given, mirrored),
        **_memory(given, mirrored),
        "edges": edges,
        "cost": costs,
        "ids": names + [name + BACKWARD for name in names] * mirrored,
        "backward": np.repeat([False, True][:copies], len(given)),
        "color": names * 2 if mirrored else None,
        "layer": names * copies,
        "names": names * copies,
        "extras": Extras(
            _top(given, bandwidth, mirrored, microbatches), [_kept(layer) for layer in given] * copies
        ),
    }


def _check_options(training: bool | None, microbatches: int) -> None:
    if training is not None and not isinstance(training, bool):
        raise OptionError(f"training = {shown(training)}: must be True, False or None")
    if not is_count(microbatches):
        raise OptionError(f"microbatches = {shown(microbatches)}: must be an integer of at least 1")


def _time_per_byte(layers: Sequence[Layer], bandwidth: float | None) -> float:
    """Return the ms that a byte takes to or from host memory."""
    sender = next(
        (layer for layer in layers if layer.output or layer.shared or any(_sizes(layer).values())), None
    )
    if bandwidth is None:
        if sender is None:
            return 0.0
        why = f"layer {shown(sender.name)} sends bytes"
        raise OptionError(f"bandwidth = None: must be a number above 0, in bytes per second, because {why}")
    return time_per_byte(bandwidth)


def time_per_byte(bandwidth: float) -> float:
    """Return the ms that a byte takes at a bandwidth in bytes per second.

    Raises
    ------
    OptionError
        If it is not a number above 0.
    """
    number = isinstance(bandwidth, int | float) and not isinstance(bandwidth, bool)
    if not (number and 0 < bandwidth <= sys.float_info.max):
        raise OptionError(f"bandwidth = {shown(bandwidth)}: must be a number above 0, in bytes per second")
    return MS_PER_SECOND / bandwidth


def _times(layers: Sequence[Layer], mirrored: bool) -> dict[str, Any]:
    """Return the times of all nodes by kind, forward nodes first, and which of them may run."""
    passes = [by_kind(layer.forward) for layer in layers]
    passes += [by_kind(layer.backward) for layer in layers] if mirrored else []
    kinds = list(dict.fromkeys(kind for times in passes for kind in times))
    return {
        "time": {kind: [times.get(kind, 0.0) for times in passes] for kind in kinds},
        "allowed": {kind: [kind in times for times in passes] for kind in kinds},
    }


def _memory(layers: Sequence[Layer], mirrored: bool) -> dict[str, list[float]]:
    """Return the memory of all nodes: gradients and optimizer's state belong to backward nodes."""
    none = [0.0] * len(layers)
    forward = {
        name: [getattr(layer, name) for layer in layers]
        for name in ("parameters", "size", "workspace", "cache")
    }
    if not mirrored:
        return forward
    own = [layer.parameters if layer.gradients is None else layer.gradients for layer in layers]
    return {
        **{name: values + none for name, values in forward.items()},
        "gradients": none + own,
        "optimizer": none + [layer.optimizer for layer in layers],
        "activations": [layer.activations for layer in layers] + none,
    }


def _edges(
    layers: Sequence[Layer], per_byte: float, mirrored: bool, microbatches: int
) -> tuple[Edges, list[float]]:
    """Return the edges by the ids of their ends, and the cost of each."""
    sent = {layer.name: layer.output * per_byte for layer in layers}
    read, costs = [], []
    for layer, names in zip(layers, inputs_of(layers), strict=True):
        sizes = _sizes(layer)
        read += [(name, layer.name) for name in names]
        costs += [sizes[name] * per_byte if name in sizes else sent[name] for name in names]
    edges: Edges = list(read)
    if mirrored:
        sent |= {source: cost for (source, _), cost in zip(read, costs, strict=True)}
        own = [(name, name + BACKWARD) for name in sent]
        edges = [*read, *own, *((v + BACKWARD, u + BACKWARD) for u, v in read)]
        costs = [*costs, *sent.values(), *costs]
        for pair, nbytes in exchanges(layers).items():
            edges.append(pair)
            costs.append(_distinct(nbytes * per_byte / microbatches, pair[0], edges, costs))
    return edges, costs


def _sizes(layer: Layer) -> Mapping[str, float]:
    """Return the bytes that the layer reads, by name, where it says so."""
    return layer.inputs if isinstance(layer.inputs, Mapping) else {}


def exchanges(layers: Sequence[Layer]) -> dict[tuple[str, str], float]:
    """Return the bytes of gradients of shared parameters, by the ids of the backward nodes they join."""
    first: dict[str, str] = {}
    found: dict[tuple[str, str], float] = {}
    for layer in layers:
        for name, nbytes in layer.shared.items():
            holder = first.setdefault(name, layer.name)
            if holder != layer.name and nbytes:
                pair = layer.name + BACKWARD, holder + BACKWARD
                found[pair] = found.get(pair, 0.0) + nbytes
    return found


def _distinct(cost: float, node: str, edges: Edges, costs: Sequence[float]) -> float:
    """Return the cost, or the next number above it that no other edge out of the node has.

    Edges of equal cost out of a node carry one tensor; a gradient of shared parameters is another tensor.
    """
    others = {known for (source, _), known in zip(edges, costs, strict=False) if source == node}
    while cost in others:
        cost = math.nextafter(cost, math.inf)
    return cost


def _kept(layer: Layer) -> dict[str, Any]:
    return {**layer.more, **({SHARED: list(layer.shared)} if layer.shared else {})}


def _top(
    layers: Sequence[Layer], bandwidth: float | None, mirrored: bool, microbatches: int
) -> dict[str, Any]:
    top = {"timeUnit": "ms", "bandwidth": bandwidth, "training": mirrored, "microbatches": microbatches}
    return top | (ties_field(_copies(layers), exchanges(layers), counted=True) if mirrored else {})


def _copies(layers: Sequence[Layer]) -> Iterator[tuple[str, float, float, float]]:
    """Yield the bytes of parameters that an earlier layer holds too, and what training adds to them."""
    known: set[str] = set()
    for layer in layers:
        nbytes = sum(size for name, size in layer.shared.items() if name in known)
        known |= layer.shared.keys()
        if nbytes:
            gradients = layer.parameters if layer.gradients is None else layer.gradients
            share = nbytes / layer.parameters
            yield layer.name, nbytes, 0.0, 0.0
            yield layer.name + BACKWARD, 0.0, gradients * share, layer.optimizer * share


# The rules that a list of layers must obey.

AMOUNTS = ("parameters", "activations", "output", "gradients", "optimizer", "workspace", "size", "cache")


def layer_flaws(layers: Sequence[Layer], mirrored: bool) -> list[Flaw]:
    """Return every rule that a list of layers breaks; `mirrored`: for training."""
    flaws: list[Flaw] = []
    earlier: dict[str, Layer] = {}
    sizes: dict[str, tuple[str, float]] = {}
    for layer in layers:
        where = f"layer {shown(layer.name)}"
        if not isinstance(layer.name, str) or not layer.name:
            flaws.append(Flaw(where, "name", shown(layer.name), "must be a text that is not empty"))
            continue
        if layer.name in earlier:
            flaws.append(Flaw(where, "name", shown(layer.name), "is given to more than one layer"))
        flaws += _amount_flaws(layer, where) + _time_flaws(layer, where, mirrored)
        flaws += _input_flaws(layer, where, earlier) + _shared_flaws(layer, where, sizes)
        if not isinstance(layer.more, Mapping):
            flaws.append(Flaw(where, "more", shown(layer.more), "must be a mapping"))
        earlier[layer.name] = layer
    return flaws


def _amount_flaws(layer: Layer, where: str) -> list[Flaw]:
    given = {name: getattr(layer, name) for name in AMOUNTS}
    unsound = {
        name: value
        for name, value in given.items()
        if not _is_amount(value) and not (name == "gradients" and value is None)
    }
    return [Flaw(where, name, shown(value), _rule(value)) for name, value in unsound.items()]


def _time_flaws(layer: Layer, where: str, mirrored: bool) -> list[Flaw]:
    flaws = []
    for name in ("forward", "backward"):
        times = by_kind(getattr(layer, name))
        flaws += [
            Flaw(where, f"{name}[{kind}]" if isinstance(kind, str) else name, shown(time), _rule(time))
            for kind, time in times.items()
            if not _is_amount(time) or not isinstance(kind, str)
        ]
    if not by_kind(layer.forward):
        flaws.append(
            Flaw(where, "forward", shown(layer.forward), "must have the time of some kind of device")
        )
    if mirrored and layer.backward is None:
        flaws.append(Flaw(where, "backward", "", "is missing; a graph for training needs it for every layer"))
    elif mirrored and set(by_kind(layer.backward)) != set(by_kind(layer.forward)):
        kinds = ", ".join(map(str, by_kind(layer.forward)))
        flaws.append(
            Flaw(where, "backward", shown(layer.backward), f"must have times on {kinds}, as `forward`")
        )
    return flaws


def _input_flaws(layer: Layer, where: str, earlier: Mapping[str, Layer]) -> list[Flaw]:
    if layer.inputs is None:
        return []
    if isinstance(layer.inputs, str) or not isinstance(layer.inputs, Iterable):
        return [Flaw(where, "inputs", shown(layer.inputs), "must be a sequence of names of earlier layers")]
    sizes = layer.inputs if isinstance(layer.inputs, Mapping) else {}
    return [
        Flaw(where, f"inputs[{name}]", shown(nbytes), _rule(nbytes))
        for name, nbytes in sizes.items()
        if not _is_amount(nbytes)
    ] + [
        Flaw(
            where,
            "inputs",
            shown(name),
            f"must be the name of an earlier layer{nearest(name, list(earlier))}",
        )
        for name in layer.inputs
        if not isinstance(name, str) or name not in earlier
    ]


def _shared_flaws(layer: Layer, where: str, sizes: dict[str, tuple[str, float]]) -> list[Flaw]:
    """Return the flaws of shared parameters; enter the size of each that is new in `sizes`."""
    if not isinstance(layer.shared, Mapping) or not all(isinstance(name, str) for name in layer.shared):
        return [Flaw(where, "shared", shown(layer.shared), "must be a mapping from names to bytes")]
    flaws = [
        Flaw(where, f"shared[{name}]", shown(nbytes), _rule(nbytes))
        for name, nbytes in layer.shared.items()
        if not _is_amount(nbytes)
    ]
    if flaws:
        return flaws
    for name, nbytes in layer.shared.items():
        holder, known = sizes.setdefault(name, (layer.name, nbytes))
        if known != nbytes:
            rule = f"must be {known:.15g} bytes, as in layer {shown(holder)}"
            flaws.append(Flaw(where, f"shared[{name}]", shown(nbytes), rule))
    total = sum(layer.shared.values())
    if _is_amount(layer.parameters) and total > layer.parameters * (1 + 1e-9):
        rule = f"must be at least the {total:.15g} bytes of the shared parameters"
        flaws.append(Flaw(where, "parameters", shown(layer.parameters), rule))
    return flaws


def _is_amount(value: Any) -> bool:
    return is_amount(value.item() if isinstance(value, np.generic) else value)


def _rule(value: Any) -> str:
    return number_rule(value)
