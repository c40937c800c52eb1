"""Plans for the makespan with several stages on a device: simulated, bounded, no worse than even stages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from partitioner import (
    Constraints,
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    OptionError,
    Solution,
    evaluate,
    solve,
)
from partitioner.methods.registry import METHODS
from partitioner.methods.virtual_stages.borders import StageBorders, StageEstimates, fitted
from partitioner.planning.objectives import SIMULATED, THROUGHPUT
from partitioner.planning.options import read_options
from partitioner.planning.pipeline_makespan.virtual_stages import StageRuns
from partitioner.planning.request import Request
from partitioner.problem.variants import PipelineProblem
from partitioner.schedule import simulate
from partitioner.workload.virtual_stages.schedules import ALONE, VIRTUAL
from partitioner.workload.workload import Workload
from tests.oracle_pipelines import atoms
from tests.oracle_virtual_stages import chains
from tests.random_virtual_stages import VirtualCase, random_training, random_ways_case

GPUS = Devices((DeviceKind("gpu", 2),))


def every_makespan(
    graph: Graph, devices: Devices, name: str, microbatches: int, chunks: int = 2
) -> list[float]:
    """The simulated makespan of every chain of some stages on each of one or two devices, in every order."""
    found, every = [], [kind.device(i) for kind in devices.kinds for i in range(kind.count)]
    orders = [names for count in (1, 2) for names in permutations(every, count)]
    for names in orders:
        order = tuple(names[rank] for rank in VIRTUAL[name].ranks(len(names), chunks))
        for stage in chains(graph, atoms(graph, Constraints()), len(order)):
            stage_of: dict[Any, int] = dict(zip(graph.ids, stage.tolist(), strict=True))
            placement = {node: order[number] for node, number in stage_of.items()}
            solution = Solution(placement, order=order, stage_of=stage_of)
            found.append(simulate(graph, devices, solution, name, microbatches).makespan)
    return found


UNLIKE = Devices((DeviceKind("gpu", 1), DeviceKind("old", 1, times="gpu", time_factor=2.0)))


@pytest.mark.parametrize("devices", [GPUS, UNLIKE], ids=["equal", "unlike"])
@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_the_bound_is_true_and_the_plan_near_the_best(name: str, seed: int, devices: Devices) -> None:
    rng = np.random.default_rng(seed)
    graph = random_training(rng, 7, path=True, memory=False)
    while not graph.backward.any():
        graph = random_training(rng, 7, path=True, memory=False)
    plan = solve(graph, devices, "makespan", schedule=name, virtual_stages=2, microbatches=6)
    best = min(every_makespan(graph, devices, name, 6))
    assert plan.bound <= best * (1 + 1e-9) and plan.value >= best * (1 - 1e-9)
    assert plan.value <= 1.05 * best
    assert simulate(graph, devices, plan).makespan == plan.value


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))]
)
def test_a_host_takes_part_where_devices_have_one_stage(seed: int) -> None:
    """Its transfers are free; the bound holds for all pipelines on either, in both orders."""
    rng = np.random.default_rng(seed)
    graph = random_training(rng, 6, path=bool(seed % 2), memory=False)
    while not graph.backward.any():
        graph = random_training(rng, 6, path=bool(seed % 2), memory=False)
    host = DeviceKind("host", 1, times="gpu", time_factor=1.5, pays_communication=False)
    devices = Devices((DeviceKind("gpu", 1), host))
    plan = solve(graph, devices, "makespan", schedule="zb_h1", microbatches=6)
    best = min(every_makespan(graph, devices, "zb_h1", 6, chunks=1))
    assert plan.bound <= best * (1 + 1e-9) and plan.value <= 1.02 * best


@pytest.mark.parametrize("name", VIRTUAL)
def test_estimates_are_the_simulated_makespans_of_paths(name: str) -> None:
    """Where every stage waits for its neighbours alone, and transfers occupy the devices."""
    graph = random_training(np.random.default_rng(1), 8, path=True, memory=False)
    while not graph.backward.any():
        graph = random_training(np.random.default_rng(2), 8, path=True, memory=False)
    options = read_options(SIMULATED, {"schedule": name, "microbatches": 6})
    request = Request(Workload(graph, UNLIKE), THROUGHPUT, "chain", METHODS["virtual_stages"], options)
    problem = request.problem()
    assert isinstance(problem, PipelineProblem)
    runs = StageRuns(graph, UNLIKE, request.regime, problem)
    for order in runs.orders(2):
        borders = runs.even(runs.work, order)
        expected = simulate(graph, UNLIKE, runs.solution(borders), name, 6).makespan
        assert math.isclose(runs.estimates.makespan(borders), expected, rel_tol=1e-9)


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_the_simulated_makespans_where_devices_have_one_stage(name: str, seed: int) -> None:
    """On one to three devices of the same kind."""
    rng = np.random.default_rng(seed)
    graph = random_training(rng, 8, path=True, memory=False)
    while not graph.backward.any():
        graph = random_training(rng, 8, path=True, memory=False)
    devices = Devices((DeviceKind("gpu", 3),))
    options = read_options(SIMULATED, {"schedule": name, "microbatches": 6})
    request = Request(Workload(graph, devices), THROUGHPUT, "chain", METHODS["dp"], options)
    problem = request.problem()
    assert isinstance(problem, PipelineProblem)
    estimates = StageEstimates(graph, problem, ALONE[name], 1, 6, 0.5)
    for count in range(1, min(3, problem.n) + 1):
        stage = np.sort(np.append(np.arange(count), rng.integers(0, count, problem.n - count)))
        where = stage[problem.member].tolist()
        placement = {node: f"gpu{i}" for node, i in zip(graph.ids, where, strict=True)}
        borders = StageBorders.of(stage, (0,) * count)
        expected = simulate(graph, devices, placement, name, 6).makespan
        assert math.isclose(estimates.makespan(borders), expected, rel_tol=1e-9)


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize("seed", range(5))
def test_memory_is_that_of_the_evaluator(name: str, seed: int) -> None:
    """On unlike devices in every usual order, for even work and for even memory."""
    graph = random_training(np.random.default_rng(seed), 8, path=True)
    kinds = DeviceKind("gpu", 1, memory=60.0), DeviceKind("old", 1, memory=90.0, times="gpu", time_factor=2.0)
    devices = Devices(kinds)
    options = read_options(SIMULATED, {"schedule": name, "microbatches": 6})
    request = Request(Workload(graph, devices), THROUGHPUT, "chain", METHODS["virtual_stages"], options)
    problem = request.problem()
    assert isinstance(problem, PipelineProblem)
    runs = StageRuns(graph, devices, request.regime, problem)
    for order in runs.orders(2):
        for borders in (runs.even(runs.work, order), runs.even_memory(order)):
            solution = runs.solution(borders)
            loads = {load.name: load for load in runs.evaluated(solution).loads}
            used = [loads[device] for device in dict.fromkeys(solution.order or ())]
            expected = [load.memory - (load.memory_limit or 0.0) for load in used]
            assert np.allclose(runs.over(borders), expected, atol=1e-6)


@pytest.mark.parametrize("options", [{"schedule": "dualpipev", "microbatches": 1}])
def test_batches_that_the_schedule_does_not_run_are_refused(options: dict[str, Any]) -> None:
    graph = random_training(np.random.default_rng(1), 8, path=True, memory=False)
    with pytest.raises(OptionError, match="microbatches = 1: must be at least 2 for 1 devices"):
        solve(graph, GPUS, "makespan", **options)


def test_borders_move_and_stages_are_cut_again() -> None:
    stages = StageBorders.of(np.array([0, 1, 0, 1]))
    assert stages.cut_again(np.ones(4), 2).stage.tolist() == [0, 2, 1, 3]
    found = [stages.moved(*move) for move in stages.moves()]
    assert [one.stage.tolist() for one in found if one is not None] == [[0, 1, 1, 1], [0, 0, 0, 1]]
    assert StageBorders.even(np.array([5.0, 1.0, 1.0, 1.0]), np.ones(3)).stage.tolist() == [0, 1, 2, 2]


def test_both_objectives_prove_the_same_lack_of_room() -> None:
    graph = Graph.from_arrays(
        {"gpu": [1.0, 2.0, 2.0, 1.0]}, [(0, 1), (1, 2), (2, 3)], size=4.0, backward=[False, False, True, True]
    )
    tight = Devices((DeviceKind("gpu", 2, memory=7.0),))
    reasons = set()
    for objective in ("throughput", "makespan"):
        with pytest.raises(InfeasibleError) as raised:
            solve(graph, tight, objective, schedule="interleaved_1f1b", microbatches=4)
        reasons.add(str(raised.value))
    assert len(reasons) == 1


@pytest.mark.parametrize("schedule", ["interleaved_1f1b", "zbv"])
def test_even_stages_that_lack_memory_are_moved_until_they_fit(schedule: str) -> None:
    """The memory limit is the least that any stages need; those of even work need more."""
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 16},
        [(i, i + 1) for i in range(15)],
        size=[5.0, 5.0, *[1.0] * 12, 5.0, 5.0],
        backward=[False] * 8 + [True] * 8,
        color=[min(i, 15 - i) for i in range(16)],
    )
    tight = Devices((DeviceKind("gpu", 2, memory=18.0),))
    options = read_options(SIMULATED, {"schedule": schedule, "microbatches": 4})
    request = Request(Workload(graph, tight), THROUGHPUT, "chain", METHODS["virtual_stages"], options)
    problem = request.problem()
    assert isinstance(problem, PipelineProblem)
    runs = StageRuns(graph, tight, request.regime, problem)
    even = runs.even(runs.work, np.array([0, 0]))
    found = fitted(even, runs.missing, lambda: False)
    assert 0 < runs.missing(even) < math.inf and found is not None and runs.missing(found) == 0
    assert runs.evaluated(runs.solution(found)).feasible
    smaller = replace(problem, memory=np.array([9.0]))
    hopeless = StageRuns(graph, Devices((DeviceKind("gpu", 2, memory=9.0),)), request.regime, smaller)
    assert hopeless.missing(even) == math.inf


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_bounds_hold_for_all_ways_of_nodes(name: str, seed: int) -> None:
    """No chain of stages whose nodes run in any of their ways ends before the bound."""
    rng = np.random.default_rng(seed)
    case = random_ways_case(rng, name, most_nodes=4)
    while not case.graph.backward.any():
        case = random_ways_case(rng, name, most_nodes=4)
    graph, devices = case.graph, replace(case.devices, kinds=case.devices.kinds[:1])
    ways = graph.alternatives.kept(lambda way: way.degree == 1)
    graph = replace(graph, alternatives=ways)
    try:
        plan = solve(graph, devices, "makespan", **case.options)
    except InfeasibleError:
        return
    assert simulate(graph, devices, plan).makespan == plan.value
    best = min(makespans_by_ways(graph, devices, case))
    assert plan.bound <= best * (1 + 1e-9) and plan.value >= best * (1 - 1e-9)


def makespans_by_ways(graph: Graph, devices: Devices, case: VirtualCase) -> Iterator[float]:
    """The simulated makespan of every chain that obeys the rules, its nodes in all ways."""
    given: dict[str, Any] = {"schedule": case.schedule, "microbatches": case.microbatches}
    names = [name for kind in devices.kinds for name in map(kind.device, range(kind.count))]
    colors = [
        [i for i in range(len(graph)) if graph.color[i] == c] for c in range(int(graph.color.max()) + 1)
    ]
    options = [
        [
            {},
            *(
                {graph.ids[i]: way.name for i in nodes}
                for way in graph.alternatives.get(graph.ids[nodes[0]], ())
            ),
        ]
        for nodes in colors
    ]
    for count in range(1, len(names) + 1):
        order = tuple(names[rank] for rank in VIRTUAL[case.schedule].ranks(count, case.chunks))
        for stage in chains(graph, atoms(graph, case.constraints), len(order), case.constraints):
            stage_of: dict[Any, int] = dict(zip(graph.ids, stage.tolist(), strict=True))
            placement = {node: order[number] for node, number in stage_of.items()}
            for chosen in product(*options):
                ways = {node: name for each in chosen for node, name in each.items()}
                solution = Solution(placement, order=order, stage_of=stage_of, alternatives=ways)
                if evaluate(graph, devices, solution, constraints=case.constraints, **given).feasible:
                    yield simulate(graph, devices, solution, **given).makespan


def onward_training() -> Graph:
    """Two nodes whose backward nodes, 2 of 0 and 3 of 1, run in the order of the forward nodes."""
    given: dict[str, Any] = {"backward": [False, False, True, True], "color": [0, 1, 0, 1]}
    return Graph.from_arrays({"gpu": [1.0, 1.0, 1.0, 1.0]}, [(0, 1), (1, 2), (2, 3)], 0.0, **given)


ONWARD: dict[str, Any] = {"schedule": "zb_h1", "microbatches": 2}


def test_a_backward_pass_that_runs_onward_is_refused_with_its_nodes() -> None:
    """Stages of these schedules run backward in reverse order."""
    with pytest.raises(
        OptionError, match="backward node 2 sends a tensor onward to 3; choose another schedule, as '1f1b'"
    ):
        solve(onward_training(), GPUS, "makespan", **ONWARD)


def test_an_onward_backward_pass_within_a_stage_is_planned() -> None:
    """Nodes that the constraint `together` keeps in a stage are not refused."""
    plan = solve(onward_training(), GPUS, "makespan", constraints=Constraints(together=[[0, 1]]), **ONWARD)
    assert len(plan.stages) == 1
    assert plan.value == 8.0
