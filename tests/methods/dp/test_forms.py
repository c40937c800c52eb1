"""Turning a problem swaps first and last, and turning it twice changes nothing."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from partitioner.methods.dp.forms import turned_stages
from partitioner.methods.dp.pipeline_loads import pipeline_value
from partitioner.methods.method import Part
from partitioner.problem.variants import PipelineProblem
from tests.methods.dp.pipeline_cases import problem_of
from tests.random_pipelines import random_case


def problems() -> list[PipelineProblem]:
    """Random problems of which some lie idle until several stages are at work."""
    rng = np.random.default_rng(3)
    features = ("kinds", "replicas", "memory", "constraints")
    return [problem_of(random_case(rng, features)) for _ in range(100)]


def same(one: object, other: object) -> bool:
    """Are two fields equal, arrays and rows of arrays item by item?"""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)  # type: ignore[arg-type]
    return one == other


def test_twice_is_the_problem_again() -> None:
    """Every field of the problem and of its pipeline comes back."""
    for problem in problems():
        again = problem.turned().turned()
        for entry in fields(PipelineProblem):
            if entry.name not in ("coarser", "pipeline", "relaxed_pipeline"):
                assert same(getattr(problem, entry.name), getattr(again, entry.name)), entry.name
        for entry in fields(problem.pipeline):
            assert same(getattr(problem.pipeline, entry.name), getattr(again.pipeline, entry.name)), (
                entry.name
            )


def test_stages_cost_the_same() -> None:
    """A pipeline has the value of the turned one, stage by stage, and its arcs lead the other way."""
    several = 0
    for problem in problems():
        halves = np.array_split(np.arange(problem.n), 2)
        stages = [Part(0, nodes, 1 + i) for i, nodes in enumerate(halves) if len(nodes)]
        several += len(stages) > 1
        other, mirrored = problem.turned(), turned_stages(stages, problem.n)
        value = pipeline_value(problem, stages)
        assert value == pipeline_value(other, mirrored) or np.isclose(value, pipeline_value(other, mirrored))
        after = {(v, int(w)) for v in range(problem.n) for w in problem.successors.row(v)}
        last = problem.n - 1
        assert {(last - w, last - v) for v, w in after} == {
            (v, int(w)) for v in range(problem.n) for w in other.successors.row(v)
        }
    assert several > 50
