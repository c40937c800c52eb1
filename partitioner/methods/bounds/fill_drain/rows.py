"""The rows of schedules: which passes a device of a stage runs between two others.

A device that is `ahead` samples ahead runs the forward passes 0 to `ahead`, then a backward pass and a
forward pass in turn, and at last the remaining backward passes. Under GPipe a device is ahead by all samples,
under 1F1B by as many as there are devices behind it, or by one sample in graphs whose backward part is
written in the direction of the forward part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partitioner.problem.arrays import Ints

NEVER = -1


class RowEvents(NamedTuple):
    """The passes at which paths change to the rows of neighbouring stages: F forward and B backward ones.

    Parameters
    ----------
    forward, backward
        Shape (F,) and (B,): their microbatches, ascending; empty if nothing is known of rows.
    forwards, backwards
        Shape (A, F + B, F + B): how many forward and backward passes a row holds from one of these passes up
        to another one, both included, for A numbers of samples ahead; :data:`NEVER` if the other one comes
        before it, or may do so.
    number
        Shape (D + 1,): which of the A rows a stage has, by the number of devices behind it.
    """

    forward: Ints
    backward: Ints
    forwards: Ints
    backwards: Ints
    number: Ints


def row_events(samples: int, ahead: Sequence[int], detail: int, fewer: bool) -> RowEvents:
    """Return the first and the last passes of rows, with `detail` further ones next to these.

    Parameters
    ----------
    samples
        The number of microbatches.
    ahead
        How many samples a stage is ahead, by the number of devices behind it; ascending.
    detail
        How many further forward passes at the beginning, and backward passes at the end, there are.
    fewer
        Whether a row may be ahead by fewer samples than is said.

    Examples
    --------
    >>> events = row_events(8, [2], 0, fewer=False)
    >>> events.forward.tolist(), events.backward.tolist(), events.forwards[0, 0].tolist()
    ([0, 7], [0, 7], [1, 8, 3, 8])
    """
    last, detail = samples - 1, min(detail, samples - 1)
    forward = np.unique([*range(detail + 1), last])
    backward = np.unique([0, *range(last - detail, last + 1)])
    distinct, number = np.unique(ahead, return_inverse=True)
    counts = [_counts(samples, each, forward, backward) for each in distinct.tolist()]
    forwards, backwards = (np.array(each) for each in zip(*counts, strict=True))
    if fewer:  # a pass comes before another one only if it does so in each of the rows
        forwards, backwards = (np.minimum.accumulate(each) for each in (forwards, backwards))
    return RowEvents(forward, backward, forwards, backwards, number)


def no_rows() -> RowEvents:
    """Return rows of which nothing is known."""
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros((0, 0, 0), dtype=np.int64)
    return RowEvents(none, none, nothing, nothing, none)


def _counts(samples: int, ahead: int, forward: Ints, backward: Ints) -> tuple[Ints, Ints]:
    """Return the counts of one row, shape (F + B, F + B) each."""
    before = np.stack(
        (
            np.concatenate((forward, np.minimum(samples, backward + ahead + 1))),
            np.concatenate((np.maximum(0, forward - ahead), backward)),
        )
    )
    is_forward = np.arange(before.shape[1]) < len(forward)
    own = np.stack((is_forward, ~is_forward)).astype(np.int64)
    found = before[:, None, :] - before[:, :, None] + own[:, None, :]
    place = before.sum(axis=0)
    found = np.where(place[:, None] <= place, found, NEVER)
    return found[0], found[1]
