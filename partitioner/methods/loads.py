"""Which part holds a supernode, the loads of parts, and the objective that follows from them.

How processing and transfers make up a load depends on the model of communication (paper, Appendix H.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Problem

Term = TypeVar("Term")


def part_numbers(parts: Sequence[Part], n: int) -> Ints:
    """Return the number of the part that holds each of the `n` supernodes, shape (n,)."""
    number = np.empty(n, dtype=np.int64)
    for i, part in enumerate(parts):
        number[part.nodes] = i
    return number


def joint_loads(communication: str, busy: Floats, into: Floats, out: Floats) -> Floats:
    """Return the loads of devices, given times for processing, transfers in and transfers out.

    Examples
    --------
    >>> times = np.array([3.0]), np.array([1.0]), np.array([4.0])
    >>> [float(joint_loads(model, *times)[0]) for model in ("sequential", "overlapped", "duplex")]
    [8.0, 5.0, 4.0]
    """
    if communication == "sequential":
        return np.asarray(busy + into + out)
    transfer = into + out if communication == "overlapped" else np.maximum(into, out)
    return np.asarray(np.maximum(busy, transfer))


def joint_terms(communication: str, busy: list[Term], into: list[Term], out: list[Term]) -> list[list[Term]]:
    """Return lists of terms; a load is the largest of their sums.

    Examples
    --------
    >>> joint_terms("overlapped", ["work"], ["in"], ["out"])
    [['work'], ['in', 'out']]
    """
    if communication == "sequential":
        return [[*busy, *into, *out]]
    return [busy, [*into, *out]] if communication == "overlapped" else [busy, into, out]


def value_of(problem: Problem, parts: Sequence[Part]) -> float:
    """Return the objective of parts that together hold every supernode; infinity if one may not run there.

    That is the largest load, or the largest forward plus the largest backward load where the measure has
    two passes. Memory is not checked.
    """
    loads = part_loads(problem, parts)
    return float(loads.max(axis=1).sum() if len(loads) else 0.0)


def part_loads(problem: Problem, parts: Sequence[Part]) -> Floats:
    """Return the load of every part in each pass of the measure, shape (passes, parts)."""
    kind = np.array([part.kind for part in parts], dtype=np.int64)
    number = part_numbers(parts, problem.n)
    busy = _processing(problem, kind, number)
    into, out = _transfers(problem, number, len(parts)) * problem.transfer_factor[kind]
    if problem.measure.passes == 1:
        busy, into, out = (each.sum(axis=0, keepdims=True) for each in (busy, into, out))
    return joint_loads(problem.communication, busy, into, out)


def _processing(problem: Problem, kind: Ints, number: Ints) -> Floats:
    """Return the forward and backward processing time of every part, shape (2, parts)."""
    each = np.arange(problem.n)
    time = problem.time[kind[number], :, each]
    time = np.where(problem.allowed[kind[number], each][:, None], time, np.inf)
    return np.array([np.bincount(number, time[:, w], len(kind)) for w in (0, 1)])


def _transfers(problem: Problem, number: Ints, count: int) -> Floats:
    """Return the cost of the cut nets of each part, into it and out of it, by pass, shape (2, 2, parts)."""
    nets = problem.nets
    touched = nets.pins.owners() * count + number[nets.pins.items]
    unique, first = np.unique(touched, return_inverse=True)
    read = np.ones(len(unique), dtype=np.int64)
    np.minimum.at(read, first, nets.read)
    net, place = np.divmod(unique, count)
    cut = np.bincount(net, minlength=len(nets.cost))[net] > 1
    net, place, read = net[cut], place[cut], read[cut]
    here = number[nets.source[net]] == place
    total = np.zeros((2, 2, count))
    np.add.at(total[0], (read[~here], place[~here]), nets.cost[net[~here]])
    np.add.at(total[1], (nets.made[net[here]], place[here]), nets.cost[net[here]])
    return total
