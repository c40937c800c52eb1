"""An objective's record decides its splits, methods and terms, and how it is evaluated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.evaluation.shape import SHAPES
from partitioner.extensions import register_objective
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import (
    OBJECTIVES,
    OPERATORS,
    SIMULATED,
    Objective,
    objective_of,
)
from tests.instances import chain, training

EVERY = [*OBJECTIVES.values(), SIMULATED]
MEANINGLESS = [
    ("throughput", {"subgraphs_per_accelerator": 2}, "subgraphs_per_accelerator: must not be given"),
    ("gpipe", {"schedule": "1f1b", "order": ["accelerator0"]}, "schedule, order: must not be given"),
    ("gpipe", {"microbatches": 2}, "for objective 'gpipe', which uses none of these"),
    ("latency", {"transfers": pt.Transfers()}, "transfers: must not be given for objective 'latency'"),
    ("makespan", {"replicas": {"accelerator0": ["accelerator1"]}}, "replicas: must not be given"),
    ("batch", {"microbatches": 2, "limited_cpus": True}, "limited_cpus: must not be given for objective"),
    ("batch", {}, "microbatches = None: objective 'batch' needs it"),
]


@pytest.mark.parametrize("options", [{"schedule": "1f1b"}, {"microbatches": 4}, {"method": "simulated"}])
def test_two_objectives_share_a_name(options: dict[str, Any]) -> None:
    method = options.pop("method", "auto")
    assert objective_of("makespan", method, options) is SIMULATED
    assert objective_of("makespan", "heft", {"schedule": None}) is OPERATORS
    assert objective_of("throughput", "auto", {"schedule": "1f1b"}).name == "throughput"


@pytest.mark.parametrize("objective", EVERY)
def test_its_methods_exist_and_make_its_splits(objective: Objective) -> None:
    for split in objective.splits:
        info = METHODS[objective.automatic(split, ())]
        assert objective.known_as in info.objectives and split in info.splits_for(objective.known_as)


@pytest.mark.parametrize("objective", EVERY)
@pytest.mark.parametrize("shape", SHAPES)
def test_certificates_compare_with_a_split_that_contains_the_shape(objective: Objective, shape: str) -> None:
    found = objective.freer(shape)
    assert found in objective.splits
    contains = SHAPES.index(found) >= SHAPES.index(shape)
    assert contains or max(map(SHAPES.index, objective.splits)) < SHAPES.index(shape)


@pytest.mark.parametrize(("objective", "given", "message"), MEANINGLESS)
def test_what_means_nothing_is_refused(objective: str, given: dict[str, Any], message: str) -> None:
    placement = dict.fromkeys(chain().graph.ids, "accelerator0")
    with pytest.raises(pt.OptionError, match=message):
        pt.evaluate(chain().graph, chain().devices, placement, objective, **given)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_evaluation_bears_the_name_of_its_objective(name: str) -> None:
    needed: dict[str, Any] = {"microbatches": 4} if OBJECTIVES[name].needs else {}
    graph = replace(training().graph, cache=np.ones(len(training().graph)))
    kinds = tuple(replace(kind, memory=100.0) for kind in training().devices.kinds)
    devices = replace(training().devices, kinds=kinds)
    plan = pt.solve(graph, devices, name, time_limit=10, **needed)
    found = pt.evaluate(graph, devices, plan)
    assert found.objective == name and found.value == pytest.approx(plan.value)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(
        pt.OptionError, match="objective 'latency' is refused: another objective has that name"
    ):
        register_objective(OBJECTIVES["latency"])
