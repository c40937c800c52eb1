"""The latency of a layout, and the check of its rules (paper, Appendix A).

Layouts: the device of every node, and its subgraph on the device.
"""

from __future__ import annotations

import numpy as np

from partitioner.methods import rules
from partitioner.methods.latency.kernel.model import model_of, scratch_of, state_of
from partitioner.methods.latency.kernel.tracking import timed
from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.places import device_kinds, parts_at
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import SampleProblem


def latency(problem: SampleProblem, layout: SubgraphLayout) -> float:
    """Return the last finish when everything starts as early as possible; infinity if units form a cycle.

    Limits are not checked: layouts with any number of subgraphs have a latency.
    """
    slot = ranked(problem, layout)
    model = model_of(problem, int(slot.max(initial=0)) + 1)
    return float(timed(model, state_of(model, SubgraphLayout(layout.place, slot)), scratch_of(model))[0])


def obeys(problem: SampleProblem, layout: SubgraphLayout) -> bool:
    """Whether the layout obeys memory, allowed kinds, groups and the number of subgraphs."""
    kind = device_kinds(problem)
    if layout.place.min(initial=0) < 0 or layout.place.max(initial=-1) >= len(kind):
        return False
    sound = rules.obeys(problem, parts_at(problem, layout.place))
    return sound and bool((ranked(problem, layout) < problem.subgraphs).all())


def ranked(problem: SampleProblem, layout: SubgraphLayout) -> Ints:
    """Return the slots numbered without gaps on every device and pass, shape (n,); 0 on CPUs."""
    pays = problem.pays[device_kinds(problem)[layout.place]]
    keys = np.stack([layout.place, problem.backward, np.where(pays, layout.slot, 0)], axis=1)
    unique, at = np.unique(keys.astype(np.int64), axis=0, return_inverse=True)
    fresh = np.ones(len(unique), dtype=bool)
    fresh[1:] = (unique[1:, :2] != unique[:-1, :2]).any(axis=1)
    number = np.arange(len(unique))
    return np.asarray((number - np.maximum.accumulate(np.where(fresh, number, 0)))[at.ravel()])
