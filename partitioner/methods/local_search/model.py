"""The arrays of the compiled search, made from a problem."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.methods.local_search.arrays import COLUMNS, PlacementModel, PlacementState
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.problem import Problem, Region
from partitioner.problem.variants import PartsProblem
from partitioner.workload.devices import COMMUNICATION_MODELS

NO_ROWS = rows_of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)
LARGEST_COST = 1e3  # in units of the time of all supernodes on their slowest kinds


def model_of(problem: Problem, kind: Ints) -> PlacementModel:
    """Return the arrays of a problem for the compiled search.

    Parameters
    ----------
    problem
        The problem.
    kind
        Shape (D,): the kind of each device. Where a chain is asked for, device d runs stage d.
    """
    nets = problem.nets
    by_pin = np.argsort(nets.pins.items, kind="stable")
    regions: tuple[Region, ...] = ()
    contiguous = np.zeros(len(kind), dtype=bool)
    if isinstance(problem, PartsProblem):
        regions, contiguous = problem.regions, problem.contiguous[kind]
    owner, before_start, before = _ordered_regions(regions)
    ahead, behind = (problem.successors, problem.predecessors) if problem.ordered else (NO_ROWS, NO_ROWS)
    time = _times(problem)
    return PlacementModel(
        time=np.ascontiguousarray(time[kind].transpose(2, 0, 1)),
        size=problem.size,
        violation_scale=max(float(problem.size.mean()), 1e-300),
        allowed=np.ascontiguousarray(problem.allowed[kind].T),
        room=problem.memory[kind],
        transfer_factor=problem.transfer_factor[kind],
        contiguous=contiguous,
        net_start=nets.of_node.start,
        net=np.stack((nets.pins.owners()[by_pin], nets.read[by_pin]), axis=1),
        pin_start=nets.pins.start,
        pin=nets.pins.items,
        cost=_clipped(nets.cost, time, problem),
        made=np.stack((np.diff(nets.pins.start), nets.source, nets.made), axis=1),
        owner=owner,
        before_start=before_start,
        before=before,
        ahead_start=ahead.start,
        ahead=ahead.items,
        behind_start=behind.start,
        behind=behind.items,
        communication=COMMUNICATION_MODELS.index(problem.communication),
        passes=problem.measure.passes,
    )


def new_state(model: PlacementModel) -> PlacementState:
    """Return a state with everything on device 0, whose sums are not computed yet."""
    nets, devices = len(model.cost), len(model.room)
    return PlacementState(
        place=np.zeros(len(model.size), dtype=np.int64),
        inside=np.zeros((nets, devices, 2), dtype=np.int32),
        ledger=np.zeros((devices, COLUMNS)),
    )


def _times(problem: Problem) -> Floats:
    """Return times by pass, shape (K, 2, n); where a supernode may not run, its best time elsewhere."""
    time = problem.time
    if problem.measure.passes == 1:
        time = np.stack((time.sum(axis=1), np.zeros_like(time[:, 0])), axis=1)
    allowed = problem.allowed[:, None, :]
    elsewhere = np.where(allowed, time, np.inf).min(axis=0)
    return np.asarray(np.where(allowed, time, np.where(np.isfinite(elsewhere), elsewhere, 0.0)))


def _clipped(cost: Floats, time: Floats, problem: Problem) -> Floats:
    """Return the costs clipped, as rounding errors of very large ones would hide all smaller loads."""
    most = float(time.max(axis=0).sum()) / problem.transfer_factor[problem.pays].min(initial=1.0)
    return np.minimum(cost, LARGEST_COST * most) if most > 0 else cost


def _ordered_regions(regions: tuple[Region, ...]) -> tuple[Ints, Ints, Ints]:
    """Return all regions as one: owners in a topological order, and rows of predecessors."""
    owner = np.concatenate([np.zeros(0, dtype=np.int64), *(region.owner for region in regions)])
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(owner)))
    first = 0
    for region in regions:
        graph.add_edges_from((region.edges + first).tolist())
        first += len(region.owner)
    order = np.array(list(nx.topological_sort(graph)), dtype=np.int64)
    position = np.argsort(order)
    edges = position[np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)]
    rows = rows_of(edges[:, 1], edges[:, 0], len(owner))
    return owner[order], rows.start, rows.items
