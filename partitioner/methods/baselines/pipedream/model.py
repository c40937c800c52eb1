"""What a stage costs in PipeDream's planner; bandwidth in bytes per unit of the times."""

from __future__ import annotations

from partitioner.base.compiled import njit


@njit(inline="always")
def stage_time(compute, parameters, replicas, bandwidth, share):  # type: ignore[no-untyped-def]
    """Time per minibatch of a stage on `replicas` machines.

    Weights are synchronised by a ring all-reduce, sending and receiving, after compute and not
    beside it. The replicas process as many minibatches at once, by which both are divided; the
    synchronisation is divided by `share` too, the machines that carry it side by side.
    """
    synchronisation = 4.0 * (replicas - 1) * parameters / (bandwidth * replicas) / share
    return (compute + synchronisation) / replicas


@njit(inline="always")
def transfer_time(output, replicas, bandwidth, ratio):  # type: ignore[no-untyped-def]
    """Time to move an activation forward and its gradient back over the links of the replicas."""
    return 2.0 * output / (bandwidth * replicas) / ratio


@njit(inline="always")
def stashed_bytes(held, replicas, behind):  # type: ignore[no-untyped-def]
    """Copies of weights and activations, one for each minibatch on the machines `behind` the stage.

    Its own minibatch does not count, so a last stage needs nothing.
    """
    return held * ((behind + replicas - 1) // replicas)
