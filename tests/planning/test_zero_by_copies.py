"""The copies of a stage divide the states that `zero` names: plans are the best of those that fit so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.methods.method import ANY_DEVICES
from partitioner.schedule import simulate
from tests.methods.dp.pipeline_cases import best_value
from tests.methods.slow_parameters import slow
from tests.random_pipelines import Case, random_case

FEATURES = ("", "kinds", "batch", "constraints", "levels", "groups", "kinds constraints")


def case_of(seed: int) -> tuple[Case, int]:
    """A random case for training whose devices have memory, and what its copies divide."""
    rng = np.random.default_rng([seed, 3])
    features = ["replicas", "memory", *FEATURES[seed % len(FEATURES)].split()]
    case = random_case(rng, features, 6, 5)
    equal = replace(case.constraints, equal_replicas=bool(seed % 3 == 0))
    return replace(case, constraints=equal), 1 + seed % 3


def options_of(case: Case) -> dict[str, Any]:
    return {
        "method": "pipeline",
        "replicas": case.replicas,
        "schedule": case.schedule,
        "microbatches": case.microbatches,
        "constraints": case.constraints,
    }


@pytest.mark.parametrize("count", [150, slow(1500)])
def test_plans_are_the_best_of_those_that_fit(count: int) -> None:
    found = gained = 0
    for seed in range(count):
        case, zero = case_of(seed)
        graph = case.graph
        if not (graph.backward.any() and graph.parts[1].any()):
            continue
        best = [
            best_value(replace(case, graph=each))
            for each in (graph, pt.with_training_states(graph, zero=zero))
        ]
        linked = bool(case.devices.levels or case.devices.groups)
        try:
            plan = pt.solve(graph, case.devices, case.objective, zero=zero, **options_of(case))
        except pt.InfeasibleError:
            assert best[1] is None, seed
            continue
        except (pt.OptionError, pt.WorkloadError):
            continue
        assert best[1] is not None or linked, seed
        if best[1] is not None:
            assert linked or (plan.value == pytest.approx(best[1]) and plan.status == "optimal"), seed
            wide = plan.statistics.get(ANY_DEVICES, plan.bound)
            assert min(plan.bound, wide) <= best[1] * (1 + 1e-9), seed
            gained += best[0] is None or best[0] > best[1] * (1 + 1e-9)
        assert pt.evaluate(graph, case.devices, plan).feasible
        found += 1
    assert found > count / 8 and gained > count / 80


def layers() -> tuple[pt.Graph, pt.Devices]:
    """Two layers whose optimizer takes 8 of 12 bytes each, on four devices that hold 9."""
    parts: dict[str, Any] = {"parameters": 2.0, "gradients": 2.0, "optimizer": 8.0}
    one = [pt.Layer(name, 1.0, 2.0, output=1.0, **parts) for name in "ab"]
    return pt.Graph.chain(one, bandwidth=100.0), pt.Devices((pt.DeviceKind("accelerator", 4, memory=9.0),))


def test_a_stage_of_two_copies_holds_half_of_the_optimizer_each() -> None:
    graph, devices = layers()
    with pytest.raises(pt.InfeasibleError):
        pt.solve(graph, devices, replicas=2)
    for zero, memory in ((1, 2.0 + 2.0 + 4.0), (2, 2.0 + 1.0 + 4.0), (3, 2.0 + 1.0 + 4.0)):
        plan = pt.solve(graph, devices, replicas=2, zero=zero)
        assert [len(plan.replicas[name]) for name in plan.stages] == [1, 1]
        assert {load.memory for load in plan.devices} == {memory}
        assert any(f"zero = {zero}: the copies of a stage divide" in note for note in plan.notes)
        assert pt.evaluate(graph, devices, plan).feasible


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "1f1b_async", "zbv"])
def test_the_simulation_holds_what_the_evaluation_says(schedule: str) -> None:
    """Under 1F1B at most that, as in `tests/schedule`."""
    graph, devices = layers()
    graph = pt.with_training_states(graph, zero=2)
    names = devices.names
    lead = dict.fromkeys(graph.ids, names[0]) | dict.fromkeys(
        [node for node in graph.ids if str(node).startswith("b")], names[2]
    )
    replicas = {names[0]: (names[1],), names[2]: (names[3],)}
    given: dict[str, Any] = {"schedule": schedule, "microbatches": 8}
    if schedule == "zbv":
        stages = {node: 0 if where == names[0] else 1 for node, where in lead.items()}
        lead = dict.fromkeys(graph.ids, names[0])
        solution = pt.Solution(lead, {names[0]: (names[1],)}, (names[0], names[0]), stage_of=stages)
    else:
        solution = pt.Solution(lead, replicas, (names[0], names[2]))
    evaluated = pt.evaluate(graph, devices, solution, **given)
    timeline = simulate(graph, devices, solution, **given)
    memory = {load.name: load.memory for load in evaluated.loads if load.memory}
    peak = dict(zip(timeline.devices, timeline.peak_memory, strict=True))
    assert {name: memory[name] for name in peak} == pytest.approx(peak)


def test_recommended_copies_divide_states() -> None:
    """Two copies of two stages fit with the optimizer divided, on four devices, and no single one of four."""
    graph, devices = layers()
    found = pt.recommend(graph, devices, 4, schedules=["1f1b"], zero=1, equal_replicas=True, time_limit=4)
    copies = {one.copies: one.against for one in found.choices}
    assert copies["2"] == "" and copies["1"] != ""
