"""Placements on two devices: at a part of the time, in equal layers, and by other tools' rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import partitioner as pt


def at_time(graph: pt.Graph, share: float) -> dict[Any, str]:
    """Return the placement that cuts the forward pass at a part of its time."""
    forward = np.flatnonzero(~graph.backward)
    spent = np.cumsum(graph.time[0][forward])
    return placed(graph, int(np.searchsorted(spent, share * spent[-1])))


def equal_layers(graph: pt.Graph) -> dict[Any, str]:
    """Return the placement of half of the layers on each device; of an odd number the first has one more."""
    starts = [start for start, _ in layers(graph)]
    return placed(graph, starts[(len(starts) + 1) // 2])


def by_size(graph: pt.Graph) -> dict[Any, str]:
    """Return the placement of PiPPy's `split_into_equal_size`, the front end from which torch's one comes.

    The second stage begins with the first operator whose parameters the first stage cannot hold without
    having more than half of all.
    """
    parameters = _parameters(graph)
    held = np.cumsum(parameters)
    over = (held > parameters.sum() / 2) & (parameters > 0) & (held > parameters)
    return placed(graph, int(np.flatnonzero(over)[0]))


def by_parameters(graph: pt.Graph) -> dict[Any, str]:
    """Return the placement of DeepSpeed's `partition_method="parameters"`, which is its default.

    `partition_balanced` cuts the list of layers so that the largest sum of parameters of a part is smallest.
    """
    entries = layers(graph)
    held = np.cumsum([size for _, size in entries])
    largest = [max(held[i - 1], held[-1] - held[i - 1]) for i in range(1, len(entries))]
    return placed(graph, entries[1 + int(np.argmin(largest))][0])


SPLITS: dict[str, Callable[[pt.Graph], dict[Any, str]]] = {
    "equal layers": equal_layers,
    "PiPPy, by size": by_size,
    "DeepSpeed, parameters": by_parameters,
}


def layers(graph: pt.Graph) -> list[tuple[int, float]]:
    """Return for each layer the place of its first forward node, and the bytes of its parameters.

    A layer is a module of the model, or a member of one of its lists; each begins where it is first called.
    """
    forward = np.flatnonzero(~graph.backward).tolist()
    label = [_layer(str(graph.extras.nodes[i]["module"])) for i in forward]
    first: dict[str, int] = {}
    size: dict[str, float] = {}
    for place, (name, nbytes) in enumerate(zip(label, _parameters(graph).tolist(), strict=True)):
        first.setdefault(name, place)
        size[name] = size.get(name, 0.0) + nbytes
    return [(place, size[name]) for name, place in first.items()]


def placed(graph: pt.Graph, start: int) -> dict[Any, str]:
    """Return the placement whose second stage begins with the forward node of this place.

    If both stages would then read one parameter, it begins at the nearest place where they do not. A backward
    node is where the forward nodes of its colour are.
    """
    start = min(_allowed(graph), key=lambda place: abs(place - start))
    home: dict[Any, str] = {}
    colour: dict[int, str] = {}
    place = 0
    for i, node in enumerate(graph.ids):
        if not graph.backward[i]:
            home[node] = f"accelerator{int(place >= start)}"
            place += 1
        if graph.color[i] >= 0:
            home[node] = colour.setdefault(int(graph.color[i]), home.get(node, "accelerator1"))
        home.setdefault(node, "accelerator1")
    return home


def _allowed(graph: pt.Graph) -> list[int]:
    """Return the places before which the forward pass can be cut: no parameter is read on both sides."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    forward = np.flatnonzero(~graph.backward).tolist()
    for place, i in enumerate(forward):
        shared = graph.extras.nodes[i].get("sharedParameters", ())
        for key in (*shared, *([int(graph.color[i])] if graph.color[i] >= 0 else [])):
            first.setdefault(key, place)
            last[key] = place
    crossed = np.zeros(len(forward) + 1, dtype=np.int64)
    for key, place in first.items():
        crossed[place + 1] += 1
        crossed[last[key] + 1] -= 1
    return [place for place in np.flatnonzero(np.cumsum(crossed)[:-1] == 0).tolist() if place]


def _parameters(graph: pt.Graph) -> Any:
    """Return the bytes of parameters of the forward nodes, in their order."""
    return graph.parts[0][~graph.backward]


def _layer(module: str) -> str:
    first, *further = module.split(".")
    return f"{first}.{further[0]}" if further and further[0].isdigit() else first
