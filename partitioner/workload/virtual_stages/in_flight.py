"""The samples that a device with several stages holds at once, by stage."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from partitioner.workload.directions import BACKWARD, FORWARD, WEIGHT
from partitioner.workload.graph import Ints
from partitioner.workload.in_flight import HOLD_A_BATCH
from partitioner.workload.virtual_stages.schedules import ALONE, VIRTUAL, Row

ROUNDS = 4  # after this number of rounds more than there are chunks, what a device holds repeats


@lru_cache(maxsize=4096)
def samples_by_chunk(
    schedule: str, rank: int, devices: int, chunks: int, microbatches: int
) -> tuple[tuple[int, ...], ...]:
    """Return the largest combinations of samples in flight on a device, each with a number for every chunk.

    A sample is in flight on a chunk from its forward pass to the end of its backward pass, or of the second
    half of that. At any time the device holds no more than one of these combinations, and it reaches each.

    Parameters
    ----------
    schedule
        A name in :data:`partitioner.workload.virtual_stages.schedules.VIRTUAL`, or in ``ALONE`` there.
    rank
        The number of the device, from 0.
    devices, chunks, microbatches
        How many devices there are, stages on each, and microbatches in a batch.

    Examples
    --------
    >>> samples_by_chunk("interleaved_1f1b", 0, 2, 2, 8), samples_by_chunk("zbv", 1, 2, 2, 8)
    (((3, 2), (4, 1)), ((2, 2), (3, 1)))
    """
    batch = microbatches if schedule in HOLD_A_BATCH else _enough(devices, chunks, microbatches)
    row = (VIRTUAL | ALONE)[schedule].row(rank, devices, chunks, batch)
    return _largest(_held(row, chunks))


def _enough(devices: int, chunks: int, microbatches: int) -> int:
    """Return a number of microbatches, at most the given one, with which a device holds as many samples."""
    most = devices * max(devices + 1, chunks + ROUNDS)
    return min(microbatches, most) if microbatches % devices == 0 or microbatches > most else microbatches


def _held(row: Row, chunks: int) -> Ints:
    """Return the samples of each chunk when each forward pass has begun, shape (forward passes, chunks)."""
    last = WEIGHT if (row.direction == WEIGHT).any() else BACKWARD
    begun, ended = (
        (row.direction[:, None] == which) & (row.chunk[:, None] == np.arange(chunks))
        for which in (FORWARD, last)
    )
    held = np.cumsum(begun, axis=0) - np.cumsum(ended, axis=0)
    return np.asarray(held[row.direction == FORWARD])


def _largest(held: Ints) -> tuple[tuple[int, ...], ...]:
    """Return the rows that no other row equals or exceeds in all columns, each once."""
    rows = np.unique(held, axis=0)
    kept = [row for row in rows if not ((rows >= row).all(axis=1) & (rows > row).any(axis=1)).any()]
    return tuple(tuple(row.tolist()) for row in kept)
