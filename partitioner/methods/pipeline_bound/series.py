"""What stages in series can take at most, and the bounds on the makespan that follow from it.

Stages in series wait for one another. With the loads L_1, L_2, ... of a sample and M microbatches the
makespan is at least

    L_1 + ... + L_(j-1) + M L_j    for each stage j

so k equal devices take at most 1 - (1 - 1/M)^k of it in place of k / M: with two devices and two microbatches
3 / 4 of the makespan, not all of it.

Without it the bound is lower on 20 of 41 pipelines, by 2 % on one (scripts/ablations.py).
"""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK, Relaxation, relax
from partitioner.methods.dp.lattice import Lattice, remaining_weights
from partitioner.methods.pipeline_bound.paths import STREAM, TURNS, WAYS, PassSpine, shortest_passes
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import PipelineProblem

TINY = 1e-12  # in place of 0 where a stage in series may take all of the makespan


def series_bound(problem: PipelineProblem, spine: PassSpine | None) -> float:
    """Return a lower bound on the makespan of every pipeline; 0 if nothing is known.

    A stage that holds none of the spine lies between two of its supernodes, and holds only what is neither
    before the first of them nor behind the second. All other stages wait for one another: with the loads
    L_1, L_2, ... and their sum S the makespan is at least L_1 + ... + M L_j for each of them, and
    S + (M - 1) L_j, of which 1F1B leaves out half a load for each stage behind j. So for each number of
    stages outside the series those in the series take at most a known multiple of the makespan, and all the
    work must be somewhere.

    Parameters
    ----------
    problem
        A problem with a schedule and a number of microbatches.
    spine
        Its spine; None if there is none.
    """
    schedule, samples = problem.pipeline.schedule or "", problem.pipeline.microbatches
    if schedule not in WAYS or samples is None or problem.copies.max() > 1:
        return 0.0
    if spine is None or not spine.returns or not spine.on.any():
        return 0.0
    free = problem.relaxed.without_levels
    relaxation = relax(free.lightest)
    if not np.isfinite(relaxation.bound):
        return 0.0
    room = float(relaxation.capacity(0.0, free.count, free.memory))
    prices = np.sort(np.repeat(relaxation.time_price, free.count))[::-1]
    need, between = relaxation.weight.sum() - room, _heaviest_between(spine, relaxation)
    outside = float(relaxation.weight[~spine.on].sum())
    least = np.inf
    for apart in range(len(prices)):
        rate = _rate(prices[: len(prices) - apart], samples, apart, WAYS[schedule].alone)
        least = min(least, (need - min(apart * between, outside)) / max(rate, TINY))
    return max(0.0, float(least))


def busiest_bound(problem: PipelineProblem, spine: PassSpine | None, load: float) -> float:
    """Return a lower bound on the makespan by the busiest stage, whose load is known to be at least `load`.

    If it holds supernodes a to c - 1 of the spine and W is their work, the makespan is at least

        forward times before a + M max(load, W) + backward times from c on

    and of both passes on both sides where the backward pass returns; 0 where paths leave something out, as
    under 1F1B then. If it holds none, the spine before and behind one of its supernodes takes its time.
    Inception-v3 under 1F1B, 8 microbatches: 17 % below the best makespan known, and without it 28 %.
    """
    schedule, samples = problem.pipeline.schedule or "", problem.pipeline.microbatches
    if schedule not in WAYS or samples is None or problem.copies.max() > 1:
        return 0.0
    if spine is None or not spine.on.any() or (spine.returns and WAYS[schedule].alone != STREAM):
        return 0.0
    time = shortest_passes(problem)[:, spine.on]
    early, late = (time.sum(axis=0),) * 2 if spine.returns else time
    before, work = (np.concatenate(([0.0], each.cumsum())) for each in (early, time.sum(axis=0)))
    behind = late.sum() - np.concatenate(([0.0], late.cumsum()))
    least = float((spine.before + spine.after)[~spine.on].min(initial=np.inf)) + samples * load
    for a in range(len(before) - 1):
        held = samples * np.maximum(load, work[a + 1 :] - work[a])
        least = min(least, float((before[a] + held + behind[a + 1 :]).min()))
    return least


def _heaviest_between(spine: PassSpine, relaxation: Relaxation) -> float:
    """Return the most weight that a stage can hold without a supernode of the spine."""
    rest = ~spine.on
    change = np.zeros(int(spine.on.sum()) + 2)
    np.add.at(change, spine.first[rest], relaxation.weight[rest])
    np.add.at(change, spine.last[rest] + 1, -relaxation.weight[rest])
    return float(change.cumsum().max())


def _rate(prices: Floats, samples: int, apart: int, way: int) -> float:
    """Return how much weight stages in series take at most for each unit of time of the makespan.

    Parameters
    ----------
    prices
        The prices of the time of their devices, largest first.
    samples, apart
        The number M of microbatches, and of the stages that are not in series.
    way
        What a path through the later stages leaves out.
    """
    places = np.arange(len(prices))
    before = float(prices @ (1 - 1 / samples) ** places) / samples
    left_out = np.minimum(places + apart, samples - 1) / 2 if way == TURNS else np.zeros(len(prices))
    shares = np.sort(1 / np.maximum(samples - 1 - left_out, TINY))[::-1]
    both = np.cumsum(prices * shares) / (1 + np.cumsum(shares))
    return min(before, float(both.max()))


def less_in_series(relaxation: Relaxation, free: Ints, limit: float, samples: int) -> Floats:
    """Return by how much less devices can take in stages in series than they have capacity, shape (S,).

    If every stage waits for the ones before it, M times its load and their loads are together at most the
    limit. So k stages take at most the limit times 1 - (1 - 1/M)^k, and their weight is largest if the
    devices whose time has the largest price take the largest parts.

    Parameters
    ----------
    relaxation
        The relaxation that gives prices to the time of devices.
    free
        Shape (S, K): numbers of devices by kind.
    limit, samples
        The makespan that is allowed, and the number M of microbatches.
    """
    less, before = np.zeros(len(free)), np.zeros(len(free))
    for k in np.argsort(-relaxation.time_price).tolist():
        after = before + free[:, k]
        parts = (1 - 1 / samples) ** before - (1 - 1 / samples) ** after
        less += relaxation.time_price[k] * limit * (free[:, k] / samples - parts)
        before = after
    return less


def least_outside(
    problem: PipelineProblem, spine: PassSpine, lattice: Lattice, held: Ints, most: float
) -> Floats:
    """Return a lower bound on the times of the stages outside each ideal, without a search.

    A stage that the spine does not count holds supernodes beside one place of the spine alone. All others
    are on the way of a sample, so the time of an ideal is at least that of all supernodes outside it but
    those beside u places. With d devices u of them may be left out if d - u devices have room for the rest.

    Parameters
    ----------
    problem, spine, lattice
        The turned problem, the spine before it was turned, and the ideals of the turned problem.
    held
        Shape (I,): how many supernodes of the spine each ideal holds.
    most
        The largest load of a device.

    Returns
    -------
    numpy.ndarray
        Shape (D + 1, I, 3), in the time unit: by the most devices that the stages have, of all passes that
        lead to the ideal, and of backward passes that do so; infinity where the devices have no room. Of the
        longest path through one of them nothing is known: 0.
    """
    devices, passes, every = int(problem.count.sum()), shortest_passes(problem), np.arange(lattice.size)
    work = passes.sum(axis=0)
    close = SLACK * (work.sum() + most)
    left, room = remaining_weights(lattice, work), _largest_beside(spine, work, devices)
    least = np.full((3, lattice.size, devices + 1), np.inf)
    least[2] = 0.0
    for way, time in enumerate((work, 0.0 * work) if spine.returns else passes):
        spared = _largest_beside(spine, time, devices)
        total, counted = remaining_weights(lattice, time), remaining_weights(lattice, time * spine.on[::-1])
        for u in range(devices + 1):
            needed = u + np.maximum(0.0, np.ceil((left - room[held, u] - close) / most))
            fits = needed <= devices
            ideals, number = every[fits], needed[fits].astype(np.int64)
            found = np.maximum(0.0, np.maximum(counted, total - spared[held, u]) - close)[fits]
            least[way, ideals, number] = np.minimum(least[way, ideals, number], found)
    return np.ascontiguousarray(np.minimum.accumulate(least, axis=2).T)


def _largest_beside(spine: PassSpine, figure: Floats, most: int) -> Floats:
    """Return what the supernodes beside some places of the turned spine have together, at most.

    Shape (places, most + 1): beside the 0 to `most` places at which it is the most, from each place on.
    """
    on, length = spine.on[::-1], int(spine.on.sum())
    first, last = length - spine.last[::-1], length - spine.first[::-1]
    beside = np.array([figure[~on & (first <= s) & (s <= last)].sum() for s in range(length + 1)])
    largest = np.zeros((length + 1, most + 1))
    for place in range(length + 1):
        some = np.sort(beside[place:])[::-1][:most]
        largest[place, 1 : len(some) + 1] = some
    return largest.cumsum(axis=1)
