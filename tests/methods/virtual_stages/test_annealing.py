"""Annealed stages are chains that fit the memory, and the best of all of them on small graphs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from partitioner import DeviceKind, Devices
from partitioner.methods.registry import METHODS
from partitioner.methods.virtual_stages.annealing import StageAnnealing
from partitioner.methods.virtual_stages.borders import StageBorders
from partitioner.planning.objectives import SIMULATED, THROUGHPUT
from partitioner.planning.options import read_options
from partitioner.planning.pipeline_makespan.virtual_stages import StageRuns
from partitioner.planning.request import Request
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.workload import Workload
from tests.random_virtual_stages import random_training


def random_runs(seed: int, name: str, memory: float) -> StageRuns:
    """Runs of a small graph with branches on two unlike devices."""
    graph = random_training(np.random.default_rng(seed), 7, path=False)
    kinds = (
        DeviceKind("gpu", 1, memory=memory),
        DeviceKind("old", 1, memory=memory, times="gpu", time_factor=2.0),
    )
    devices = Devices(kinds)
    options = read_options(SIMULATED, {"schedule": name, "microbatches": 4})
    request = Request(Workload(graph, devices), THROUGHPUT, "chain", METHODS["virtual_stages"], options)
    problem = request.problem()
    assert isinstance(problem, PipelineProblem)
    return StageRuns(graph, devices, request.regime, problem)


def is_chain(runs: StageRuns, borders: StageBorders) -> bool:
    """Whether no stage is empty and no supernode is after one that needs it."""
    stage, after = borders.stage, runs.problem.successors
    owner = np.repeat(np.arange(runs.problem.n), np.diff(after.start))
    whole = set(stage.tolist()) == set(range(2 * runs.chunks))
    return whole and bool((stage[owner] <= stage[after.items]).all())


def every_chain(runs: StageRuns) -> Iterator[StageBorders]:
    """All stages that obey the rules, on both orders of the devices."""
    for stage in product(range(2 * runs.chunks), repeat=runs.problem.n):
        if len(set(stage)) == 2 * runs.chunks:
            for kinds in ((0, 1), (1, 0)):
                borders = StageBorders.of(np.array(stage), kinds)
                if is_chain(runs, borders) and runs.obeys(borders):
                    yield borders


@pytest.mark.parametrize("name", ["interleaved_1f1b", "zbv", "zb_h1"])
@pytest.mark.parametrize("memory", [60.0, 1000.0])
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(s, marks=pytest.mark.slow) for s in range(3, 12))]
)
def test_stages_stay_chains_that_fit_and_become_the_best(seed: int, memory: float, name: str) -> None:
    """From the worst ones, by the estimates; where memory is scarce the best need not be within reach."""
    runs = random_runs(seed, name, memory)
    estimate = runs.estimates.makespan
    ranked = sorted(every_chain(runs), key=estimate)
    for start in ranked[-1:]:
        known = [(estimate(start), start)]
        annealing = StageAnnealing(runs.estimates, lambda: False, np.random.default_rng(seed))
        for found in annealing.series(known):
            assert is_chain(runs, found) and runs.obeys(found) and estimate(found) <= known[0][0]
            assert annealing.best and annealing.best[1] is found
            assert annealing.best[0] == pytest.approx(estimate(found), rel=1e-9)
            known.append((estimate(found), found))
        assert annealing.exhausted
        assert memory < 1000.0 or min(value for value, _ in known) == pytest.approx(estimate(ranked[0]))
    assert ranked or memory < 1000.0


def test_nothing_is_annealed_after_the_time_or_without_a_start() -> None:
    runs = random_runs(0, "zbv", 1000.0)
    start = runs.even(runs.work, np.array([0, 1]))
    known, rng = [(runs.estimates.makespan(start), start)], np.random.default_rng(0)
    assert not list(StageAnnealing(runs.estimates, lambda: True, rng).series(known))
    assert not list(StageAnnealing(runs.estimates, lambda: False, rng).series([]))
