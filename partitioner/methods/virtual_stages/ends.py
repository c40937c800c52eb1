"""The stages that devices take at one of two places, as arrays for the dynamic program over pairs of cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Floats, Ints


class PairedStages(NamedTuple):
    """The stages between a cut and the next one that a device takes; each array has shape (..., m, m).

    Parameters
    ----------
    terms, busy
        The terms of the loads, and the processing time; infinity where there is no stage.
    start, items
        For every cut the next ones by the processing time between, as rows.
    once, kept, workspace
        What is held once, the activations of a sample, and the largest workspace.
    """

    terms: Floats
    busy: Floats
    start: Ints
    items: Ints
    once: Floats
    kept: Floats
    workspace: Floats


def end_of(model: VirtualModel, rank: int, place: int, backwards: bool) -> PairedStages:
    """Return the stages that a device may take, each of which its memory holds alone.

    Parameters
    ----------
    model
        The devices and stages.
    rank, place
        The number of the device, and which of its two stages is meant.
    backwards
        Whether the devices take their stages from the end.
    """
    costs = model.costs
    arrays = model.low, costs.busy, costs.once, costs.kept, costs.workspace
    if backwards:
        arrays = tuple(np.ascontiguousarray(np.swapaxes(each, -1, -2)) for each in arrays)  # type: ignore[assignment]
    low, busy, once, kept, workspace = arrays
    may = np.isfinite(low).all(axis=0)
    if model.scarce:
        may &= once + kept * model.samples(rank)[:, place].max() + workspace <= model.limit
    count = may.sum(axis=1)
    order = np.argsort(np.where(may, busy, np.inf), axis=1, kind="stable")
    items = np.concatenate([row[:n] for row, n in zip(order, count.tolist(), strict=True)])
    start = np.concatenate(([0], np.cumsum(count)))
    return PairedStages(low, busy, start, items, once, kept, workspace)
