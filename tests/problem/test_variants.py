"""Each measure and split gives a problem of one type, with all that its methods need to know."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph, Transfers
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.pipeline import PipelineLimits
from partitioner.problem.problem import Problem
from partitioner.problem.variants import (
    ChainProblem,
    OperatorNodes,
    OperatorParts,
    OperatorProblem,
    OperatorSample,
    PartsProblem,
    PipelineProblem,
    SampleProblem,
)
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.resolved_constraints import demands_of
from tests.contracted import contract_to

GRAPH = Graph.from_arrays({"accelerator": [0.0, 1.0, 1.0]}, [(0, 1), (1, 2)], 1.0, size=[1.0, 2.0, 2.0])
DEVICES = Devices.accelerated(2, memory=3.0)
TYPES = {
    (Measure.LARGEST_LOAD, "chain"): (ChainProblem, None),
    (Measure.LARGEST_LOAD, "convex"): (PartsProblem, OperatorParts),
    (Measure.LARGEST_LOAD, "free"): (PartsProblem, OperatorParts),
    (Measure.LARGEST_LOAD_BY_PASS, "convex"): (PartsProblem, OperatorParts),
    (Measure.LARGEST_LOAD_BY_PASS, "free"): (PartsProblem, OperatorParts),
    (Measure.BATCH, "chain"): (ChainProblem, None),
    (Measure.ONE_SAMPLE, "convex"): (SampleProblem, OperatorSample),
    (Measure.LAST_OPERATOR, "free"): (None, OperatorNodes),
    (Measure.OTHER, "chain"): (ChainProblem, None),
    (Measure.OTHER, "convex"): (PartsProblem, OperatorParts),
    (Measure.OTHER, "free"): (PartsProblem, OperatorParts),
}


def extended(split: str = "chain", constraints: Constraints = NONE) -> Goal:
    regime, demands = Regime(constraints=constraints), demands_of(GRAPH, DEVICES, constraints)
    return Goal(split=split, regime=regime, demands=demands)


@pytest.mark.parametrize(("measure", "split"), TYPES)
def test_the_type_follows_from_measure_and_split(measure: Measure, split: str) -> None:
    plain, placed = TYPES[measure, split]
    for wanted, transfers in ((plain, None), (placed, Transfers())):
        if wanted is not None:
            problem = contract(GRAPH, DEVICES, Goal(measure, split, transfers=transfers))
            assert type(problem) is wanted
            assert (problem.measure, problem.split) == (measure, split)
            assert problem.ordered == (split == "chain")
            assert type(problem.relaxed) is wanted


def test_chains_with_an_extension_are_pipelines_however_far_they_are_contracted() -> None:
    problem = contract_to(PipelineProblem, GRAPH, DEVICES, extended())
    assert problem.lossless and problem.coarser is not None
    assert type(problem.coarser) is PipelineProblem and not problem.coarser.lossless
    assert problem.coarser.relaxed.pipeline is problem.coarser.relaxed_pipeline


@pytest.mark.parametrize("split", ["convex", "free"])
def test_other_splits_begin_with_a_chain_that_has_the_same_extension(split: str) -> None:
    problem = contract_to(PartsProblem, GRAPH, DEVICES, extended(split, Constraints(stages=2)))
    assert type(problem.chain) is PipelineProblem
    assert problem.limits == problem.chain.limits == PipelineLimits(stages=2)
    plain = contract_to(PartsProblem, GRAPH, DEVICES, Goal(split=split))
    assert type(plain.chain) is ChainProblem
    assert plain.limits == plain.chain.limits == PipelineLimits()


@pytest.mark.parametrize(
    ("measure", "split"), [pair for pair, (_, placed) in TYPES.items() if placed is not None]
)
def test_operators_are_the_users_nodes_one_by_one(measure: Measure, split: str) -> None:
    problem = contract_to(OperatorProblem, GRAPH, DEVICES, Goal(measure, split, transfers=Transfers()))
    assert sorted(problem.tasks.node.tolist()) == list(range(len(GRAPH)))
    if isinstance(problem, OperatorNodes):
        assert np.array_equal(problem.member[problem.tasks.node], np.arange(len(GRAPH)))
        assert np.array_equal(problem.group, problem.tasks.group)


def test_what_only_some_problems_have_is_no_field_of_others() -> None:
    fields = vars(contract(GRAPH, DEVICES))
    assert {"output", "coarser"} < fields.keys()
    assert fields.keys().isdisjoint({"regions", "contiguous", "chain", "backward", "group", "tasks"})
    assert set(Problem.__dataclass_fields__) == fields.keys() - {"output", "coarser"}
