"""Pipelines with several stages on a device, ranked by simulation."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.evaluation.solution import AnySolution, Solution, solution_of
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import THROUGHPUT
from partitioner.planning.pipeline_makespan.candidates import TOLERANCE, Ranking, Simulated
from partitioner.planning.pipeline_makespan.stage_borders import StageBorders
from partitioner.planning.request import Request
from partitioner.planning.run import find_plan
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem
from partitioner.results.plan import Plan
from partitioner.schedule import simulate
from partitioner.schedule.kinds.registry import kind_of
from partitioner.schedule.passes import split_backward
from partitioner.schedule.reading import read_passes
from partitioner.schedule.running import run_table
from partitioner.schedule.simulation import INPUT_SHARE, table_for
from partitioner.schedule.table import Table
from partitioner.workload.devices import DeviceKind
from partitioner.workload.modules import modules_of
from partitioner.workload.virtual_stages.schedules import VIRTUAL, VirtualSchedule

MOST_COUNTS = 3  # numbers of devices, the largest first, for which stages are made
MOST_RUNS = 1500  # simulations of moved borders
WITHOUT = ("schedule", "virtual_stages", "microbatches", "constraints", "replicas")


class VirtualRanking(Ranking):
    """The search where devices have several stages: even stages, and moves of the borders between stages."""

    tables: dict[int, Table]
    problem: Problem

    def search(self, request: Request, given: dict[str, Any]) -> float:
        """Simulate even stages, the plan of least load, and neighbours of the best; return a lower bound.

        A device whose load is l is busy for l a sample, so all microbatches take their number times the
        least largest load that a plan can have.
        """
        regime, bound = self.options.regime, 0.0
        assert regime.microbatches is not None
        self.tables, self.problem = {}, request.problem()
        counts = self._counts()
        self._even(counts[:1])
        with suppress(NoPlanFound):
            if not self.expired:
                plan = find_plan(self.graph, self.devices, THROUGHPUT, **self._timed(given))
                self.take(plan)
                bound = regime.microbatches * plan.bound
        self._even(counts[1:])
        for count in counts:
            self._balanced(count, {name: given[name] for name in given if name not in WITHOUT})
        self._move_borders()
        return bound

    def _move_borders(self) -> None:
        """Move borders between stages as long as the makespan falls."""
        runs, going = 0, True
        while going and self.best is not None:
            going = False
            borders = StageBorders(self._stages(self.problem, self.best))
            for stage in borders.moves():
                if self.expired or runs >= MOST_RUNS:
                    return
                runs += 1
                self.statistics["moves"] += 1
                if self._offer(stage):
                    self.statistics["improvements"] += 1
                    going = True
                    break

    def start_from(self, start: AnySolution) -> None:
        """Simulate the warm start if it says the stage of every node."""
        self.statistics["candidates"] += 1
        known = solution_of(start)
        if known.stage_of is not None:
            self._keep(Solution(known.placement, order=known.order, stage_of=known.stage_of))

    def take(self, plan: Plan) -> None:
        """Keep a plan if it obeys the rules and is better than the best so far."""
        self.statistics["candidates"] += 1
        stage_of = plan.stage_of
        if stage_of is None:
            stage_of = {node: plan.stages.index(device) for node, device in plan.placement.items()}
        self._keep(Solution(plan.placement, order=plan.stages, stage_of=stage_of))

    def _stages(self, problem: Problem, known: Simulated) -> Ints:
        stage = np.zeros(problem.n, dtype=np.int64)
        assert known.stage_of is not None
        stage[problem.member] = [known.stage_of[node] for node in self.graph.ids]
        return stage

    def _counts(self) -> list[int]:
        """Return the largest numbers of devices that the schedule runs the microbatches on."""
        rule, batch = self._schedule.rule, self.options.regime.microbatches or 1
        counts = range(min(self._kind.count, self.problem.n // self._chunks), 0, -1)
        return [count for count in counts if not rule(count, batch)][:MOST_COUNTS]

    def _even(self, counts: list[int]) -> None:
        """Simulate stages of even work, and stages of equally many layers."""
        work = self.problem.time.min(axis=0).sum(axis=0)
        layer = np.zeros(self.problem.n)
        module = modules_of(self.graph).of
        layer[self.problem.member] = 1 / np.bincount(module)[module]
        for count in counts:
            for weight in (work, layer):
                self.statistics["candidates"] += 1
                self._offer(StageBorders.even(weight, count * self._chunks).stage)

    def _balanced(self, count: int, given: dict[str, Any]) -> None:
        """Simulate the stages of a plan for as many devices as stages, and those of a plan cut again."""
        chunks, work = self._chunks, self.problem.time.min(axis=0).sum(axis=0)
        for devices, pieces in ((count * chunks, 1), (count, chunks)):
            if self.expired:
                return
            kind = replace(self._kind, count=devices, memory=None)
            with suppress(InfeasibleError, NoPlanFound):
                wide = replace(self.devices, kinds=(kind,))
                plan = find_plan(self.graph, wide, THROUGHPUT, **self._timed(given))
                place = {device: i for i, device in enumerate(plan.stages)}
                stage = np.zeros(self.problem.n, dtype=np.int64)
                stage[self.problem.member] = [place[plan.placement[node]] for node in self.graph.ids]
                self.statistics["candidates"] += 1
                found = StageBorders(stage).cut_again(work, pieces)
                if len(found.borders) == count * chunks + 1:
                    self._offer(found.stage)

    @property
    def _schedule(self) -> VirtualSchedule:
        return VIRTUAL[str(self.options.regime.schedule)]

    @property
    def _chunks(self) -> int:
        return self._schedule.chunks_for(self.options.regime.virtual_stages)

    @property
    def _kind(self) -> DeviceKind:
        """The kind of all devices: the one that pays for transfers, if any does."""
        present = [kind for kind in self.devices.kinds if kind.count]
        return next((kind for kind in present if kind.pays_communication), present[0])

    def _offer(self, stage: Ints) -> bool:
        """Keep the stages of supernodes, shape (n,), if they are the best so far; say whether they are."""
        count = (int(stage.max()) + 1) // self._chunks
        order = tuple(self._kind.device(rank) for rank in self._schedule.ranks(count, self._chunks))
        where = stage[self.problem.member].tolist()
        stage_of = dict(zip(self.graph.ids, where, strict=True))
        placement = {node: order[i] for node, i in stage_of.items()}
        solution = Solution(placement, order=order, stage_of=stage_of)
        if self.best is not None and self._makespan(solution, count) >= self.best.makespan * (1 - TOLERANCE):
            return False
        return self._keep(solution)

    def _makespan(self, solution: Solution, count: int) -> float:
        """Return the simulated makespan of stages on a number of devices."""
        regime = self.options.regime
        kind = kind_of(regime.schedule)
        passes = read_passes(self.graph, self.devices, solution)
        passes = split_backward(passes, INPUT_SHARE) if kind.halves else passes
        if count not in self.tables:
            self.tables[count] = table_for(kind, passes, regime.microbatches)
        _, end = run_table(
            self.tables[count], passes, self.devices.communication, self.devices.synchronisation
        )
        return float(end.max())

    def _keep(self, solution: Solution) -> bool:
        """Keep a solution if it obeys all rules and is better than the best so far; say whether it is."""
        regime = self.options.regime
        shared: dict[str, Any] = {"schedule": regime.schedule, "microbatches": regime.microbatches}
        limits = regime.constraints
        evaluation = evaluate(self.graph, self.devices, solution, constraints=limits, split="chain", **shared)
        if not evaluation.feasible:
            return False
        timeline = simulate(self.graph, self.devices, solution, **shared)
        if self.best is not None and timeline.makespan >= self.best.makespan * (1 - TOLERANCE):
            return False
        bubbles = dict(zip(timeline.devices, timeline.bubble.tolist(), strict=True))
        order = tuple(solution.order or ())
        self.best = Simulated(
            solution.placement, order, {}, timeline.makespan, bubbles, evaluation, solution.stage_of
        )
        return True
