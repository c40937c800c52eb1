"""By how much a supernode may raise the loads of a stage that takes it from later stages, by pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.dp.stages import is_bound
from partitioner.methods.dp.table import has_earlier_pin
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class _Pins:
    """Every pair of a supernode and a net of it, as arrays in the order of `Nets.of_node`.

    Parameters
    ----------
    owner, net, read
        The supernode, the net, and the first pass in which the supernode reads it.
    makes
        Whether the supernode produces the tensor.
    """

    owner: Ints
    net: Ints
    read: Ints
    makes: Bools


def read_of_node(problem: Problem) -> Ints:
    """Return the first pass in which supernodes read their nets, in the order of `Nets.of_node`."""
    return problem.nets.read[np.argsort(problem.nets.pins.items, kind="stable")]


def work_by_pass(problem: Problem) -> Floats:
    """Return the time of each pass, shape (2, K, n); infinity where a kind may not run a supernode."""
    return np.where(problem.allowed, problem.time.transpose(1, 0, 2), np.inf)


def growth_by_pass(problem: Problem) -> Floats:
    """Return by how much a supernode may raise the loads of a stage that takes it, shape (2, K, n).

    It is finite only if no load of a later stage can grow in either pass, so that a stage that can take the
    supernode need not end before it. Where the user's limits are about stages it is infinite.
    """
    work = work_by_pass(problem)
    if is_bound(problem):
        return np.full(work.shape, np.inf)
    nets = problem.nets.of_node
    owner = nets.owners()
    pins = _Pins(owner, nets.items, read_of_node(problem), problem.nets.source[nets.items] == owner)
    transfer_factor = problem.transfer_factor[:, None]
    gain = work if problem.communication == "sequential" else np.zeros_like(work)
    harmless = (gain >= transfer_factor * _rise(problem, pins)[:, None]).all(axis=(0, 1))
    due = np.where(pins.makes, problem.nets.made[pins.net], pins.read)
    total = _summed(problem, pins, np.array([due == 0, due == 1]))
    return np.asarray(np.where(harmless, work + transfer_factor * total[:, None], np.inf))


def _summed(problem: Problem, pins: _Pins, chosen: Bools) -> Floats:
    """Return the cost of the chosen nets of every supernode, shape (2, n); `chosen` has shape (2, pairs)."""
    cost = problem.nets.cost[pins.net]
    return np.array([np.bincount(pins.owner, cost * row, problem.n) for row in chosen])


def _rise(problem: Problem, pins: _Pins) -> Floats:
    """Return the most by which a later stage pays more in each pass without a supernode, shape (2, n).

    The stage pays as before for a net that has a pin among the supernode's predecessors, since the net was
    cut already, unless the pass changes because its producer left, or its only forward reader.
    """
    nets = problem.nets
    cut, makes = has_earlier_pin(problem, pins.owner), pins.makes
    made = nets.made[pins.net]
    read_late = (pins.read == 1) & ~makes
    late = np.bincount(pins.net, read_late, len(nets.cost))[pins.net] - read_late
    early = np.bincount(pins.net, (pins.read == 0) & ~makes, len(nets.cost))[pins.net] - (
        (pins.read == 0) & ~makes
    )
    leaves_alike = cut & makes & (problem.communication != "duplex")
    rises = [
        others_read & ~steady & ~(leaves_alike & (made == w))
        for w, others_read, steady in (
            (0, (early > 0) | (~makes & (made == 0)), cut & ~makes),
            (1, (late > 0) | (~makes & (made == 1)), cut & ~makes & (pins.read == 1)),
        )
    ]
    return _summed(problem, pins, np.array(rises))
