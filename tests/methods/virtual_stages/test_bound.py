"""No bound on makespans with several stages on a device is above the best pipeline, simulated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, PartitionerError, Solution, solve
from partitioner.base.clock import Clock
from partitioner.methods.dp.reduced import left_out
from partitioner.methods.method import Settings
from partitioner.methods.registry import METHODS
from partitioner.methods.virtual_stages import bound, bound_walk, path_bounds
from partitioner.methods.virtual_stages.bound_walk import EFFORT
from partitioner.methods.virtual_stages.cut_costs import MOST_CUTS
from partitioner.methods.virtual_stages.path_bounds import PathBounds
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import SIMULATED, THROUGHPUT
from partitioner.planning.options import read_options
from partitioner.planning.request import Request
from partitioner.problem.nets import build_nets
from partitioner.problem.variants import PipelineProblem
from partitioner.schedule import simulate
from partitioner.schedule.simulation import INPUT_SHARE
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from partitioner.workload.workload import Workload
from tests.oracle_pipelines import atoms
from tests.oracle_virtual_stages import chains
from tests.random_virtual_stages import VirtualCase, random_virtual_case

FEW = 20  # steps of walks
ABOVE = 1.4  # of the best makespan: up to there a bound that is wrong could rise
MOST_CHAINS = 300  # of a number of devices
Draw = Callable[[np.random.Generator, str], VirtualCase]


def best_makespan(case: VirtualCase, devices: int) -> float:
    """The least simulated makespan of all chains on a number of devices; infinity if none obeys the rules."""
    best, limits = math.inf, case.constraints
    order = tuple(f"gpu{rank}" for rank in VIRTUAL[case.schedule].ranks(devices, case.chunks))
    for i, stage in enumerate(chains(case.graph, atoms(case.graph, limits), len(order), limits)):
        if i == MOST_CHAINS:
            return math.inf
        stage_of: dict[Any, int] = dict(zip(case.graph.ids, stage.tolist(), strict=True))
        placement = {node: order[number] for node, number in stage_of.items()}
        solution = Solution(placement, order=order, stage_of=stage_of)
        given: dict[str, Any] = {"schedule": case.schedule, "microbatches": case.microbatches}
        if evaluate(case.graph, case.devices, solution, constraints=limits, split="chain", **given).feasible:
            best = min(best, simulate(case.graph, case.devices, solution, **given).makespan)
    return best


def bounds_of(case: VirtualCase) -> PathBounds:
    """The bounds for a random case."""
    options = read_options(SIMULATED, case.options)
    workload = Workload(case.graph, case.devices)
    request = Request(workload, THROUGHPUT, "chain", METHODS["virtual_stages"], options)
    problem = request.problem()
    assert isinstance(problem, PipelineProblem)
    nets = build_nets(case.graph, problem.member, problem.n, "passes")
    return PathBounds(case.graph, replace(problem, nets=nets), [0], INPUT_SHARE, Settings())


def wide_case(branches: int, schedule: str, rng: np.random.Generator | None = None) -> VirtualCase:
    """A node, branches side by side and a node after them, with the backward pass, on two devices."""
    n, rng = branches + 2, rng or np.random.default_rng(0)
    edges = [*((0, i) for i in range(1, n - 1)), *((i, n - 1) for i in range(1, n - 1))]
    edges += [(n - 1, n), *((2 * n - 1 - b, 2 * n - 1 - a) for a, b in edges)]
    forward = rng.integers(1, 9, n).astype(float)
    graph = Graph.from_arrays(
        {"gpu": [*forward, *(2 * forward[::-1])]},
        edges,
        [0.1] * len(edges),
        backward=[False] * n + [True] * n,
        color=[*range(n), *reversed(range(n))],
    )
    chunks = min(2, VIRTUAL[schedule].chunks[2])
    return VirtualCase(graph, Devices((DeviceKind("gpu", 2),)), schedule, chunks, 4)


def wide(rng: np.random.Generator, schedule: str) -> VirtualCase:
    """Two to four branches side by side."""
    return wide_case(int(rng.integers(2, 5)), schedule, rng)


def judged(seed: int, name: str, draw: Draw = random_virtual_case) -> int:
    """Compare the bounds of a random case with its best makespans, and return how many there are."""
    case, count, together = draw(np.random.default_rng(seed), name), 0, dict[int, float]()
    if not case.graph.backward.any():
        return 0
    for devices in range(1, case.devices.kinds[0].count + 1):
        if VIRTUAL[name].rule(devices, case.microbatches):
            continue
        try:
            best, bounds = best_makespan(case, devices), bounds_of(case)
        except PartitionerError:
            continue
        if 0 < best < math.inf:
            together[devices] = best
            check(bounds, {devices: 0.0}, best, f"seed {seed}, {devices} devices")
            count += bounds.bound > 0
    if together:
        best = min(together.values())
        check(bounds_of(case), dict.fromkeys(together, 0.0), best, f"seed {seed}, any of {list(together)}")
    return count


def check(bounds: PathBounds, known: dict[int, float], best: float, words: str) -> None:
    """Raise the bounds for numbers of devices, which must stay below the best makespan."""
    for _ in bounds.narrow(known, ABOVE * best):
        pass
    assert bounds.bound <= best * (1 + 1e-9), f"{words}: {bounds.bound} > {best}"


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize(("first", "count"), [(0, 4), pytest.param(4, 25, marks=pytest.mark.slow)])
def test_no_bound_is_above_the_best_pipeline(name: str, first: int, count: int) -> None:
    """Against all chains on each number of devices, simulated."""
    assert sum(judged(seed, name) for seed in range(first, first + count)) >= count / 4


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize(("first", "count"), [(200, 4), pytest.param(204, 28, marks=pytest.mark.slow)])
def test_no_bound_without_light_supernodes_is_above_the_best_pipeline(
    name: str, first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against all chains, simulated, as if cuts were too many; some of what is left out lies between."""
    lying = list[int]()

    def noted(*given: Any, **options: Any) -> Any:
        rest, fewer = left_out(*given, **options)
        lying.append(len(fewer.between))
        return rest, fewer

    monkeypatch.setattr(path_bounds, "_most_cuts", lambda *_: 1)
    monkeypatch.setattr(path_bounds, "left_out", noted)
    for share in (0.1, 0.3, 0.6):
        monkeypatch.setattr(path_bounds, "EFFORT", replace(bound.EFFORT, left_out=(share,)))
        for draw, least in ((random_virtual_case, count / 4), (wide, 2 * count)):  # all of two numbers
            assert sum(judged(seed, name, draw) for seed in range(first, first + count)) >= least
    assert sum(lying) >= count / 4


@pytest.mark.parametrize("name", ["interleaved_1f1b", "zbv"])
@pytest.mark.parametrize("memory", [56, 2**62])
def test_walks_that_are_given_up_go_on(name: str, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any steps at first, and numbers of devices one by one, no bound is wrong either."""
    monkeypatch.setattr(path_bounds, "EFFORT", replace(bound.EFFORT, memory=memory))
    monkeypatch.setattr(bound, "WALK", replace(EFFORT, first=FEW, steps=FEW))
    went_on = list[bool]()
    begin, go_on = bound.PathBound.begin, bound.PathBound.go_on

    def few(self: bound.PathBound, limit: float, refuting: bool = False) -> Iterator[bound.TimedChain]:
        self.most_steps = FEW
        return begin(self, limit, refuting)

    def noted(self: bound.PathBound, high: float) -> bool:
        went_on.append(go_on(self, high))
        return went_on[-1]

    monkeypatch.setattr(bound.PathBound, "begin", few)
    monkeypatch.setattr(bound.PathBound, "go_on", noted)
    assert sum(judged(seed, name) for seed in range(40, 46)) > 0 and any(went_on)


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize(("first", "count"), [(60, 8), pytest.param(68, 25, marks=pytest.mark.slow)])
def test_chains_that_begin_like_an_excluded_one(
    name: str, first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are left out after every few steps of a walk, and no bound is wrong."""
    monkeypatch.setattr(bound_walk, "EFFORT", replace(EFFORT, chunk=4, excluded=1, priced=0))
    monkeypatch.setattr(bound, "EFFORT", replace(bound.EFFORT, rounds=0))
    skipped, skip = list[int](), bound_walk.ChainWalk.skip

    def noted(self: bound_walk.ChainWalk, stages: int) -> None:
        skipped.append(stages)
        skip(self, stages)

    monkeypatch.setattr(bound_walk.ChainWalk, "skip", noted)
    assert sum(judged(seed, name) for seed in range(first, first + count)) >= count / 4 and any(skipped)


@pytest.mark.parametrize("name", ["interleaved_1f1b", "zbv"])
def test_more_ideals_are_cuts_than_pairs_are_walked_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten branches side by side there are 1,026; without them only loads give a bound."""
    case = wide_case(10, name)
    plan = solve(case.graph, case.devices, "makespan", time_limit=5.0, **case.options)
    monkeypatch.setattr(path_bounds, "EFFORT", replace(bound.EFFORT, cuts=0, left_out=()))
    few = bounds_of(case)
    check(few, {2: 300.0}, plan.value, name)
    monkeypatch.setattr(path_bounds, "EFFORT", bound.EFFORT)
    every = bounds_of(case)
    check(every, {2: 300.0}, plan.value, name)
    assert (len(every.cuts), every.cuts.complete, few.cuts.complete) == (1026, True, False)
    assert few.bound == 300.0 < every.bound - 1.0


def test_cuts_are_fewer_where_time_or_memory_do_not_suffice() -> None:
    """At least as many as the method of loads has; without a limit of time the memory alone counts."""
    problem, gib = bounds_of(wide_case(10, "zbv")).problem, 2**30
    counts = [
        path_bounds._most_cuts(problem, Settings(clock=Clock(seconds), memory_budget=memory))
        for seconds, memory in ((math.inf, 64 * gib), (math.inf, gib // 4), (1e-3, 64 * gib), (5.0, 64 * gib))
    ]
    assert counts[0] == bound.EFFORT.cuts and counts[2] == MOST_CUTS
    assert min(counts[1], counts[3]) > MOST_CUTS and max(counts[1], counts[3]) < counts[0]
