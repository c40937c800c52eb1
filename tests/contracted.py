"""Problems of the type that a test is about."""

from __future__ import annotations

from typing import TypeVar

from partitioner import Devices, Graph
from partitioner.problem.contract import contract
from partitioner.problem.goal import CHAIN, Goal
from partitioner.problem.problem import Problem

Wanted = TypeVar("Wanted", bound=Problem)


def of_type(wanted: type[Wanted], problem: Problem) -> Wanted:
    """The problem, which must be of that type."""
    assert isinstance(problem, wanted), f"a {type(problem).__name__} where a {wanted.__name__} was expected"
    return problem


def contract_to(wanted: type[Wanted], graph: Graph, devices: Devices, goal: Goal = CHAIN) -> Wanted:
    """The graph contracted, to a problem of that type."""
    return of_type(wanted, contract(graph, devices, goal))
