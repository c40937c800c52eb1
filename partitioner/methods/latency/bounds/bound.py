"""Lower bounds on the latency that take no search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from partitioner.methods.latency.bounds.flow import flow_for
from partitioner.methods.latency.bounds.serial import serial_bound
from partitioner.methods.latency.bounds.spine import heaviest_path, spine_along
from partitioner.methods.latency.path import longest_path
from partitioner.methods.method import OutOfTimeError, Settings
from partitioner.problem.variants import SampleProblem


def bound_of(problem: SampleProblem, settings: Settings) -> float:
    """Return the largest of the longest path and of serial bounds along the heaviest path.

    Each serial bound drops the edges that pass over more than a share of the path. It is a bound for a
    weakened graph, so all of them hold. Fewer are computed if the run must end.
    """
    best = longest_path(problem)
    if not problem.n or best == np.inf:
        return best
    with suppress(OutOfTimeError):
        for bound in _serial_bounds(problem, settings):
            best = max(best, bound)
    return best


def _serial_bounds(problem: SampleProblem, settings: Settings) -> Iterator[float]:
    """Yield the bounds along the spines on the heaviest path, the shortest reach first."""
    flow = flow_for(problem, settings)
    path = heaviest_path(flow, settings)
    seen = set()
    for reach in sorted({len(path), len(path) // 2, len(path) // 4, len(path) // 10, 12, 6, 2}):
        spine = spine_along(flow, path, max(reach, 1), settings)
        if tuple(spine.separators) not in seen:
            seen.add(tuple(spine.separators))
            yield serial_bound(problem, flow, spine, settings)
