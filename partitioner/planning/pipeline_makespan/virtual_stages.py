"""Pipelines with several stages on a device, ranked by simulation."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import AnySolution, Solution
from partitioner.planning.objectives import THROUGHPUT
from partitioner.planning.pipeline_makespan.candidates import TOLERANCE, Ranking, Simulated
from partitioner.planning.pipeline_makespan.stage_borders import StageBorders
from partitioner.planning.pipeline_makespan.stage_runs import StageRuns
from partitioner.planning.request import Request
from partitioner.planning.run import find_plan

MOST_COUNTS = 3  # numbers of devices, the largest first, for which stages are made
MOST_STARTS = 4  # plans whose borders are moved
MOST_RUNS = 2000  # simulations of moved borders
SHAKES = 10  # times that borders are moved at random
SHAKEN = 3  # borders that are moved at random to leave a local optimum
WITHOUT = ("schedule", "virtual_stages", "microbatches", "constraints", "replicas")
Start = tuple[float, StageBorders]


class VirtualRanking(Ranking):
    """The search where devices have several stages: even stages, and moves of the borders between stages."""

    def search(self, request: Request, given: dict[str, Any]) -> float:
        """Simulate even stages, the plan of least load, and neighbours of the best; return a lower bound.

        A device whose load is l is busy for l a sample, so all microbatches take their number times the
        least largest load that a plan can have.
        """
        regime, bound = self.options.regime, 0.0
        assert regime.microbatches is not None
        runs = StageRuns(self.graph, self.devices, regime, request.problem())
        counts, starts = runs.counts()[:MOST_COUNTS], list[Start]()
        other = {name: given[name] for name in given if name not in WITHOUT}
        self._even(runs, counts, starts)
        for count in counts[:1]:
            self._from_line(runs, count, runs.chunks, other, starts)
        with suppress(NoPlanFound):
            if not self.expired:
                plan = find_plan(self.graph, self.devices, THROUGHPUT, **self._timed(given))
                self._offer(runs, StageBorders.of(runs.stage_of(plan.record)), starts)
                bound = regime.microbatches * plan.bound
        for count in counts:
            self._from_line(runs, count * runs.chunks, 1, other, starts)
        for count in counts[1:]:
            self._from_line(runs, count, runs.chunks, other, starts)
        self._move_borders(runs, sorted(starts, key=lambda start: start[0])[:MOST_STARTS])
        return bound

    def start_from(self, start: AnySolution) -> None:
        """Use no warm start: the note of the plan says so."""

    def _even(self, runs: StageRuns, counts: list[int], starts: list[Start]) -> None:
        """Simulate stages of even work, and of equally many layers, with and without those of no number."""
        for count in counts:
            for weight in (runs.work, runs.layers(numbered=True), runs.layers(numbered=False)):
                if not self.expired:
                    self._offer(runs, StageBorders.even(weight, count * runs.chunks), starts)

    def _from_line(
        self, runs: StageRuns, devices: int, pieces: int, given: dict[str, Any], starts: list[Start]
    ) -> None:
        """Simulate the stages of a plan with one stage on each device, each cut again into pieces."""
        if self.expired:
            return
        wide = replace(self.devices, kinds=(replace(runs.kind, count=devices, memory=None),))
        with suppress(InfeasibleError, NoPlanFound):
            plan = find_plan(self.graph, wide, THROUGHPUT, **self._timed(given))
            found = StageBorders.of(runs.stage_of(plan.record)).cut_again(runs.work, pieces)
            if found.stages == devices * pieces:
                self._offer(runs, found, starts)

    def _offer(self, runs: StageRuns, borders: StageBorders, starts: list[Start]) -> None:
        """Simulate stages; if they obey the rules, keep them as a start, and as the best if they are."""
        self.statistics["candidates"] += 1
        solution = runs.solution(borders)
        evaluation = runs.evaluated(solution)
        if evaluation.feasible:
            starts.append((runs.makespan(borders), borders))
            self._keep(solution, evaluation, starts[-1][0])

    def _move_borders(self, runs: StageRuns, starts: list[Start]) -> None:
        """Move borders as long as the makespan falls: of the best starts, then after random moves."""
        runs.runs, best = 0, None
        rng = np.random.default_rng(self.options["seed"])
        for start in starts:
            found = self._descent(runs, start)
            best = found if best is None or found[0] < best[0] else best
        for _ in range(SHAKES if best is not None else 0):
            if best is None or runs.runs >= MOST_RUNS or self.expired:
                return
            other = best[1].shaken(rng, SHAKEN)
            found = self._descent(runs, (runs.makespan(other), other))
            if found[0] < best[0] and runs.evaluated(runs.solution(found[1])).feasible:
                best = found

    def _descent(self, runs: StageRuns, start: Start) -> Start:
        """Return the stages after moves of neighbouring borders, as long as one lowers the makespan."""
        (value, borders), going = start, True
        while going:
            going = False
            for move in borders.moves():
                if runs.runs >= MOST_RUNS or self.expired:
                    return value, borders
                moved = borders.moved(*move)
                self.statistics["moves"] += 1
                if moved is None or (found := runs.makespan(moved)) >= value * (1 - TOLERANCE):
                    continue
                evaluation = runs.evaluated(solution := runs.solution(moved))
                if evaluation.feasible:
                    value, borders, going = found, moved, True
                    self.statistics["improvements"] += 1
                    self._keep(solution, evaluation, value)
        return value, borders

    def _keep(self, solution: Solution, evaluation: Evaluation, makespan: float) -> None:
        """Keep a solution that obeys all rules as the best if it is better than the best so far."""
        if self.best is None or makespan < self.best.makespan * (1 - TOLERANCE):
            order = tuple(solution.order or ())
            self.best = Simulated(solution.placement, order, {}, makespan, evaluation, solution.stage_of)
