"""Layouts: the device of every node, and its subgraph on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.methods.method import Outcome
from partitioner.methods.places import device_kinds, parts_at
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import SampleProblem


@dataclass(frozen=True, eq=False)
class SubgraphLayout:
    """A split for latency: where every node runs, and in which subgraph.

    Parameters
    ----------
    place
        Shape (n,): the device of every node, numbered kind by kind.
    slot
        Shape (n,): the index of the node's subgraph among those of its device and pass, which run in that
        order; 0 on devices that do not pay for transfers, where every node runs alone.
    """

    place: Ints
    slot: Ints


def one_subgraph_each(place: Ints) -> SubgraphLayout:
    """Return the layout in which every device holds a single subgraph of each pass."""
    return SubgraphLayout(place, np.zeros_like(place))


def outcome_of(
    problem: SampleProblem,
    layout: SubgraphLayout | None,
    value: float,
    bound: float,
    stop_reason: str,
    **words: Any,
) -> Outcome:
    """Return the outcome of a method for latency; `words` are further fields of the outcome."""
    if layout is None:
        return Outcome(problem, None, np.inf, bound, stop_reason, **words)
    slot = np.where(problem.pays[device_kinds(problem)[layout.place]], layout.slot, 0)
    parts = parts_at(problem, layout.place)
    return Outcome(problem, parts, value, min(bound, value), stop_reason, subgraph=slot, **words)
