"""A method that says something false of its own plan is contradicted; the truth passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Evaluation, Graph, InfeasibleError, NoPlanFound, evaluate
from partitioner.base.errors import ContradictionError
from partitioner.methods.expand import expand
from partitioner.methods.method import Outcome, Part
from partitioner.planning.verify import confirm, no_plan
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from tests.instances import badly_packed, too_large
from tests.measures import MEASURES

GRAPH = Graph.from_arrays(
    {"accelerator": np.ones(3), "cpu": np.ones(3)},
    [(0, 1), (1, 2)],
    size=1.0,
    allowed={"cpu": [True, False, True]},
)
DEVICES = Devices.accelerated(2, memory=2.0, cpus=1)

NAMES = {measure: name for name, measure in reversed(MEASURES.items())}  # the first objective of each


def told(parts: list[tuple[int, list[int]]], goal: Goal, graph: Graph = GRAPH) -> tuple[Evaluation, Outcome]:
    """What the evaluator and an honest method say of parts of nodes, each on a kind."""
    problem = contract(graph, DEVICES, goal)
    held = [Part(kind, problem.member[nodes]) for kind, nodes in parts]
    outcome = Outcome(problem, held, 0.0, 0.0, "heuristic")
    placement = expand(graph, DEVICES, outcome)
    assert placement is not None
    evaluation = evaluate(graph, DEVICES, placement.device, NAMES[goal.measure])
    return evaluation, replace(outcome, value=evaluation.value, bound=evaluation.value)


GOOD: list[tuple[int, list[int]]] = [(0, [0, 1]), (0, [2])]
TORN: list[tuple[int, list[int]]] = [(0, [0, 2]), (0, [1])]
TORN_CPU: list[tuple[int, list[int]]] = [(1, [0, 2]), (0, [1])]


@pytest.mark.parametrize("objective", ["throughput", "gpipe"])
@pytest.mark.parametrize("split", ["chain", "convex", "free"])
def test_the_truth_passes(split: str, objective: str) -> None:
    evaluation, outcome = told(GOOD, Goal(MEASURES[objective], split))
    assert (evaluation.value, evaluation.violations) == (2.0, ())
    confirm(evaluation, outcome, DEVICES)
    confirm(evaluation, replace(outcome, bound=0.0, value=evaluation.value * (1 + 1e-12)), DEVICES)


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ({"value": 1.9}, r"claims 1\.9, the evaluator finds 2\.0"),
        ({"value": 2.1}, r"claims 2\.1, the evaluator finds 2\.0"),
        ({"value": np.inf}, "claims inf"),
        ({"value": np.nan}, "claims nan"),
        ({"bound": 2.001}, r"the bound 2\.001 exceeds the value 2\.0"),
        ({"bound": np.inf}, "the bound inf exceeds"),
    ],
)
def test_false_figures(lie: dict[str, Any], message: str) -> None:
    evaluation, outcome = told(GOOD, Goal(split="free"))
    with pytest.raises(ContradictionError, match=message):
        confirm(evaluation, replace(outcome, **lie), DEVICES)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([(0, [0, 1, 2])], "breaks a rule: accelerator0 holds 3, its memory is 2"),
        ([(0, [0]), (1, [1, 2])], "breaks a rule: node 1 may not run on cpu0"),
        ([(0, [0]), (0, [1]), (0, [2])], "breaks a rule: accelerator2 does not exist"),
    ],
)
def test_broken_rules(parts: list[tuple[int, list[int]]], message: str) -> None:
    evaluation, outcome = told(parts, Goal(split="free"))
    with pytest.raises(ContradictionError, match=message):
        confirm(evaluation, outcome, DEVICES)


def test_a_torn_colour() -> None:
    """Parts of another graph without colours tear a class of this one."""
    colored = replace(GRAPH, color=np.array([0, 0, -1]), color_labels=("x",))
    evaluation, outcome = told([(0, [0]), (0, [1, 2])], Goal(split="free"))
    placement = {0: "accelerator0", 1: "accelerator1", 2: "accelerator1"}
    assert evaluate(GRAPH, DEVICES, placement).value == evaluation.value
    with pytest.raises(ContradictionError, match="colour class 'x' is on two devices"):
        confirm(evaluate(colored, DEVICES, placement), outcome, DEVICES)


@pytest.mark.parametrize(
    ("goal", "parts", "message"),
    [
        (Goal(split="chain"), TORN, "is free, not chain"),
        (Goal(split="convex"), TORN, "not convex: what accelerator0 holds is not contiguous"),
        (Goal(split="convex"), TORN_CPU, "not convex: what cpu0 holds is not contiguous"),
    ],
)
def test_wrong_shapes(goal: Goal, parts: list[tuple[int, list[int]]], message: str) -> None:
    evaluation, outcome = told(parts, goal)
    with pytest.raises(ContradictionError, match=message):
        confirm(evaluation, outcome, DEVICES)


def test_what_need_not_be_contiguous_may_be_torn() -> None:
    """A free split anywhere; a CPU on request; the backward part unless it is asked for."""
    confirm(*told(TORN, Goal(split="free")), DEVICES)
    confirm(*told(TORN_CPU, Goal(split="convex", contiguous_cpus=False)), DEVICES)
    backward = replace(GRAPH, backward=np.ones(3, dtype=bool))
    confirm(*told(TORN, Goal(split="convex"), backward), DEVICES)
    with pytest.raises(ContradictionError, match="accelerator0 holds is not contiguous"):
        confirm(*told(TORN, Goal(split="convex", contiguous_backward=True), backward), DEVICES)


def test_what_is_raised_without_a_plan() -> None:
    """An interruption, a proof that there is none, or neither."""
    instance = too_large()
    problem = contract(instance.graph, instance.devices)
    nothing = Outcome(problem, None, np.inf, 0.0, "time_limit", notes=("no start", "no luck"))
    raised = [
        no_plan(instance.graph, instance.devices, outcome)
        for outcome in (
            nothing,
            replace(nothing, infeasible=True),
            replace(nothing, stop_reason="interrupted", infeasible=True),
        )
    ]
    assert [type(error) for error in raised] == [NoPlanFound, InfeasibleError, KeyboardInterrupt]
    assert str(raised[0]) == "no plan found (time_limit); no start; no luck"
    assert str(raised[1]).startswith("memory: the nodes take 9 together")


def test_an_infeasible_split_is_called_by_its_name() -> None:
    """Where no sum tells why, the words fit the split."""
    instance = badly_packed()
    for split, words in (("chain", "no chain of stages obeys"), ("free", "no free split obeys")):
        problem = contract(instance.graph, instance.devices, Goal(split=split))
        nothing = Outcome(problem, None, np.inf, np.inf, "optimal", infeasible=True)
        assert str(no_plan(instance.graph, instance.devices, nothing)).startswith(words)
