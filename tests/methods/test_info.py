"""A method is called with problems of the types that its annotation names, and refused others by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import partitioner
from partitioner import Devices, Graph, OptionError
from partitioner.extensions import (
    MethodInfo,
    OperatorProblem,
    Outcome,
    Part,
    PartsProblem,
    PipelineProblem,
    Problem,
    SampleProblem,
    Settings,
    registered,
    value_of,
)
from partitioner.methods.info import types_taken
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import objective_of
from partitioner.planning.options import read_options
from partitioner.planning.request import Request
from partitioner.workload.workload import Workload

if TYPE_CHECKING:
    from partitioner.problem.variants import ChainProblem

GRAPH = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
DEVICES = Devices.accelerated(2)
ASKED = [
    (name, objective, split)
    for name, info in METHODS.own.items()
    for objective in info.objectives
    for split in info.splits_for(objective)
]


def alone(problem: Problem, settings: Settings) -> Outcome:
    """Return everything on the first device."""
    parts = [Part(0, np.arange(problem.n))]
    return Outcome(problem, parts, value_of(problem, parts), 0.0, "heuristic")


def for_parts(problem: PartsProblem, settings: Settings) -> Outcome:
    return alone(problem, settings)


def for_two_types(problem: PartsProblem | SampleProblem, settings: Settings) -> Outcome:
    return alone(problem, settings)


def for_operators(problem: OperatorProblem, settings: Settings) -> Outcome:
    return alone(problem, settings)


def for_pipelines(problem: PipelineProblem, settings: Settings) -> Outcome:
    return alone(problem, settings)


def for_chains_of_type_checkers(problem: ChainProblem, settings: Settings) -> Outcome:
    return alone(problem, settings)


def without_annotations(problem, settings):  # type: ignore[no-untyped-def]
    return alone(problem, settings)


class Callable:
    """A method with a state."""

    def __call__(self, problem: PartsProblem, settings: Settings) -> Outcome:
        """Return everything on the first device."""
        return alone(problem, settings)


def info(place: Any, features: tuple[str, ...] = ()) -> MethodInfo:
    splits = ("chain", "convex", "free")
    return MethodInfo("alone", place, ("throughput",), splits, ("numpy",), "none", features, may_miss=True)


@pytest.mark.parametrize(("name", "objective", "split"), ASKED)
def test_each_method_is_given_what_it_takes(name: str, objective: str, split: str) -> None:
    batch, schedules = {"microbatches": 4}, {"simulated": "1f1b", "virtual_stages": "zbv"}
    piped = {"schedule": schedules[name]} | batch if name in schedules else {}
    given = batch if objective in ("batch", "piper") else piped if name == "virtual_stages" else {}
    given = piped if objective == "makespan" else given
    record = objective_of(objective, name, given)
    options = read_options(record, given)
    method = METHODS[name]
    problem = Request(Workload(GRAPH, DEVICES), record, split, method, options).problem()
    assert method.load_for(problem) is method.load()


@pytest.mark.parametrize(
    ("method", "types"),
    [
        (alone, (Problem,)),
        (for_parts, (PartsProblem,)),
        (Callable(), (PartsProblem,)),
        (for_two_types, (PartsProblem, SampleProblem)),
        (without_annotations, (Problem,)),
        (for_chains_of_type_checkers, (Problem,)),
        (lambda problem, settings: None, (Problem,)),
        (dict, (Problem,)),
    ],
)
def test_the_annotation_says_what_a_method_takes(method: Any, types: tuple[type[Problem], ...]) -> None:
    assert types_taken(method) == types


@pytest.mark.parametrize("split", ["chain", "convex", "free"])
@pytest.mark.parametrize("place", [alone, without_annotations, for_chains_of_type_checkers])
def test_a_method_for_any_problem_is_called_for_every_split(place: Any, split: str) -> None:
    with registered(info(place)):
        assert partitioner.solve(GRAPH, DEVICES, method="alone", split=split).value == 6.0


@pytest.mark.parametrize(
    ("place", "taken", "split", "given"),
    [
        (for_parts, "PartsProblem", "chain", "ChainProblem"),
        (Callable(), "PartsProblem", "chain", "ChainProblem"),
        (for_two_types, "PartsProblem or SampleProblem", "chain", "ChainProblem"),
        (for_operators, "OperatorProblem", "free", "PartsProblem"),
        (for_pipelines, "PipelineProblem", "chain", "ChainProblem"),
    ],
)
def test_a_problem_of_another_type_is_refused(place: Any, taken: str, split: str, given: str) -> None:
    words = f"method 'alone' takes a problem of type {taken}, but split '{split}' gives one of type {given}: "
    with registered(info(place)), pytest.raises(OptionError, match=words):
        partitioner.solve(GRAPH, DEVICES, method="alone", split=split)


@pytest.mark.parametrize(
    ("place", "split", "features"),
    [
        (for_parts, "free", ()),
        (Callable(), "convex", ()),
        (for_two_types, "free", ()),
        (for_operators, "free", ("operators",)),
        (for_pipelines, "chain", ("replicas",)),
    ],
)
def test_a_problem_of_its_own_type_is_solved(place: Any, split: str, features: tuple[str, ...]) -> None:
    with registered(info(place, features)):
        assert partitioner.solve(GRAPH, DEVICES, method="alone", split=split).value == 6.0
