"""The compiled parts of stages whose nodes run in several ways: modes of stages, and the ways of a device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import way_surcharge
from partitioner.methods.virtual_stages.kernel import Modes
from partitioner.problem.arrays import Bools, Floats, Ints

MOST_MODES = (
    192  # of a stage; where there are more, neighbours are joined to one that is no worse than either
)
MOST_CHOICES = 256  # plans for the ways of a device that are kept
MOST_STEPS = 20_000  # combinations of modes that are looked at for a device


class StageWays(NamedTuple):
    """The W ways of C choices on devices of one kind that run a stage together.

    Parameters
    ----------
    of_node
        Shape (n + 1,): the choices of supernode v are those from ``of_node[v]`` to ``of_node[v + 1]``.
    start
        Shape (C + 1,): the ways of each choice.
    time
        Shape (W,): the time; infinity for ways that another number of devices runs.
    once, kept, workspace
        Shape (W,): what is held once, for a sample in flight, and as workspace.
    link_start, link, link_cost
        As in :class:`partitioner.problem.ways.NodeWays`, in time.
    """

    of_node: Ints
    start: Ints
    time: Floats
    once: Floats
    kept: Floats
    workspace: Floats
    link_start: Ints
    link: Ints
    link_cost: Floats


@njit(cache=True, inner=True)
def insert(front: Floats, count: int, point: Floats, width: int) -> int:
    """Insert a point among points of rising first value, none as low as another; return their number.

    Points are compared by their first `width` values; `front` has room for one more.
    """
    for i in range(count):
        if front[i, 0] > point[0]:
            break
        worse = True
        for v in range(width):
            worse = worse and front[i, v] <= point[v]
        if worse:
            return count
    kept = 0
    for i in range(count):
        better = True
        for v in range(width):
            better = better and point[v] <= front[i, v]
        if not better:
            if kept != i:
                front[kept] = front[i]
            kept += 1
    place = kept
    while place > 0 and front[place - 1, 0] > point[0]:
        front[place] = front[place - 1]
        place -= 1
    front[place] = point
    return kept + 1


@njit(cache=True, inner=True)
def joined(front: Floats, count: int, most: int) -> int:
    """Join neighbouring points to their least values until at most `most` are left; return their number."""
    each = (count + most - 1) // most
    kept = 0
    for i in range(0, count, each):
        point = front[i].copy()
        for j in range(i + 1, min(i + each, count)):
            for v in range(len(point)):
                point[v] = min(point[v], front[j, v])
        front[kept] = point
        kept += 1
    return kept


@njit(cache=True, inner=True)
def with_node(
    front: Floats, count: int, ways: StageWays, node: int, inside: Bools, room: float, spare: Floats
) -> int:
    """Extend the modes of a stage by the ways of a supernode; return their number.

    A mode is its time and what it holds once, for a sample, and as workspace. Modes that a device's memory
    does not hold by themselves are left out. `front` and `spare` have the shape (most modes + 1, 4).
    """
    point = np.empty(4)
    for choice in range(ways.of_node[node], ways.of_node[node + 1]):
        found = 0
        for way in range(ways.start[choice], ways.start[choice + 1]):
            if ways.time[way] == np.inf:
                continue
            time = ways.time[way] + way_surcharge(ways, choice, way, inside)
            for i in range(count):
                point[0] = front[i, 0] + time
                point[1] = front[i, 1] + ways.once[way]
                point[2] = front[i, 2] + ways.kept[way]
                point[3] = max(front[i, 3], ways.workspace[way])
                if point[1] + point[2] + point[3] <= room:
                    found = insert(spare, found, point, 4)
                    if found == len(spare):
                        found = joined(spare, found, len(spare) // 2)
        count = found
        front[:count] = spare[:count]
    return count


@njit(cache=True, nogil=True)
def list_modes(
    member: Bools, nested: Bools, size: Ints, ways: StageWays, room: float, first: Ints, end: Ints
) -> Floats:
    """Return the modes of all stages, shape (modes, 4); fill the first of each stage and one after its last.

    Parameters
    ----------
    member, nested, size
        As in :class:`partitioner.methods.virtual_stages.cut_costs.StageCuts`.
    ways
        The ways.
    room
        The memory of a device.
    first, end
        Shape (m, m).
    """
    m, n = member.shape
    found, total = np.empty((1024, 4)), 0
    front, spare = np.empty((MOST_MODES + 1, 4)), np.empty((MOST_MODES + 1, 4))
    linked, inside = ways.link_start[-1] > 0, np.zeros(n, np.bool_)
    for a in range(m):
        for b in range(m):
            first[a, b] = end[a, b] = total
            if not nested[a, b]:
                continue
            front[0], count, between = 0.0, 1, a
            inside[:] = member[b] & ~member[a]
            for c in range(b):  # all but one of the supernodes may be known as a stage
                if not linked and size[c] == size[b] - 1 and nested[a, c] and nested[c, b]:
                    between, count = c, end[a, c] - first[a, c]
                    front[:count] = found[first[a, c] : end[a, c]]
            for v in range(n):
                if inside[v] and not member[between, v]:
                    count = with_node(front, count, ways, v, inside, room, spare)
            if total + count > len(found):
                larger = np.empty((2 * len(found) + count, 4))
                larger[:total] = found[:total]
                found = larger
            found[total : total + count] = front[:count]
            total += count
            end[a, b] = total
    return found[:total]


@njit(cache=True, nogil=True)
def slower_device(modes: Modes, first: Ints, end: Ints, samples: Floats, room: float) -> float:
    """Return the least time that a device loses by modes of its stages that fit its memory together.

    It is infinite if none do, and may be more than the least after :data:`MOST_STEPS` combinations.

    Parameters
    ----------
    modes
        The modes of all stages.
    first, end
        Shape (chunks,): the modes of the device's stages.
    samples, room
        The combinations of samples in flight, shape (combinations, chunks), and the memory.
    """
    chunks, best = len(first), np.inf
    at, slower, place = first.copy(), np.zeros(chunks + 1), 0
    for _ in range(MOST_STEPS):
        if at[place] == end[place] or slower[place] + modes.slower[at[place]] >= best:
            place -= 1
            if place < 0:
                break
            at[place] += 1
            continue
        slower[place + 1] = slower[place] + modes.slower[at[place]]
        if place + 1 < chunks:
            place += 1
            at[place] = first[place]
            continue
        once, workspace, held = 0.0, 0.0, 0.0
        for i in range(chunks):
            once += modes.once[at[i]]
            workspace = max(workspace, modes.workspace[at[i]])
        for s in range(len(samples)):
            kept = 0.0
            for i in range(chunks):
                kept += samples[s, i] * modes.kept[at[i]]
            held = max(held, kept)
        if once + workspace + held <= room:
            best = slower[chunks]
        at[place] += 1
    return best


@njit(cache=True, nogil=True)
def cheapest_middle(
    modes: Modes, first: Ints, end: Ints, time: Floats, samples: Floats, room: float
) -> tuple[int, float]:
    """Return which of some cuts divides a stage into two of the least time, and that time.

    Parameters
    ----------
    modes
        The modes of all stages.
    first, end
        Shape (cuts, 2): the modes of both stages for each cut.
    time
        Shape (cuts,): the time of both in their fastest modes.
    samples, room
        The combinations of samples in flight, shape (combinations, 2), and the memory.
    """
    found, best = -1, np.inf
    for c in range(len(first)):
        if time[c] < best:
            value = time[c] + slower_device(modes, first[c], end[c], samples, room)
            if value < best:
                found, best = c, value
    return found, best


@njit(cache=True, nogil=True)
def ways_of_device(
    ways: StageWays, nodes: Ints, chunk: Ints, inside: Bools, samples: Floats, room: float, way: Ints
) -> float:
    """Return the least time of a device; fill `way`, shape (C,), with the ways of its choices.

    It is infinite if its memory holds no ways, and may be more than the least, or infinite, where more than
    :data:`MOST_CHOICES` plans for its ways are no worse than one another.

    Parameters
    ----------
    ways
        The ways.
    nodes, chunk
        The supernodes of the device, and which of its stages each is in.
    inside
        Shape (n,): whether a supernode is among them.
    samples, room
        The combinations of samples in flight, shape (combinations, chunks), and the memory.
    way
        Filled.
    """
    listed, owner, steps = np.empty(len(way), np.int64), np.empty(len(way), np.int64), 0
    for i in range(len(nodes)):
        for choice in range(ways.of_node[nodes[i]], ways.of_node[nodes[i] + 1]):
            listed[steps], owner[steps] = choice, chunk[i]
            steps += 1
    width, cap = len(samples) + 2, MOST_CHOICES + 1
    least = np.zeros((steps + 1, len(samples)))  # the memory that choices from one on hold at least
    held = np.empty((len(ways.time), len(samples)))
    for step in range(steps - 1, -1, -1):
        choice = listed[step]
        low = np.full(len(samples), np.inf)
        for w in range(ways.start[choice], ways.start[choice + 1]):
            for s in range(len(samples)):
                held[w, s] = ways.once[w] + samples[s, owner[step]] * ways.kept[w]
                if ways.time[w] < np.inf:
                    low[s] = min(low[s], held[w, s])
        least[step] = least[step + 1] + low
    # a point: time, workspace, memory in each combination; then the point before it and its way
    fronts, counts = np.zeros((steps + 1, cap, width + 2)), np.zeros(steps + 1, np.int64)
    counts[0] = 1
    point = np.empty(width + 2)
    for step in range(steps):
        choice, count = listed[step], 0
        here, before = fronts[step + 1], fronts[step]
        for w in range(ways.start[choice], ways.start[choice + 1]):
            if ways.time[w] == np.inf:
                continue
            time = ways.time[w] + way_surcharge(ways, choice, w, inside)
            for i in range(counts[step]):
                point[0], point[1] = before[i, 0] + time, max(before[i, 1], ways.workspace[w])
                fits = True
                for s in range(len(samples)):
                    point[2 + s] = before[i, 2 + s] + held[w, s]
                    fits = fits and point[2 + s] + least[step + 1, s] + point[1] <= room
                point[width], point[width + 1] = i, w
                if fits:
                    count = insert(here, count, point, width)
                    if count == cap:  # every second one is kept, the fastest and the slowest among them
                        for k in range(count // 2):
                            here[k] = here[2 * k]
                        here[count // 2] = here[count - 1]
                        count = count // 2 + 1
        counts[step + 1] = count
        if count == 0:
            return np.inf
    i = 0
    for step in range(steps, 0, -1):
        way[listed[step - 1]] = int(fronts[step, i, width + 1])
        i = int(fronts[step, i, width])
    return float(fronts[steps, 0, 0])
