"""The cost model of PipeDream's planner; bandwidth is in bytes per unit of time."""

from __future__ import annotations

from partitioner.base.compiled import njit


@njit(inline="always")
def stage_time(compute, parameters, replicas, bandwidth, share):  # type: ignore[no-untyped-def]
    """Return the time per minibatch of a stage on `replicas` machines.

    Weights are synchronised by a ring all-reduce, which sends and receives them after the compute and not
    at the same time. The replicas process one minibatch each, so both times are divided by their number. The
    synchronisation is also divided by `share`, the number of machines that take part in it in parallel.
    """
    synchronisation = 4.0 * (replicas - 1) * parameters / (bandwidth * replicas) / share
    return (compute + synchronisation) / replicas


@njit(inline="always")
def transfer_time(output, replicas, bandwidth, ratio):  # type: ignore[no-untyped-def]
    """Return the time to move an activation forward and its gradient back over the replicas' links."""
    return 2.0 * output / (bandwidth * replicas) / ratio


@njit(inline="always")
def stashed_bytes(held, replicas, behind):  # type: ignore[no-untyped-def]
    """Return the bytes of weights and activations, one copy for each minibatch on machines `behind` it.

    The stage's own minibatch does not count, so the last stage needs 0 bytes.
    """
    return held * ((behind + replicas - 1) // replicas)
