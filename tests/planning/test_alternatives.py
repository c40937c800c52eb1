"""Plans say how each node runs: in files, in evaluations and certificates, and in comparisons of methods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt

GPUS = pt.Devices((pt.DeviceKind("gpu", 4, memory=10.0),))
OPTIONS = {"replicas": 4, "schedule": "1f1b"}


def graph() -> pt.Graph:
    """A chain whose nodes take less memory when they are recomputed, or run by two devices."""
    found = pt.Graph.from_arrays(
        {"gpu": [3.0, 2.0, 4.0, 3.0]}, [("a", "b"), ("b", "10"), ("10", 7)], 0.25,
        ids=["a", "b", "10", 7], activations=4.0, parameters=1.0,
    )  # fmt: skip
    ways = {
        node: [
            pt.Alternative("again", {"gpu": 1.4 * time}, activations=1.0, parameters=1.0),
            pt.Alternative("pair", {"gpu": 0.6 * time}, 2, activations=2.0, parameters=0.5),
        ]
        for node, time in zip(found.ids, found.time[0].tolist(), strict=True)
    }
    return replace(found, alternatives=pt.Alternatives(ways))


def test_a_plan_is_kept_with_its_ways(tmp_path: Path) -> None:
    plan = pt.solve(graph(), GPUS, **OPTIONS)  # type: ignore[arg-type]
    assert plan.method == "alternatives" and plan.status == "optimal" and plan.alternatives
    plan.save(tmp_path / "plan.json")
    found = pt.load_plan(tmp_path / "plan.json")
    assert found.alternatives == plan.alternatives and found == plan
    again = pt.evaluate(graph(), None, found)
    assert again.feasible and again.value == pytest.approx(plan.value)
    assert set(plan.alternatives.values()) <= {"again", "pair"}
    assert "nodes by way" in plan.summary(100) and plan.by_stage == found.by_stage


def test_without_them_the_plan_is_worse_and_a_note_says_so() -> None:
    plan = pt.solve(graph(), GPUS, **OPTIONS)  # type: ignore[arg-type]
    other = pt.solve(graph(), GPUS, method="pipeline", **OPTIONS)  # type: ignore[arg-type]
    assert other.value > plan.value and not other.alternatives
    assert any("uses no alternatives" in note for note in other.notes)
    assert not any("uses no alternatives" in note for note in plan.notes)


def test_a_certificate_is_for_plans_with_all_ways() -> None:
    best = pt.solve(graph(), GPUS, **OPTIONS)  # type: ignore[arg-type]
    everywhere = dict.fromkeys(graph().ids, "gpu0")
    found = pt.certify(graph(), GPUS, everywhere, alternatives=dict.fromkeys(graph().ids, "again"))
    assert found.value == pytest.approx(1.4 * 12) and found.bound >= best.value * (1 - 1e-9)
    one: dict[str, Any] = {"alternatives": {"a": "again"}, "constraints": pt.Constraints(stages=1)}
    with pytest.raises(pt.NoPlanFound, match="the bound of method pipeline holds for plans without them"):
        pt.certify(graph(), replace(GPUS, kinds=(pt.DeviceKind("gpu", 4),)), everywhere, **one)
    found = pt.certify(graph(), GPUS, best, schedule="1f1b")
    assert found.value == pytest.approx(best.value) and found.bound == pytest.approx(best.value)
    with pytest.raises(pt.WorkloadError, match="no multiple of 2"):
        pt.certify(graph(), GPUS, everywhere, alternatives=dict.fromkeys(graph().ids, "pair"))


def test_methods_are_compared_that_use_them() -> None:
    found = pt.compare_methods(graph(), GPUS, **OPTIONS)  # type: ignore[arg-type]
    assert {one.method for one in found.compared} == {"alternatives", "piper", "two_bw"}
    assert not found.contradictions
    plain = replace(graph(), alternatives=pt.Alternatives())
    names = {one.method for one in pt.compare_methods(plain, GPUS, split="chain").compared}
    assert "dp" in names and not names & {"alternatives", "piper", "two_bw"}
    with pytest.raises(pt.OptionError, match="methods: must be among alternatives, piper, two_bw"):
        pt.compare_methods(graph(), GPUS, methods=["dp", "piper"])
    found = pt.compare_methods(graph(), GPUS, methods=["dp", "pipeline"])
    assert {one.method for one in found.compared} == {"dp", "pipeline"} and not found.contradictions


def test_makespans_are_those_of_plans_with_ways() -> None:
    """No plan without ways fits; the makespan is that of the simulation, no less than the bound."""
    training = trained()
    found = pt.solve(training, SMALL, "makespan", schedule="1f1b", microbatches=4, replicas=2)
    assert found.alternatives and not any("uses no alternatives" in note for note in found.notes)
    again = pt.schedule.simulate(training, None, found)
    assert again.makespan == pytest.approx(found.value) and again.fits.all()
    loads = pt.solve(training, SMALL, "throughput", schedule="1f1b", microbatches=4, replicas=2)
    assert loads.value * 4 <= found.bound * (1 + 1e-9) and found.bound <= found.value
    limits = pt.Constraints(stages=2)
    with pytest.raises(pt.InfeasibleError, match="this method uses the nodes' own figures, none"):
        pt.solve(training, SMALL, "makespan", schedule="1f1b", microbatches=4, constraints=limits)
    wide = pt.Devices((pt.DeviceKind("accelerator", 4),))
    plain = pt.solve(training, wide, "makespan", schedule="1f1b", microbatches=4, constraints=limits)
    assert any("method simulated uses no alternatives" in note for note in plain.notes)


def test_recommended_pipelines_have_ways_and_copies() -> None:
    """Copies of a whole pipeline run its nodes in the same ways; the simulation of each plan is its value."""
    found = pt.recommend(trained(), SMALL, 4, schedules=["1f1b"])
    fitting = [one for one in found.choices if not one.against]
    assert {one.copies for one in fitting} >= {"1", "2", "4"}
    for one in fitting:
        assert one.plan is not None and one.plan.alternatives
        assert pt.evaluate(trained(), None, one.plan, "throughput").feasible
        assert pt.schedule.simulate(trained(), None, one.plan).makespan == pytest.approx(one.makespan)


@pytest.mark.parametrize(
    ("objective", "options", "message"),
    [
        (
            "latency",
            {"split": "convex"},
            "objective 'latency' is not available with method alternatives",
        ),
        ("gpipe", {}, "objective 'gpipe' is not available with method alternatives, only throughput, batch"),
        ("capacity", {}, "method = 'alternatives': objective 'capacity' uses the nodes' own figures"),
        (
            "throughput",
            {"schedule": "interleaved_1f1b", "microbatches": 4},
            "mean nothing to method alt",
        ),
        (
            "throughput",
            {"split": "free"},
            "split 'free' is not available with method alternatives",
        ),
        ("batch", {"microbatches": 2, "constraints": pt.Constraints(stages=2)}, "limits on stages and pins"),
    ],
)
def test_what_the_method_does_not_know_is_refused(objective: str, options: Any, message: str) -> None:
    found = replace(graph(), cache=np.ones(4))
    with pytest.raises(pt.OptionError, match=message):
        pt.solve(found, GPUS, objective, method="alternatives", **options)


def trained() -> pt.Graph:
    """Four layers whose activations exceed the memory unless they are recomputed."""
    layers = [pt.Layer(str(i), forward=1.0, backward=2.0, activations=5.0, output=0.1) for i in range(4)]
    found = pt.Graph.chain(layers, bandwidth=1e3)
    ways = {
        node: [pt.Alternative("again", {"accelerator": 3.0 if "backward" in node else 1.0}, activations=0.5)]
        for node in map(str, found.ids)
    }
    return replace(found, alternatives=pt.Alternatives(ways))


SMALL = pt.Devices((pt.DeviceKind("accelerator", 4, memory=4.0),))


def test_the_objective_of_piper_needs_a_batch() -> None:
    with pytest.raises(pt.OptionError, match="objective 'piper' needs microbatches"):
        pt.solve(graph(), GPUS, "piper")
    plan = pt.solve(graph(), GPUS, "piper", microbatches=2, **OPTIONS)  # type: ignore[arg-type]
    assert plan.status == "optimal" and plan.method == "alternatives"
    copies = sum(1 + len(further) for further in plan.replicas.values())
    assert copies <= 4 and pt.evaluate(graph(), None, plan).value == pytest.approx(plan.value)


@pytest.mark.parametrize(
    ("objective", "method"),
    [
        ("throughput", "alternatives"),
        ("batch", "alternatives"),
        ("piper", "alternatives"),
        ("piper", "piper"),
    ],
)
def test_without_replicas_no_way_takes_several_devices(objective: str, method: str) -> None:
    only = pt.Constraints(no_replicas=True)
    own = replace(graph(), alternatives=graph().alternatives.kept(lambda way: way.degree == 1))
    asked: dict[str, Any] = {"method": method, "schedule": "1f1b", "microbatches": 6}
    plan = pt.solve(graph(), GPUS, objective, constraints=only, **asked)
    assert plan.value == pt.solve(own, GPUS, objective, **asked).value
    assert "pair" not in plan.alternatives.values() and not plan.replicas
    pairs = pt.solve(graph(), GPUS, objective, **asked)
    assert pairs.value <= plan.value


@pytest.mark.parametrize("framework", ["accelerate", "llama.cpp", "onnx"])
def test_plans_that_frameworks_express_have_no_way_on_several_devices(framework: str) -> None:
    named = replace(graph(), names=tuple(f"h.{i}" for i in range(4)))
    plan = pt.solve(named, GPUS, constraints=pt.expressible(framework), schedule="1f1b")
    assert "pair" not in plan.alternatives.values() and not plan.replicas


def test_constraints_under_which_no_method_chooses_are_refused_with_what_to_ask_for() -> None:
    two: dict[str, Any] = {"constraints": pt.Constraints(stages=2)}
    with pytest.raises(pt.OptionError, match=r"no method chooses among them .*method='pipeline' plans by"):
        pt.solve(graph(), GPUS, **two)
    plan = pt.solve(graph(), GPUS, method="pipeline", **two)
    assert not plan.alternatives and len(plan.stages) == 2
    assert pt.certify(graph(), GPUS, plan, **two).bound == plan.value
    assert all(each.plan is None or each.plan.value > 0 for each in pt.explain(graph(), GPUS, plan).what_ifs)
    own = replace(graph(), alternatives=pt.Alternatives())
    assert pt.solve(own, GPUS, **two).value == plan.value
