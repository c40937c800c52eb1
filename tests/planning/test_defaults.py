"""Whatever is left out has a default that works, and a word that does not exist is named with the nearest."""

from __future__ import annotations

import math
from typing import Any

import pytest

import partitioner as pt
from partitioner.analysis.sweeps.asked import SweepSpec
from partitioner.methods.catalogue import USERS_OWN
from partitioner.methods.registry import METHODS, choose
from partitioner.planning.objectives import OBJECTIVES, SIMULATED, Objective, objective_of
from partitioner.planning.options import split_for
from partitioner.planning.solve import TIMED
from partitioner.schedule import simulate

GRAPH = pt.Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
DEVICES = pt.Devices.accelerated(2)


@pytest.mark.parametrize("objective", [*OBJECTIVES.values(), SIMULATED])
def test_every_objective_alone_chooses_a_method(objective: Objective) -> None:
    split = split_for(objective, None)
    automatic = objective.automatic(split, ())
    info = choose("auto", objective.known_as, split, automatic=automatic)
    assert info.name == automatic and split in info.splits_for(objective.known_as)


@pytest.mark.parametrize(
    ("objective", "options", "method"),
    [
        ("throughput", {}, "dp"),
        ("gpipe", {}, "dp"),
        ("latency", {}, "latency_ip"),
        ("batch", {"microbatches": 4}, "pipeline"),
        ("makespan", {}, "exact"),
        ("makespan", {"schedule": "inference", "microbatches": 4}, "simulated"),
    ],
)
def test_every_objective_alone_makes_a_plan(objective: str, options: dict[str, Any], method: str) -> None:
    """With no option but those that the objective needs, the plan has the objective's first split."""
    plan = pt.solve(GRAPH, DEVICES, objective, time_limit=2, gap=0.5, **options)
    wanted = objective_of(objective, options=options)
    assert (plan.split, plan.method) == (wanted.splits[0], method)
    assert math.isfinite(plan.value)


@pytest.mark.parametrize(
    ("asked", "objective"),
    [
        ({}, "throughput"),
        ({"schedule": "inference"}, "throughput"),
        ({"schedule": "inference", "microbatches": 4}, "makespan"),
        ({"schedule": "inference", "microbatches": 4, "split": "chain"}, "makespan"),
        ({"schedule": "inference", "microbatches": 4, "method": "simulated"}, "makespan"),
        ({"schedule": "inference", "microbatches": 4, "method": "pipeline"}, "throughput"),
        ({"schedule": "inference", "microbatches": 4, "objective": "throughput"}, "throughput"),
        ({"schedule": "inference", "microbatches": 4, "objective": "batch"}, "batch"),
    ],
)
def test_the_question_decides_the_objective(asked: dict[str, Any], objective: str) -> None:
    """A batch under a schedule is timed as it runs; the plan says so where nobody named the objective."""
    plan = pt.solve(GRAPH, DEVICES, time_limit=10, **asked)
    assert plan.objective == objective
    assert (TIMED in plan.notes) == (objective == "makespan")
    if objective == "makespan":
        named = pt.solve(GRAPH, DEVICES, "makespan", time_limit=10, **asked)
        assert named.value == plan.value and TIMED not in named.notes
        assert simulate(GRAPH, DEVICES, plan).makespan == plan.value


def test_a_schedule_that_does_not_run_the_graph_leaves_the_throughput() -> None:
    """A graph without a backward pass has no makespan under a schedule for training."""
    plan = pt.solve(GRAPH, DEVICES, schedule="gpipe", microbatches=4)
    assert plan.objective == "throughput" and TIMED not in plan.notes


def test_a_sweep_decides_each_objective_by_its_options() -> None:
    varied = {"schedule": ("1f1b", None), "microbatches": (4,)}
    asked = SweepSpec((), options=varied).sets_of_options()
    assert [one["objective"] for one in asked] == ["makespan", "throughput"]


def test_a_chain_for_gpipe_with_limits_on_stages_alone_makes_a_plan() -> None:
    """The method that the default split takes knows all that the objective can be asked for."""
    plan = pt.solve(GRAPH, DEVICES, "gpipe", constraints=pt.Constraints(stages=1))
    assert (plan.split, plan.method, plan.value) == ("chain", "dp", 6.0)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {USERS_OWN}))
def test_every_method_has_a_split_for_each_of_its_objectives(name: str) -> None:
    """It is the objective's default where the method can make it."""
    for objective in map(OBJECTIVES.get, METHODS[name].objectives):
        assert objective is not None
        split, default = split_for(objective, None, name), split_for(objective, None)
        assert choose(name, objective.name, split, features=METHODS[name].needs) is METHODS[name]
        assert split == default or default not in METHODS[name].splits


@pytest.mark.parametrize(("method", "split"), [("ip", "convex"), ("local_search", "convex")])
def test_a_method_without_chains_makes_its_first_split(method: str, split: str) -> None:
    plan = pt.solve(GRAPH, DEVICES, method=method)  # a search with a time limit would use all of it
    assert (plan.split, plan.value) == (split, 3.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "nonsense"}, "objective = 'nonsense': must be one of throughput, gpipe, latency,"),
        ({"objective": "latncy"}, "did you mean 'latency'?"),
        ({"objective": []}, r"objective = \[\]: must be one of throughput"),
        ({"split": "chian"}, "split = 'chian': must be one of chain, convex, free; did you mean 'chain'?"),
        ({"method": "locl_search"}, "must be one of auto, dp, .*; did you mean 'local_search'?"),
        ({"schedule": "1f1"}, "did you mean '1f1b'?"),
        ({"replica": 2}, "option 'replica' is unknown: must be one of .*; did you mean 'replicas'?"),
        ({"granularity": "layers"}, "must be one of operator, layer; did you mean 'layer'?"),
    ],
)
def test_unknown_words_of_solve_are_named_with_the_nearest(options: dict[str, Any], words: str) -> None:
    with pytest.raises(pt.OptionError, match=words.replace("?", r"\?")):
        pt.solve(GRAPH, DEVICES, **options)


def test_other_verbs_name_the_nearest_too() -> None:
    placement = dict.fromkeys(GRAPH.ids, "accelerator0")
    with pytest.raises(pt.OptionError, match="did you mean 'throughput'"):
        pt.evaluate(GRAPH, DEVICES, placement, "throughputs")
    with pytest.raises(pt.OptionError, match="did you mean 'inference'"):
        simulate(GRAPH, DEVICES, placement, "inferense", 4)
    with pytest.raises(pt.OptionError, match="did you mean 'chain'"):
        pt.compare_methods(GRAPH, DEVICES, split="chan")
    with pytest.raises(pt.WorkloadError, match="did you mean 'duplex'"):
        pt.Devices.accelerated(1, communication="duplx")
    with pytest.raises(pt.BackendUnavailable, match=r"does not run on 'gorubi', .*; did you mean 'gurobi'"):
        pt.solve(GRAPH, DEVICES, method="ip", backend="gorubi")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"objective": "makespan", "split": "chain"},
            "split 'chain' is not available for objective 'makespan' with method auto, only free; "
            "such a split is made by method simulated",
        ),
        (
            {"objective": "gpipe", "replicas": 2},
            "replicas mean nothing for objective 'gpipe' with split 'chain', only for throughput, batch, "
            "piper, makespan with split chain",
        ),
        (
            {"method": "ip", "split": "chain"},
            "split 'chain' is not available with method ip, only convex, free",
        ),
    ],
)
def test_auto_is_blamed_only_for_what_was_asked_of_it(options: dict[str, Any], words: str) -> None:
    with pytest.raises(pt.OptionError) as caught:
        pt.solve(GRAPH, DEVICES, **options)
    assert str(caught.value) == words
