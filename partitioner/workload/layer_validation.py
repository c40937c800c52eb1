"""The rules that a list of layers must obey."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, nearest, shown
from partitioner.workload.device_validation import is_amount, number_rule
from partitioner.workload.layer import Layer, by_kind

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
