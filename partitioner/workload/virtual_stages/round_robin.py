"""The order of passes where stage i is on device i mod p: interleaved 1F1B, and its zero-bubble form."""

from __future__ import annotations

import numpy as np

from partitioner.workload.directions import BACKWARD, FORWARD, INPUT, WEIGHT
from partitioner.workload.graph import Ints
from partitioner.workload.virtual_stages.row import Row


def interleaved_row(rank: int, devices: int, chunks: int, microbatches: int) -> Row:
    """Return the passes of a device under interleaved 1F1B (Megatron-LM, Section 2.2).

    The device runs ``2 (devices - rank - 1) + (chunks - 1) group`` forward passes before it alternates
    forward and backward passes; `group` microbatches pass one chunk before the next chunk runs.

    Examples
    --------
    >>> interleaved_row(1, 2, 2, 2).cells()
    ['0F0', '0F1', '1F0', '1B0', '1F1', '1B1', '0B0', '0B1']
    """
    group = group_of(devices, microbatches)
    warmup = 2 * (devices - rank - 1) + (chunks - 1) * group
    return _row(chunks, microbatches, group, warmup, None)


def zero_bubble_row(rank: int, devices: int, chunks: int, microbatches: int) -> Row:
    """Return the passes of a device under ZB-H1, interleaved if `chunks` is above 1 (ZB1P in torch).

    The device runs ``devices - rank - 1 + (chunks - 1) group`` forward passes before it alternates. The
    gradients of weights are computed `rank` passes later than those of the inputs.

    Examples
    --------
    >>> zero_bubble_row(1, 2, 1, 3).cells()
    ['0F0', '0I0', '0F1', '0I1', '0W0', '0F2', '0I2', '0W1', '0W2']
    """
    group = group_of(devices, microbatches)
    warmup = devices - rank - 1 + (chunks - 1) * group
    return _row(chunks, microbatches, group, warmup, rank)


def group_of(devices: int, microbatches: int) -> int:
    """Return how many microbatches pass one chunk of a device before its next chunk runs.

    It is `devices` if that divides the microbatches, else more (torch).
    """
    return microbatches // rounds_of(devices, microbatches)


def rounds_of(devices: int, microbatches: int) -> int:
    """Return in how many rounds, of `devices` microbatches or more, the microbatches run."""
    return max(1, microbatches // devices)


def _row(chunks: int, microbatches: int, group: int, warmup: int, delay: int | None) -> Row:
    """Return `warmup` forward passes, then forward and backward passes in turn, then the rest.

    If `delay` is given, the backward passes are in halves, of which the second come that much later.
    """
    step = np.arange(chunks * microbatches)
    warmup = min(warmup, len(step))
    turn, microbatch = step // group % chunks, step // (group * chunks) * group + step % group
    directions = (FORWARD, BACKWARD) if delay is None else (FORWARD, INPUT, WEIGHT)
    keys = 3 * step, 3 * (step + warmup) + 1, 3 * (step + warmup + (delay or 0)) + 2
    chunk: list[Ints] = [turn, chunks - 1 - turn, chunks - 1 - turn]
    count = len(directions)
    order = np.argsort(np.concatenate(keys[:count]), kind="stable")
    return Row(
        np.concatenate(chunk[:count])[order],
        np.repeat(directions, len(step))[order],
        np.tile(microbatch, count)[order],
    )
