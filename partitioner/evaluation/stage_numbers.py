"""The stage of every node where devices may have several stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.order import read_order
from partitioner.evaluation.placed import Placed, node_flaws
from partitioner.evaluation.shape import Shape, chain_arcs, placement_shape
from partitioner.evaluation.solution import Solution
from partitioner.workload.graph import Graph, Ints


@dataclass(frozen=True, eq=False)
class NumberedStages:
    """The stages of a placement, of which a device may have several.

    Parameters
    ----------
    placed
        The placement.
    order
        The position of the device of every stage, first stage to last.
    of
        Shape (n,): the number of every node's stage.
    """

    placed: Placed
    order: tuple[int, ...]
    of: Ints

    @cached_property
    def staged(self) -> Placed:
        """The placement with stages in place of devices."""
        names = tuple(f"stage {i} on {self.placed.names[device]}" for i, device in enumerate(self.order))
        return replace(self.placed, names=names, device=self.of)

    @cached_property
    def shape(self) -> Shape:
        """A chain, in the order of the stages, if no tensor leads to an earlier stage."""
        found = placement_shape(self.placed.graph, self.of, self.staged.names)
        order = tuple(self.placed.names[i] for i in self.order)
        if self.against_order():
            return replace(found, name="convex" if found.forward_convex else "free", order=())
        return replace(found, name="chain", order=order)

    def against_order(self) -> tuple[str, ...]:
        """Return a message for each two stages of which the later one sends tensors to the earlier one."""
        graph = self.placed.graph
        arcs = np.unique(self.of[chain_arcs(graph, self.of)], axis=0)
        names = self.staged.names
        return tuple(f"{names[i]} sends tensors to {names[j]}" for i, j in arcs.tolist() if i > j)


def read_stages(placed: Placed, solution: Solution) -> NumberedStages:
    """Return the stages of a solution; by default every device of its chain is one.

    Raises
    ------
    WorkloadError
        If a number is not that of a stage, a stage has no node, or a node is not on the device of its stage.
    """
    if solution.stage_of is None:
        order = read_order(placed, solution.order)
        if order is None:
            shape = placement_shape(placed.graph, placed.device, placed.names)
            order = tuple(placed.names.index(name) for name in shape.order)
        if not order:
            rule = "must be given, since the devices form no chain"
            raise WorkloadError([Flaw("stage_of", "", "None", rule)])
        place = np.zeros(len(placed.names), dtype=np.int64)
        place[list(order)] = np.arange(len(order))
        return NumberedStages(placed, order, place[placed.device])
    names = _names(placed, solution.order)
    _check(placed.graph, solution.stage_of, solution.placement, names)
    of = np.array([solution.stage_of[node] for node in placed.graph.ids], dtype=np.int64)
    empty = np.flatnonzero(np.bincount(of, minlength=len(names)) == 0)
    if len(empty):
        raise WorkloadError([Flaw("stage_of", "", f"stage {i}", "has no node") for i in empty.tolist()])
    return NumberedStages(placed, tuple(placed.names.index(name) for name in names), of)


def _names(placed: Placed, order: Sequence[Any] | None) -> list[str]:
    known = isinstance(order, Sequence) and not isinstance(order, str)
    if order is None or not known or not all(name in placed.names for name in order):
        rule = "must name the device of every stage, among those of the placement, where stage_of is given"
        raise WorkloadError([Flaw("order", "", shown(order), rule)])
    return [str(name) for name in order]


def _check(graph: Graph, stage_of: Any, placement: Mapping[Any, str], names: Sequence[str]) -> None:
    if not isinstance(stage_of, Mapping):
        raise WorkloadError(
            [Flaw("stage_of", "", shown(stage_of), "must be a mapping from node id to stage")]
        )
    flaws = node_flaws(graph, stage_of) if stage_of.keys() != graph.position.keys() else []
    for node, stage in stage_of.items():
        where = f"stage_of of node {shown(node)}"
        if not isinstance(stage, int) or isinstance(stage, bool) or not 0 <= stage < len(names):
            flaws.append(Flaw(where, "", shown(stage), f"must be an integer from 0 to {len(names) - 1}"))
        elif placement.get(node) not in (None, names[stage]):
            flaws.append(Flaw(where, "", str(stage), f"is on {names[stage]}, the node on {placement[node]}"))
    if flaws:
        raise WorkloadError(flaws)
