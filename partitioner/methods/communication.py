"""How processing and transfers make up a load under each model of communication (paper, Appendix H.1)."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from partitioner.problem.arrays import Floats

Term = TypeVar("Term")


def joint_loads(communication: str, busy: Floats, into: Floats, out: Floats) -> Floats:
    """Return the loads of devices, given times for processing, transfers in and transfers out.

    Examples
    --------
    >>> times = np.array([3.0]), np.array([1.0]), np.array([4.0])
    >>> [float(joint_loads(model, *times)[0]) for model in ("sequential", "overlapped", "duplex")]
    [8.0, 5.0, 4.0]
    """
    if communication == "sequential":
        return np.asarray(busy + into + out)
    transfer = into + out if communication == "overlapped" else np.maximum(into, out)
    return np.asarray(np.maximum(busy, transfer))


def joint_terms(communication: str, busy: list[Term], into: list[Term], out: list[Term]) -> list[list[Term]]:
    """Return lists of terms; a load is the largest of their sums.

    Examples
    --------
    >>> joint_terms("overlapped", ["work"], ["in"], ["out"])
    [['work'], ['in', 'out']]
    """
    if communication == "sequential":
        return [[*busy, *into, *out]]
    return [busy, [*into, *out]] if communication == "overlapped" else [busy, into, out]
