"""One question of the anytime search: is there a chain in which no load exceeds a threshold?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.anytime import kernel
from partitioner.methods.dp.anytime.arrays import Pool, SearchGraph
from partitioner.methods.dp.anytime.demand import DemandSource
from partitioner.methods.dp.anytime.pools import empty_pool, grown, most_states, work_space
from partitioner.methods.dp.table import clipped, stage_model
from partitioner.methods.dp.weights import weights_above
from partitioner.methods.method import Part, Settings
from partitioner.problem.problem import Problem

SLICE = 400_000  # steps between two looks at the clock
FEW = 5_000  # supernodes of which the weight of all descendants is known quickly
SPREAD = 0.3  # by how much the order of candidates differs from one seed to the next


class Effort(NamedTuple):
    """Limits of one attempt: steps in all, steps from one state, and stages from one state."""

    steps: int
    steps_each: int
    stages_each: int


@dataclass(frozen=True)
class Verdict:
    """The answer: the stages of a chain, or that there is none, or neither; and the steps it took."""

    stages: list[Part] | None
    refuted: bool
    steps: int


class Decider:
    """Decides whether chains exist, in one direction of the graph.

    Parameters
    ----------
    problem, relaxation
        The problem, and its relaxation, whose weights bound what the supernodes outside an ideal need.
    backwards
        Whether stages are made from the last one to the first.
    """

    def __init__(self, problem: Problem, relaxation: Relaxation, backwards: bool) -> None:
        after, before = problem.successors, problem.predecessors
        if backwards:
            after, before = before, after
            problem = replace(problem, successors=after, predecessors=before)
        self.problem, self.backwards, self.weight = problem, backwards, relaxation.weight
        self.demands = DemandSource(problem, relaxation)
        self.model = stage_model(problem)
        few = problem.n <= FEW
        self.tail = weights_above(after.start, after.items, self.weight, linear=False) if few else self.weight
        words = np.random.default_rng(0).integers(0, 2**64, problem.n, dtype=np.uint64)
        number = np.arange(problem.n)
        self.graph = SearchGraph(after.start, after.items, np.diff(before.start), number, words)

    def decide(self, threshold: float, effort: Effort, settings: Settings, seed: int) -> Verdict:
        """Search for a chain in which no load exceeds the threshold, until the effort is spent.

        Another seed tries the supernodes in another order; seed 0 is the plain one.
        """
        demand, model = self.demands.at(threshold), clipped(self.model, threshold)
        if (demand.weight.sum(axis=1) > demand.capacity[:, 0]).any():
            return Verdict(None, True, 0)
        graph, space = self.graph._replace(order=self._order(seed)), work_space(self.problem)
        most = most_states(self.problem, settings.memory_budget)
        pool, at = empty_pool(self.problem, most), np.zeros(6, dtype=np.int64)
        at[kernel.COUNT], at[kernel.LAST] = 1, -1
        state, kinds = kernel.PAUSED, len(self.problem.count)
        while state in (kernel.PAUSED, kernel.FULL):
            steps = int(at[kernel.STEPS])
            no_room = state == kernel.FULL and len(pool.key) == most
            if no_room or steps >= effort.steps or settings.expired:
                return Verdict(None, False, steps)
            if state == kernel.FULL:
                pool = grown(pool, int(at[kernel.COUNT]), most)
            room = kinds + (effort.stages_each if len(pool.key) < most else 0)
            limits = np.array([min(steps + SLICE, effort.steps), *effort[1:], room])
            state = kernel.search(graph, model, demand, pool, space, at, limits)
        refuted = state == kernel.EXHAUSTED and at[kernel.CUT_SHORT] == 0
        stages = self._stages(pool, int(at[kernel.LAST])) if state == kernel.FOUND else None
        return Verdict(stages, bool(refuted), int(at[kernel.STEPS]))

    def _order(self, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the order of candidates: what is heavy, and what much weight depends on, comes first."""
        key = sum(each / max(each.mean(), 1e-300) for each in (self.weight, self.tail))
        if seed:
            key = key * (1 + SPREAD * np.random.default_rng(seed).random(self.problem.n))
        return np.argsort(-key, kind="stable")

    def _stages(self, pool: Pool, state: int) -> list[Part]:
        """Return the stages of the chain that leads to a state, in the order of the pipeline."""
        stages = []
        while pool.parent[state] >= 0:
            parent = int(pool.parent[state])
            bits = np.unpackbits((pool.ideal[state] ^ pool.ideal[parent]).view(np.uint8), bitorder="little")
            stages.append(Part(int(pool.kind[state]), np.flatnonzero(bits)))
            state = parent
        return stages if self.backwards else stages[::-1]
