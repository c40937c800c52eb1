"""Pipelines with several stages on a device, ranked by simulation."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.evaluation.solution import AnySolution
from partitioner.methods.method import meets
from partitioner.planning.objectives import THROUGHPUT
from partitioner.planning.pipeline_makespan.border_descent import BorderDescent
from partitioner.planning.pipeline_makespan.candidates import TOLERANCE, Ranking, Simulated
from partitioner.planning.pipeline_makespan.stage_borders import StageBorders
from partitioner.planning.pipeline_makespan.stage_runs import StageRuns
from partitioner.problem.variants import PipelineProblem
from partitioner.schedule import simulate
from partitioner.schedule.simulation import INPUT_SHARE

MOST_COUNTS = 3  # numbers of devices, the largest first, for which stages are made
MOST_STARTS = 4  # plans whose borders are moved
LINE, LOADS, PATHS = 0.2, 0.2, 0.6  # parts of the remaining time for steps of the search
WITHOUT = ("schedule", "virtual_stages", "microbatches", "constraints", "replicas")
Start = tuple[float, StageBorders]


class VirtualRanking(Ranking):
    """The search where devices have several stages: even stages, and moves of the borders between stages."""

    def search(self) -> float:
        """Simulate usual stages, plans of least load, and neighbours of the best; return a lower bound."""
        problem = self.request.problem()
        assert isinstance(problem, PipelineProblem)
        runs = StageRuns(self.graph, self.devices, self.regime, problem)
        counts, starts = runs.counts(), list[Start]()
        self._even(runs, counts[:MOST_COUNTS], starts)
        for count in counts[:1]:
            self._from_line(runs, count, runs.chunks, starts)
        bound = self._least_load(runs, starts)
        bound = max(bound, self._by_paths(runs, counts, bound, starts))
        if not self._proven(bound):
            for count in counts[:1]:
                self._from_line(runs, count * runs.chunks, 1, starts)
            self._move_borders(runs, starts)
        return bound

    def _proven(self, bound: float) -> bool:
        """Whether the best plan is within the gap of a bound."""
        return self.best is not None and meets(bound, self.best.makespan, self.settings.gap)

    def _least_load(self, runs: StageRuns, starts: list[Start]) -> float:
        """Simulate the plan of the least load; return the number of microbatches times the bound on its load.

        A device whose load is l is busy for l a sample. Without any plan so far, all time that is left is for
        this one, or for the proof that there is none.
        """
        if not self.expired:
            share = 1.0 if self.best is None else LOADS
            with suppress(NoPlanFound):
                plan = self.planned(THROUGHPUT, share)
                self._offer(runs, StageBorders.of(runs.stage_of(plan.record)), starts)
                return runs.microbatches * plan.bound
        return 0.0

    def _by_paths(self, runs: StageRuns, counts: list[int], known: float, starts: list[Start]) -> float:
        """Return a lower bound by paths, at least a known one; simulate the best pipelines on the way."""
        from partitioner.methods.virtual_stages.bound import PathBounds  # loads numba

        work = runs.microbatches * float(runs.work.sum())
        low = {count: max(known, work / count) for count in counts}
        if self.best is None or self.expired:
            return min(low.values())
        found = list[Start]()
        settings = self.settings.within(self.settings.clock.left * PATHS)
        problem = replace(runs.problem, nets=runs.estimates.nets)
        paths = PathBounds(self.graph, problem, runs.estimates.kind, INPUT_SHARE, settings)
        for cuts in paths.narrow(low, self.best.makespan):
            borders = StageBorders.of(paths.stage(cuts))
            found.append((runs.estimates.makespan(borders.stage), borders))
        for _, borders in sorted(found, key=lambda one: one[0])[:MOST_STARTS]:
            self._offer(runs, borders, starts)
        return paths.bound

    def start_from(self, start: AnySolution) -> None:
        """Use no warm start: the note of the plan says so."""

    def _even(self, runs: StageRuns, counts: list[int], starts: list[Start]) -> None:
        """Simulate stages of even work, and of equally many layers, with and without those of no number."""
        for count in counts:
            for weight in (runs.work, runs.layers(numbered=True), runs.layers(numbered=False)):
                if not self.expired:
                    self._offer(runs, StageBorders.even(weight, count * runs.chunks), starts)

    def _from_line(self, runs: StageRuns, devices: int, pieces: int, starts: list[Start]) -> None:
        """Simulate the stages of a plan with one stage on each device, each cut again into pieces."""
        if self.expired:
            return
        wide = replace(self.devices, kinds=(replace(runs.kind, count=devices, memory=None),))
        with suppress(InfeasibleError, NoPlanFound):
            plan = self.planned(THROUGHPUT, LINE, wide, WITHOUT)
            found = StageBorders.of(runs.stage_of(plan.record)).cut_again(runs.work, pieces)
            if found.stages == devices * pieces:
                self._offer(runs, found, starts)

    def _offer(self, runs: StageRuns, borders: StageBorders, starts: list[Start]) -> None:
        """Simulate stages; if they obey the rules, keep them as a start, and as the best if they are."""
        self.statistics["candidates"] += 1
        solution, regime = runs.solution(borders), self.regime
        evaluation = runs.evaluated(solution)
        if not evaluation.feasible:
            return
        timeline = simulate(self.graph, self.devices, solution, regime.schedule, regime.microbatches)
        starts.append((timeline.makespan, borders))
        if self.best is None or timeline.makespan < self.best.makespan * (1 - TOLERANCE):
            self.statistics["improvements"] += self.best is not None
            order, makespan = tuple(solution.order or ()), timeline.makespan
            self.best = Simulated(solution.placement, order, {}, makespan, evaluation, solution.stage_of)

    def _move_borders(self, runs: StageRuns, starts: list[Start]) -> None:
        """Simulate stages whose borders no move improves, from the best starts and at random."""
        rng = np.random.default_rng(self.asked.options["seed"])
        search = BorderDescent(runs.estimates, runs.obeys, lambda: self.expired, rng)
        first = [borders for _, borders in sorted(starts, key=lambda start: start[0])[:MOST_STARTS]]
        for borders in search.local_optima(first):
            self._offer(runs, borders, starts)
        self.statistics["moves"] += search.moves
