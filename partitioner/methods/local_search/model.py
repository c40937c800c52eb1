"""The arrays of the compiled search, made from a problem."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.problem import Problem, Region
from partitioner.problem.variants import PartsProblem
from partitioner.workload.devices import COMMUNICATION_MODELS

BUSY, INTO, OUT, LOAD, SCORE = 0, 2, 4, 6, 8  # by pass: two columns each
HELD, BARRED, VIOLATION, ROOM, TRANSFER_FACTOR = 10, 11, 12, 13, 14
COLUMNS = 15
AHEAD, BEHIND = 0, 1


class PlacementModel(NamedTuple):
    """The costs of placements: n supernodes, D devices, E nets, P pins, m nodes of regions.

    Parameters
    ----------
    time
        Shape (n, D, 2): processing time by pass; all is in the first pass unless `passes` is 2.
    size
        Shape (n,): memory.
    violation_scale
        Mean memory of a supernode, the unit in which memory above a device's limit is counted.
    allowed
        Shape (n, D): whether the supernode may run on the device.
    room, transfer_factor, contiguous
        Shape (D,): the device's memory, its time for a transfer of cost 1, and whether its share must be
        contiguous.
    net_start, net
        Rows over supernodes, shapes (n + 1,) and (P, 2): the nets of each, and the pass in which it first
        reads each net.
    pin_start, pin
        Rows over nets, shapes (E + 1,) and (P,): the supernodes of each.
    cost
        Shape (E,): see :class:`partitioner.problem.problem.Nets`.
    made
        Shape (E, 3): number of pins, source, and the pass in which the tensor is made.
    owner, before_start, before
        Of the regions' nodes in a topological order: their supernodes, shape (m,); and rows of their direct
        predecessors.
    near_start, near
        Rows over supernodes, shapes (2, n + 1) and (2, edges): their successors (AHEAD) and predecessors
        (BEHIND) if the devices are the stages of a chain, in their order; no row at all for other splits.
    communication, passes
        The number of the communication model, and how many passes have loads of their own.
    """

    time: Floats
    size: Floats
    violation_scale: float
    allowed: NDArray[np.bool_]
    room: Floats
    transfer_factor: Floats
    contiguous: NDArray[np.bool_]
    net_start: Ints
    net: Ints
    pin_start: Ints
    pin: Ints
    cost: Floats
    made: Ints
    owner: Ints
    before_start: Ints
    before: Ints
    near_start: Ints
    near: Ints
    communication: int
    passes: int


class Moved(NamedTuple):
    """The current move, and scratch space.

    Parameters
    ----------
    who, where
        Shape (n + 1,): the supernodes of a move and their new devices; once they are moved, the old ones.
    front, attach, mark
        Shape (n,): supernodes that may join a cluster, the cost of the nets they share with it, and the
        number of the last move in which each was looked at.
    touched, held
        Shape (D,): the number of the last move to or from each device, and the memory used, summed anew.
    away
        Shape (m,): see :func:`leaves_and_returns`.
    """

    who: Ints
    where: Ints
    front: Ints
    attach: Floats
    mark: Ints
    touched: Ints
    held: Floats
    away: NDArray[np.bool_]


class PlacementState(NamedTuple):
    """The device of every supernode, and the sums that follow from it.

    Parameters
    ----------
    place
        Shape (n,): the device of every supernode.
    inside
        Shape (E, D, 2): how many pins of a net are on a device, and how many of these read in the
        forward pass (counted only where there are two passes).
    ledger
        Shape (D, COLUMNS): of every device, by pass: processing, transfers in and out, load, and a high power
        of the load over a scale; then the memory used, the number of supernodes that may not run there, the
        violation of limits, the memory, and the time of a transfer of cost 1.
    moves
        The current move.
    """

    place: Ints
    inside: NDArray[np.int32]
    ledger: Floats
    moves: Moved


class AnnealingControl(NamedTuple):
    """Parameters of annealing; all but `doublings` are in units of the largest load.

    Parameters
    ----------
    temperature
        The mean increase of the energy that is accepted.
    strict
        Penalty for a violation of 1.
    tie
        Weight of the sum of the loads in the energy.
    doublings
        The exponent of the power mean of the loads is two to this power.
    widest
        The most pins of a net over which a cluster grows.
    largest
        The most supernodes of a cluster.
    followers
        The most supernodes that move with another one so that no edge leads to an earlier stage.
    """

    temperature: float
    strict: float
    tie: float
    doublings: int
    widest: int = 64
    largest: int = 1024
    followers: int = 24


@njit(cache=True)
def leaves_and_returns(stamp, touched, contiguous, place, owner, before_start, before, away):
    """Whether a path leaves a touched device and comes back to it, so that its share is not contiguous.

    Parameters
    ----------
    stamp, touched, contiguous
        Shape (D,) each: device d is checked if `touched[d]` is the stamp and `contiguous[d]` is True.
    place, owner, before_start, before
        See :class:`PlacementState` and :class:`PlacementModel`.
    away
        Shape (m,): scratch space.
    """
    for d in range(len(contiguous)):
        if touched[d] != stamp or not contiguous[d]:
            continue
        for u in range(len(owner)):
            mine = place[owner[u]] == d
            away[u] = False
            for i in range(before_start[u], before_start[u + 1]):
                p = before[i]
                if mine and away[p]:
                    return True
                if not mine and (away[p] or place[owner[p]] == d):
                    away[u] = True
                    break
    return False


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
        near_start=np.stack((ahead.start, behind.start)),
        near=np.stack((ahead.items, behind.items)),
        communication=COMMUNICATION_MODELS.index(problem.communication),
        passes=problem.measure.passes,
    )


def new_state(model: PlacementModel) -> PlacementState:
    """Return a state with everything on device 0, whose sums are not computed yet."""
    n, nets, devices = len(model.size), len(model.cost), len(model.room)
    who, where, front, mark = (np.zeros(size, dtype=np.int64) for size in (n + 1, n + 1, n, n))
    return PlacementState(
        place=np.zeros(n, dtype=np.int64),
        inside=np.zeros((nets, devices, 2), dtype=np.int32),
        ledger=np.zeros((devices, COLUMNS)),
        moves=Moved(
            who=who,
            where=where,
            front=front,
            attach=np.zeros(n),
            mark=mark,
            touched=np.zeros(devices, dtype=np.int64),
            held=np.zeros(devices),
            away=np.zeros(len(model.owner), dtype=bool),
        ),
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
