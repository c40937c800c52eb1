"""The dynamic program of one level; T(j, m) is the best time up to state j on m machines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.baselines.pipedream.model import stage_time, stashed_bytes, transfer_time
from partitioner.workload.graph import Bools, Floats, Ints


class Cuts(NamedTuple):
    """The states at which a pipeline may be cut; state 0 is the empty ideal, S the whole graph.

    Parameters
    ----------
    parameters, held
        Shape (S + 1,): bytes of the ideal's weights, and of weights and activations.
    output
        Shape (S + 1,): bytes that cross the cut.
    before
        Shape (S + 1, S + 1): whether the first state may be a cut before the second one.
    """

    parameters: Floats
    held: Floats
    output: Floats
    before: Bools


class Rules(NamedTuple):
    """A level of machines, and the rules for pipelines on it.

    Parameters
    ----------
    machines, bandwidth
        The number of machines, and the bandwidth between them in bytes per unit of time.
    first_share, later_share
        Divisors of the synchronisation time, of the first stage and of later ones.
    straight
        Whether no stage is replicated.
    fewer
        Whether machines may stay idle.
    memory
        Bytes of a machine, infinity without a limit.
    charged
        Whether transfers between stages count.
    ratio
        Divisor of the transfer time, by compression.
    """

    machines: int
    bandwidth: float
    first_share: float
    later_share: float
    straight: bool
    fewer: bool
    memory: float
    charged: bool
    ratio: float


def best_row(time: Floats, start: int, cuts: Cuts, rules: Rules) -> tuple[Floats, Ints, Ints, Ints]:
    """Return the best pipelines of everything between state `start` and each later one.

    A stage of r machines between the cuts k and j takes the largest of the times of its compute with
    synchronisation, its input and its output. The first stage pays no transfer, the last one has no output,
    and the memory of a stage depends on the number of machines behind it. As in the released program, idle
    machines are not considered for a pipeline that ends at the first state.

    Parameters
    ----------
    time
        Shape (S + 1, S + 1): time of the layers between two states on one machine, infinity where
        they cannot be a stage.
    start
        The state after which the pipelines begin.
    cuts, rules
        The states and the level.

    Returns
    -------
    value, split, left, replicas
        Shape (S + 1, machines + 1): the smallest time for exactly (with `fewer`, at most) that many machines;
        the state after which the last stage begins, how many machines are left for the stages before it,
        and how many it has.
    """
    shape = (len(cuts.parameters), rules.machines + 1)
    value, split = np.full(shape, np.inf), np.full(shape, -1, np.int64)
    left, replicas = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    _fill_row(time, start, cuts, rules, value, split, left, replicas)
    return value, split, left, replicas


@njit(cache=True, nogil=True)
def _fill_row(time, start, cuts, rules, value, split, left, replicas):  # type: ignore[no-untyped-def]
    parameters, held, output, before = cuts
    machines, bandwidth, first_share, later_share, straight, fewer, memory, charged, ratio = rules
    states = len(parameters)
    most = 1 if straight else machines
    for j in range(start + 1, states):
        weights, bytes_held = parameters[j] - parameters[start], held[j] - held[start]
        for r in range(1, most + 1):
            if stashed_bytes(bytes_held, r, machines - r) <= memory:
                cost = stage_time(time[start, j], weights, r, bandwidth, first_share)
                if cost < value[j, r]:
                    value[j, r], split[j, r], replicas[j, r] = cost, start, r
        for k in range(start + 1, j):
            if not before[k, j]:
                continue
            weights, bytes_held = parameters[j] - parameters[k], held[j] - held[k]
            for r in range(1, min(most, machines - 1) + 1):
                cost = stage_time(time[k, j], weights, r, bandwidth, later_share)
                if charged:
                    cost = max(cost, transfer_time(output[k], r, bandwidth, ratio))
                    if j < states - 1:
                        cost = max(cost, transfer_time(output[j], r, bandwidth, ratio))
                for m in range(r + 1, machines + 1):
                    total = max(cost, value[k, m - r])
                    if total < value[j, m] and stashed_bytes(bytes_held, r, machines - m) <= memory:
                        value[j, m], split[j, m], left[j, m], replicas[j, m] = total, k, m - r, r
        if fewer and j > start + 1:
            for m in range(2, machines + 1):
                if value[j, m - 1] < value[j, m]:
                    value[j, m], split[j, m] = value[j, m - 1], split[j, m - 1]
                    left[j, m], replicas[j, m] = left[j, m - 1], replicas[j, m - 1]
