"""The layer of each operator of an ONNX model, also of operators that an exporter gave no module."""

from __future__ import annotations

from collections.abc import Iterable

from partitioner.formats.onnx.module_paths import layer_path
from partitioner.formats.onnx.operators import OnnxGraph


def layer_labels(graph: OnnxGraph) -> list[str | None]:
    """Return the layer of each operator, None for an operator of no layer.

    An operator without a module belongs to a layer if it reads and is read by operators of that layer,
    directly or through others without a module.
    """
    labels = [layer_path(each.path) for each in graph.operators]
    maker = {name: i for i, each in enumerate(graph.operators) for name in each.outputs if name}
    before = [[maker[name] for name in each.inputs if name in maker] for each in graph.operators]
    after: list[list[int]] = [[] for _ in before]
    for i, makers in enumerate(before):
        for j in makers:
            after[j].append(i)
    forward = range(len(labels))
    early, late = _met(labels, before, forward), _met(labels, after, reversed(forward))
    around = [sorted(one & other) for one, other in zip(early, late, strict=True)]
    return [label or next(iter(both), None) for label, both in zip(labels, around, strict=True)]


def _met(labels: list[str | None], next_to: list[list[int]], order: Iterable[int]) -> list[set[str]]:
    """Return the layers that each operator meets first on the paths in one direction."""
    found: list[set[str]] = [set() for _ in labels]
    for i in order:
        for j in next_to[i]:
            label = labels[j]
            found[i] |= found[j] if label is None else {label}
    return found
