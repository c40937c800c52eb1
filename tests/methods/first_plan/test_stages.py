"""The loads of a line's intervals are those of parts that hold the same supernodes."""

from __future__ import annotations

import numpy as np

from partitioner.methods.first_plan.stages import line_of
from partitioner.methods.loads import part_loads
from partitioner.methods.method import Part
from partitioner.problem.contract import contract
from tests.random_workloads import fitted, random_workload


def test_intervals_cost_what_parts_cost() -> None:
    """For every kind and interval of random lines, unless the links are duplex."""
    compared = 0
    for seed in range(100):
        graph, devices = random_workload(np.random.default_rng(seed), 7)
        problem = contract(fitted(graph, devices), devices)
        line = line_of(problem, np.arange(problem.n))
        if problem.communication == "duplex":
            continue
        for k in range(len(problem.count)):
            for begin in range(problem.n):
                end = int(line.barred[k, begin])
                loads = line.loads(k, begin, end) if end > begin else np.zeros(0)
                for last, load in enumerate(loads.tolist(), begin):
                    inside = np.arange(begin, last + 1)
                    outside = np.setdiff1d(np.arange(problem.n), inside)
                    parts = [Part(k, inside), Part(k, outside)]
                    assert np.isclose(load, part_loads(problem, parts)[0, 0])
                    compared += 1
    assert compared > 500
