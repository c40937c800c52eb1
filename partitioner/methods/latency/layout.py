"""Layouts: the device and subgraph of every node, with their latency and their rules (paper, Appendix A).

The compiled timing takes the arrays of a problem and of a layout, which are made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.methods import rules
from partitioner.methods.latency._timing_core import LatencyModel, LatencyState, Scratch, refresh, span
from partitioner.methods.method import Outcome
from partitioner.methods.places import device_kinds, parts_at
from partitioner.problem.arrays import Ints, rows_of
from partitioner.problem.variants import SampleProblem
from partitioner.workload.devices import COMMUNICATION_MODELS


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


def latency(problem: SampleProblem, layout: SubgraphLayout) -> float:
    """Return the last finish when everything starts as early as possible; infinity if units form a cycle.

    Limits are not checked: layouts with any number of subgraphs have a latency.
    """
    slot = ranked(problem, layout)
    model = model_of(problem, int(slot.max(initial=0)) + 1)
    return float(span(model, state_of(model, SubgraphLayout(layout.place, slot)), scratch_of(model))[0])


def obeys(problem: SampleProblem, layout: SubgraphLayout) -> bool:
    """Whether the layout obeys memory, allowed kinds, groups and the number of subgraphs."""
    kind = device_kinds(problem)
    if layout.place.min(initial=0) < 0 or layout.place.max(initial=-1) >= len(kind):
        return False
    sound = rules.obeys(problem, parts_at(problem, layout.place))
    return sound and bool((ranked(problem, layout) < problem.subgraphs).all())


def ranked(problem: SampleProblem, layout: SubgraphLayout) -> Ints:
    """Return the slots numbered without gaps on every device and pass, shape (n,); 0 on CPUs."""
    pays = problem.pays[device_kinds(problem)[layout.place]]
    keys = np.stack([layout.place, problem.backward, np.where(pays, layout.slot, 0)], axis=1)
    unique, at = np.unique(keys.astype(np.int64), axis=0, return_inverse=True)
    fresh = np.ones(len(unique), dtype=bool)
    fresh[1:] = (unique[1:, :2] != unique[:-1, :2]).any(axis=1)
    number = np.arange(len(unique))
    return np.asarray((number - np.maximum.accumulate(np.where(fresh, number, 0)))[at.ravel()])


def model_of(problem: SampleProblem, slots: int) -> LatencyModel:
    """Return the arrays of a problem with `slots` subgraphs of each pass on every device that pays."""
    kind, nets = device_kinds(problem), problem.nets
    pays = problem.pays[kind]
    each = slots * (2 if problem.backward.any() else 1)
    mates = rows_of(problem.group, np.arange(problem.n), int(problem.group.max(initial=-1)) + 1)
    group_size = np.bincount(problem.group, problem.size)
    return LatencyModel(
        time=np.ascontiguousarray(problem.time.sum(axis=1)[kind].T),
        size=problem.size,
        allowed=np.ascontiguousarray(problem.allowed[kind].T),
        room=problem.memory[kind],
        violation_scale=float(group_size[group_size > 0].mean()) if (group_size > 0).any() else 1.0,
        base=np.where(pays, (np.cumsum(pays) - 1) * each, -1),
        home=np.repeat(np.flatnonzero(pays), each),
        late=problem.backward.astype(np.int64),
        sites=_sites(problem, kind),
        group=problem.group,
        mate_start=mates.start,
        mate=mates.items,
        before_start=problem.predecessors.start,
        before=problem.predecessors.items,
        after_start=problem.successors.start,
        after=problem.successors.items,
        net_start=nets.of_node.start,
        net=nets.of_node.items,
        pin_start=nets.pins.start,
        pin=nets.pins.items,
        cost=nets.cost,
        source=nets.source,
        communication=COMMUNICATION_MODELS.index(problem.communication),
        slots=slots,
    )


def _sites(problem: SampleProblem, kind: Ints) -> Ints:
    """Return the devices to choose from; of CPUs of a kind that can hold everything only the first one."""
    first = np.cumsum(problem.count) - problem.count
    roomy = ~problem.pays & (problem.memory >= problem.size.sum())
    device = np.arange(len(kind))
    return np.asarray(device[~roomy[kind] | (device == first[kind])])


def state_of(model: LatencyModel, layout: SubgraphLayout) -> LatencyState:
    """Return the state of a layout, whose slots must be below those of the model."""
    n, units, nets = len(model.size), len(model.home), len(model.cost)
    state = LatencyState(
        place=layout.place.astype(np.int64),
        unit=units_at(model, layout),
        seat=np.zeros(n, dtype=np.int64),
        inside=np.zeros((nets, units), dtype=np.int32),
        ledger=np.zeros((units, 3)),
        held=np.zeros(len(model.room)),
        head=np.zeros(units + n, dtype=np.int64),
        following=np.zeros(n, dtype=np.int64),
        previous=np.zeros(n, dtype=np.int64),
        outer=np.zeros(units + n, dtype=np.int64),
    )
    refresh(model, state)
    return state


def units_at(model: LatencyModel, layout: SubgraphLayout) -> Ints:
    """Return the unit of every node, shape (n,)."""
    base = model.base[layout.place]
    alone = len(model.home) + np.arange(len(base))
    return np.where(base < 0, alone, base + model.late * model.slots + layout.slot)


def layout_of(model: LatencyModel, place: Ints, unit: Ints) -> SubgraphLayout:
    """Return the layout of nodes on the given devices and in the given units, shape (n,) each."""
    base = model.base[place]
    return SubgraphLayout(place.copy(), np.where(base < 0, 0, (unit - base) % model.slots))


def scratch_of(model: LatencyModel) -> Scratch:
    """Return scratch space for the longest path and for moves."""
    n, total = len(model.size), len(model.home) + len(model.size)
    zeros = [np.zeros(size, dtype=np.int64) for size in (total, total, total, n, n, n, n, 1)]
    missing, behind, stack, who, where, what, mark, turn = zeros
    return Scratch(missing, np.zeros(total), behind, stack, who, where, what, mark, turn)
