"""All stages between two ideals that can have a load within a limit, found once for all searches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp.alternatives_stages import ChoiceModel
from partitioner.methods.dp.lattice import Lattice, first_later_cover
from partitioner.problem.arrays import Floats, Ints

BYTES_A_SHAPE, BYTES_A_PAIR = 16, 16  # that tables take for a shape of a stage, and for a stage
SLICE = 256  # ideals between two checks whether the run should end


class Pairs(NamedTuple):
    """The stages from ideal i: those from ``start[i]`` to ``start[i + 1]``.

    Parameters
    ----------
    start
        Shape (ideals + 1,).
    to
        The ideal that the stage leads to.
    cut
        The cost of the tensors that it shares with others.
    least
        Shape (stages, D): a lower bound of the load of a stage of each shape, whatever the memory.
    """

    start: Ints
    to: Ints
    cut: Floats
    least: Floats


class Least(NamedTuple):
    """The least figures of choices and of supernodes.

    Parameters
    ----------
    value
        Shape (n, D): the least value of a supernode in a stage of a shape; infinity if it has no way.
    each, once
        Shape (n, degrees): the least memory of each sort by degree.
    linked
        Shape (n,): whether a way of the supernode pays extra times for edges.
    number
        Shape (D,): the number of the degree of every shape.
    degree
        Shape (degrees,): the degrees.
    """

    value: Floats
    each: Floats
    once: Floats
    linked: Any
    number: Ints
    degree: Ints


def least_of(model: ChoiceModel) -> Least:
    """Return the least figures of every supernode."""
    choices, shapes = model.choices, model.shapes
    degrees, number = np.unique(shapes.degree, return_inverse=True)
    owner = np.repeat(np.arange(model.problem.n), np.diff(choices.of_node))
    by_shape = [_sums(model, owner, choices.value[d], shapes.degree[d]) for d in range(len(number))]
    linked = np.bincount(owner, np.diff(choices.link_start), model.problem.n) > 0
    each = [_sums(model, owner, choices.each, degree) for degree in degrees]
    once = [_sums(model, owner, choices.once, degree) for degree in degrees]
    return Least(np.stack(by_shape, 1), np.stack(each, 1), np.stack(once, 1), linked, number, degrees)


def _sums(model: ChoiceModel, owner: Ints, figures: Floats, degree: int) -> Floats:
    """Return the least figures of the ways of that degree, summed over the choices of each supernode."""
    choices = model.choices
    possible = np.where(choices.degree == degree, figures, np.inf)
    least = np.minimum.reduceat(possible, choices.start[:-1])
    found = np.zeros(model.problem.n)
    np.add.at(found, owner, least)
    return found


def pairs_within(
    model: ChoiceModel, lattice: Lattice, limit: float, budget: int, ended: Any = lambda: False
) -> Pairs | None:
    """Return the stages whose load can be at most `limit`; None if they exceed the budget, or the run ends.

    Parameters
    ----------
    model, lattice
        The problem and its ideals, both turned.
    limit
        Of the load.
    budget
        Bytes that the tables may take.
    ended
        Called from time to time: whether to give up.
    """
    least, shapes = least_of(model), len(model.shapes.copies)
    most = budget // (BYTES_A_SHAPE * shapes + BYTES_A_PAIR)
    start = np.zeros(lattice.size + 1, dtype=np.int64)
    counts = np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros((0, shapes))
    for first in range(0, lattice.size, SLICE):
        if ended() or start[first] > most:
            return None
        _walk(lattice, model.cuts, model.choices, model.shapes, least, model.memory, limit,
              first, min(first + SLICE, lattice.size), start, *counts)  # fmt: skip
    count = int(start[-1])
    if count > most:
        return None
    cut, to, values = np.empty(count), np.empty(count, dtype=np.int64), np.empty((count, shapes))
    for first in range(0, lattice.size, SLICE):
        if ended():
            return None
        _walk(lattice, model.cuts, model.choices, model.shapes, least, model.memory, limit,
              first, min(first + SLICE, lattice.size), start, cut, to, values)  # fmt: skip
    return Pairs(start, to, cut, values)


@njit(cache=True, nogil=True)
def _walk(  # type: ignore[no-untyped-def]
    lattice, cuts, choices, shapes, least, memory, limit, first_ideal, end_ideal, start, cut, to, values
):
    """Count the stages that begin at some ideals, or write them if the buffer holds all of them.

    A stage grows by supernodes of ascending rank, so that each larger ideal is reached once. It stops growing
    where no degree has enough memory, or no shape has a load within the limit even if nothing is cut.
    """
    n, depths, of_shape = len(lattice.rank), len(lattice.rank) + 1, len(shapes.copies)
    degrees = least.each.shape[1]
    ideal, cursor, added = np.zeros((3, depths), np.int64)
    base = np.zeros((depths, of_shape))
    each, once = np.zeros((2, depths, degrees))
    crossing, extra = np.zeros(depths), np.zeros(degrees)
    inside = np.zeros(n, np.bool_)
    held = np.zeros(len(cuts.pins), np.int64)
    for source in range(first_ideal, end_ideal):
        count, depth = start[source], 0
        ideal[0], cursor[0] = source, lattice.start[source]
        while depth >= 0:
            here = ideal[depth]
            if cursor[depth] == lattice.start[here + 1]:
                if depth:
                    _remove(added[depth], cuts, held, inside)
                depth -= 1
                continue
            e = cursor[depth]
            cursor[depth] += 1
            v = lattice.node[e]
            fits, quick = False, False
            for g in range(degrees):
                each[depth + 1, g] = each[depth, g] + least.each[v, g]
                once[depth + 1, g] = once[depth, g] + least.once[v, g]
            for d in range(of_shape):
                base[depth + 1, d] = base[depth, d] + least.value[v, d]
                if base[depth + 1, d] <= limit:
                    quick = True
                    g = least.number[d]
                    if each[depth + 1, g] * shapes.in_flight[d, 0] + once[depth + 1, g] <= memory:
                        fits = True
            if not (quick and fits):
                continue
            depth += 1
            crossing[depth] = crossing[depth - 1] + _add(v, cuts, held, inside)
            added[depth], ideal[depth] = v, lattice.to[e]
            cursor[depth] = first_later_cover(lattice.start, lattice.node, lattice.rank, ideal[depth], v)
            if len(to):
                to[count], cut[count] = ideal[depth], crossing[depth]
                for g in range(degrees):
                    extra[g] = crossing[depth]
                for k in range(1, depth + 1):
                    if least.linked[added[k]]:
                        _add_surcharges(added[k], least, choices, inside, extra)
                for d in range(of_shape):
                    values[count, d] = base[depth, d] + extra[least.number[d]] / shapes.copies[d]
            count += 1
        if not len(to):
            start[source + 1] = count


@njit(cache=True)
def _add(v, cuts, held, inside):  # type: ignore[no-untyped-def]
    """Add a supernode to a stage; return by how much the cost of what is cut rises."""
    rise = 0.0
    inside[v] = True
    for k in range(cuts.start[v], cuts.start[v + 1]):
        net = cuts.net[k]
        if held[net] == 0:
            rise += cuts.cost[net]
        held[net] += 1
        if held[net] == cuts.pins[net]:
            rise -= cuts.cost[net]
    return rise


@njit(cache=True)
def _remove(v, cuts, held, inside):  # type: ignore[no-untyped-def]
    inside[v] = False
    for k in range(cuts.start[v], cuts.start[v + 1]):
        held[cuts.net[k]] -= 1


@njit(cache=True)
def way_surcharge(c, w, choices, inside):  # type: ignore[no-untyped-def]
    """Return the extra time of a way for its edges that leave the stage `inside`, for all copies together."""
    extra = 0.0
    for k in range(choices.link_start[c], choices.link_start[c + 1]):
        if not inside[choices.link[k]]:
            extra += choices.link_cost[k, w - choices.start[c]]
    return extra


@njit(cache=True)
def _add_surcharges(v, least, choices, inside, extra):  # type: ignore[no-untyped-def]
    """Add for each degree the least extra time of a supernode's ways for edges that leave the stage."""
    for c in range(choices.of_node[v], choices.of_node[v + 1]):
        for g in range(len(extra)):
            lowest = np.inf
            for w in range(choices.start[c], choices.start[c + 1]):
                if choices.degree[w] == least.degree[g]:
                    lowest = min(lowest, way_surcharge(c, w, choices, inside))
            if lowest < np.inf:
                extra[g] += lowest
