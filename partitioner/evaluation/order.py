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
    """The positions of the devices that an order names.

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
    """Why the stages are no pipeline, or none in the order given; empty if they are."""
    if not shape.is_chain:
        return ("the split is no chain, so that its stages form no pipeline",)
    place = {stage: number for number, stage in enumerate(order or ())}
    arcs = np.unique(placed.device[chain_arcs(placed.graph, placed.device)], axis=0).tolist()
    return tuple(
        f"{placed.names[i]} comes after {placed.names[j]} in the order, which needs its tensors"
        for i, j in arcs
        if place and place[i] > place[j]
    )


def in_order(placed: Placed, shape: Shape, order: Sequence[int] | None) -> tuple[Shape, tuple[int, ...]]:
    """The shape with the order that was given, and the positions of the stages in the order that holds."""
    if order is not None:
        names = tuple(placed.names[stage] for stage in order)
        return (replace(shape, order=names) if shape.is_chain else shape), tuple(order)
    if not shape.is_chain:
        return shape, tuple(np.unique(placed.device).tolist())
    number = {name: i for i, name in enumerate(placed.names)}
    return shape, tuple(number[name] for name in shape.order)
