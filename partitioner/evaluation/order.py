"""The order in which the stages of a pipeline run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.shape import Shape, chain_arcs


def read_order(placed: Placed, order: Sequence[Any] | None) -> tuple[int, ...] | None:
    """Return the positions of the devices that an order names; None without an order.

    Raises
    ------
    WorkloadError
        If the order does not name every device on which nodes are placed once, and no other.
    """
    if order is None:
        return None
    used = [placed.names[i] for i in np.unique(placed.device)]
    if isinstance(order, str) or not isinstance(order, Sequence) or sorted(map(str, order)) != sorted(used):
        rule = f"must name the devices of the stages, {', '.join(used)}, each once"
        raise WorkloadError([Flaw("order", "", shown(order), rule)])
    return tuple(placed.names.index(str(name)) for name in order)


def order_violations(placed: Placed, shape: Shape, order: Sequence[int] | None) -> tuple[str, ...]:
    """Return why the stages do not form a pipeline, or not in the given order; empty if they do."""
    if not shape.is_chain:
        return ("the split is not a chain, so that its stages do not form a pipeline",)
    place = {stage: number for number, stage in enumerate(order or ())}
    arcs = np.unique(placed.device[chain_arcs(placed.graph, placed.device)], axis=0).tolist()
    return tuple(
        f"{placed.names[i]} comes after {placed.names[j]} in the order, but sends tensors to it"
        for i, j in arcs
        if place and place[i] > place[j]
    )


def in_order(placed: Placed, shape: Shape, order: Sequence[int] | None) -> tuple[Shape, tuple[int, ...]]:
    """Return the shape with the given order if it is a chain, and the stages' positions in pipeline order."""
    if order is not None:
        names = tuple(placed.names[stage] for stage in order)
        return (replace(shape, order=names) if shape.is_chain else shape), tuple(order)
    if not shape.is_chain:
        return shape, tuple(np.unique(placed.device).tolist())
    number = {name: i for i, name in enumerate(placed.names)}
    return shape, tuple(number[name] for name in shape.order)
