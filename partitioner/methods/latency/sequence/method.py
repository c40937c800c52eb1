"""Method ``latency_dp``: the best sequence of blocks (paper, Section 5.1.1 with sums), then a beam search.

A sequence of ideals cuts the graph into blocks, each for one device. If one ran after the other, the
sample would take the sum of their lengths; it takes less if some need not wait for each other. The
dynamic program finds the least sum, first over linear orders, then over all ideals if these are few
enough; a beam search over the same ideals then finds plans whose blocks overlap.
"""

from __future__ import annotations

import numpy as np

from partitioner.methods.latency.layout import outcome_of
from partitioner.methods.latency.path import longest_path
from partitioner.methods.latency.sequence.sequence_search import SequenceSearch
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.problem.variants import SampleProblem


def solve_sequence(problem: SampleProblem, settings: Settings) -> Outcome:
    """Return the best plan of the dynamic program and the beam search: method ``latency_dp``.

    The bound is the longest path in best times, unless the graph is one path without a backward pass: there
    all blocks wait for one another, every contiguous split is a sequence, and the least sum is the optimum.
    """
    path = longest_path(problem)
    if np.isinf(path):
        return no_split(problem)
    search = SequenceSearch(problem, settings)
    search.run()
    if search.layout is None and np.isinf(search.bound):
        return no_split(problem)
    bound = max(path, search.bound)
    stop = settings.ended(bound, search.value)
    return outcome_of(
        problem, search.layout, search.value, bound, stop,
        statistics={
            "orders": search.orders, "steps": search.steps, "ideals": search.ideals,
            "sum": search.total, "width": search.width,
        },
    )  # fmt: skip
