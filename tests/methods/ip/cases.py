"""What the tests of the integer programs share: present backends, a hard graph, solvers that misbehave."""

from __future__ import annotations

import os
from itertools import product

import numpy as np

from partitioner import Devices, Graph
from partitioner.methods.loads import value_of
from partitioner.methods.places import parts_at
from partitioner.methods.rules import obeys
from partitioner.methods.solvers.backends.backend import Answer, Capability, SolverLimits, Tell
from partitioner.methods.solvers.backends.catalogue import BACKENDS, is_present
from partitioner.methods.solvers.program import Program
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PartsProblem
from tests.contracted import contract_to

PRESENT = [name for name, backend in BACKENDS.items() if is_present(backend)]


def best_value(problem: Problem) -> float:
    """The smallest value over all placements that obey the rules; infinity if there is none."""
    best = np.inf
    for home in product(range(int(problem.count.sum())), repeat=problem.n):
        parts = parts_at(problem, np.array(home))
        value = value_of(problem, parts)
        if value < best and obeys(problem, parts):
            best = value
    return best


def hard_graph(n: int = 48) -> Graph:
    """A graph on which no solver proves anything within seconds."""
    rng = np.random.default_rng(3)
    edges = [(u, v) for u in range(n) for v in range(u + 1, min(u + 9, n)) if rng.random() < 0.3]
    return Graph.from_arrays({"accelerator": rng.uniform(1, 3, n)}, edges, rng.uniform(0.5, 2, len(edges)))


def problem_of(graph: Graph, devices: Devices, split: str = "free") -> PartsProblem:
    """The graph contracted for throughput."""
    return contract_to(PartsProblem, graph, devices, Goal(Measure.LARGEST_LOAD, split))


def misbehaving(function: str) -> Capability:
    """A backend whose solver is a function of this module."""
    return Capability(function, f"{__name__}:{function}", (), "")


def raises(program: Program, limits: SolverLimits, report_progress: Tell) -> Answer:
    """A solver with a defect."""
    raise RuntimeError("no such pivot")


def dies(program: Program, limits: SolverLimits, report_progress: Tell) -> Answer:
    """A solver that takes its process with it."""
    os._exit(3)


def babbles(program: Program, limits: SolverLimits, report_progress: Tell) -> Answer:
    """A solver that prints to standard output and claims half of all variables to be one."""
    os.write(1, b"noise")
    return Answer("optimal", np.arange(program.columns, dtype=np.float64) % 2, 0.0, "done")
