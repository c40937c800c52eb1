"""The loads of stages on the contracted problem."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.methods.method import Stage, stage_numbers
from partitioner.preprocess.problem import Floats, Ints, Problem


def largest_load(problem: Problem, stages: Sequence[Stage]) -> float:
    """The largest load over stages that together hold every supernode; infinity if one is not allowed.

    Memory is not looked at.
    """
    stage = stage_numbers(stages, problem.n)
    kind = np.array([part.kind for part in stages])
    busy = np.bincount(stage, problem.work()[kind[stage], np.arange(problem.n)], len(stages))
    into, out = _transfers(problem, stage, len(stages)) * problem.pays[kind]
    if problem.communication == "sequential":
        return float((busy + into + out).max())
    transfer = into + out if problem.communication == "overlapped" else np.maximum(into, out)
    return float(np.maximum(busy, transfer).max())


def _transfers(problem: Problem, stage: Ints, count: int) -> Floats:
    """Shape (2, stages): cost of the cut nets that touch each stage, made elsewhere and made here."""
    nets = problem.nets
    net, place = np.divmod(np.unique(nets.pins.owners() * count + stage[nets.pins.items]), count)
    cut = np.bincount(net, minlength=len(nets.cost))[net] > 1
    net, place = net[cut], place[cut]
    here = stage[nets.source[net]] == place
    into = np.bincount(place, nets.cost[net] * ~here, count)
    out = np.bincount(place, nets.cost[net] * here, count)
    return np.array((into, out))
