"""A look over the border of a group bounds what begins there, and weights of transfers lose nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from partitioner.methods.pipeline.levels.ahead import bound_ahead, looks_ahead
from partitioner.methods.pipeline.levels.ground import LevelsGround
from partitioner.methods.pipeline.levels.inside import ways_in_group
from partitioner.methods.pipeline.levels.reached import Reached
from partitioner.methods.relaxation import relax
from partitioner.preprocess.ideals import ideal_lattice
from tests.methods.pipeline.cases import problem_of
from tests.random_pipelines import random_case

THRESHOLD = 12.0


def searches() -> Iterator[Reached]:
    """Searches on one level of several groups that have not begun."""
    for seed in range(30):
        problem = problem_of(random_case(np.random.default_rng([seed, 8]), ["levels", "kinds"], 8))
        lattice = ideal_lattice(problem, 10_000, 100_000)
        assert lattice is not None
        reached = LevelsGround(problem, relax(problem), lattice).filling(THRESHOLD, 0.0).chain.reached
        if reached.stretch.level == 1 and reached.stretch.end > 1:
            yield reached


def values_to_the_end(reached: Reached) -> list[float]:
    """The value of what every ideal leaves on the last group; infinity above the threshold."""
    high, last = reached.stretch.high, reached.stretch.end - 1
    ways = [ways_in_group(reached, low, high, last, 0) for low in range(high)]
    return [min((end.value for end in found), default=np.inf) for found in ways]


def test_the_last_group_needs_no_less_than_the_bound() -> None:
    above = 0
    for reached in searches():
        assert looks_ahead(reached)
        assert reached.aim.after is not None
        for low, value in enumerate(values_to_the_end(reached)):
            bound = bound_ahead(reached, low, reached.stretch.end - 1)
            assert bound <= value
            above += bound > reached.aim.after[1, low]
    assert above > 10


def test_weights_of_transfers_prune_only_what_is_above_the_threshold() -> None:
    finite = 0
    for reached in searches():
        found = values_to_the_end(reached)
        reached.segments.weights.price = 0.0
        assert values_to_the_end(reached) == pytest.approx(found)
        finite += int(np.isfinite(found).sum())
    assert finite > 50
