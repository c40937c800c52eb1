"""Costs of nets that cross an ideal, and of those that cross the ends of a segment, by definition."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.lattice import ideal_lattice
from partitioner.methods.dp.levels_tables import Segments
from partitioner.methods.dp.levels_weights import end_costs, segment_costs
from tests.methods.dp.pipeline_cases import problem_of
from tests.random_pipelines import random_case


@pytest.mark.parametrize("seed", range(6))
def test_costs_by_definition(seed: int) -> None:
    problem = problem_of(random_case(np.random.default_rng([seed, 3]), ["levels"], 9))
    lattice = ideal_lattice(problem, 10_000, 100_000)
    assert lattice is not None
    segments, nets = Segments(problem, relax(problem), lattice), problem.nets
    pins = [set(nets.pins.row(e).tolist()) for e in range(len(nets.cost))]
    in_flight = [set(lattice.members(i).tolist()) for i in range(lattice.size)]
    expected = [
        sum(nets.cost[e] for e, p in enumerate(pins) if p & ideal and p - ideal) for ideal in in_flight
    ]
    assert segments.weights.cut == pytest.approx(expected)
    low = lattice.size // 3
    highs = np.flatnonzero(segments.above(low))
    enter, leave = 2 * nets.cost, 5 * nets.cost
    found = segment_costs(
        segments.members, low, highs, nets.pins.start, nets.pins.items, nets.source, enter, leave
    )
    for high, total in zip(highs.tolist(), found.tolist(), strict=True):
        inside, cost = in_flight[high] - in_flight[low], 0.0
        for e, p in enumerate(pins):
            if p & inside and int(nets.source[e]) not in inside:
                cost += enter[e]
            elif p & inside and p - inside:
                cost += leave[e]
        assert total == pytest.approx(cost)
        share = segments.mask(low, high)
        each = end_costs(share, nets, enter, leave)
        assert each.sum() == pytest.approx(total)
        assert not each[~share].any()
