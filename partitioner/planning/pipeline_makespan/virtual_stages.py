"""Pipelines with several stages on a device, ranked by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, shown
from partitioner.evaluation.chosen import NONE as NO_WAYS
from partitioner.evaluation.chosen import choose
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import AnySolution, Solution
from partitioner.methods.virtual_stages.borders import (
    BorderDescent,
    StageBorders,
    StageEstimates,
    fitted,
    memory_shares,
    onward_edges,
    usual_orders,
)
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import SIMULATED, THROUGHPUT
from partitioner.planning.pipeline_makespan.candidates import TOLERANCE, Ranking, Simulated
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.schedule import simulate
from partitioner.schedule.simulation import INPUT_SHARE
from partitioner.workload.alternatives import figures
from partitioner.workload.constraints import NONE
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.modules import modules_of
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from partitioner.workload.workload import Workload

# Stages on devices that have several of them, simulated.


class StageRuns:
    """Runs of stages of supernodes on the devices of a workload.

    Parameters
    ----------
    graph, devices, regime
        The workload and the settings of the pipeline, whose schedule has several stages on a device.
    problem
        The contracted graph.
    ways
        The alternatives that nodes run by; the problem has their figures.

    Raises
    ------
    OptionError
        If nodes are pinned to devices.
    """

    def __init__(
        self,
        graph: Graph,
        devices: Devices,
        regime: Regime,
        problem: PipelineProblem,
        ways: Mapping[Any, str] = NO_WAYS,
    ) -> None:
        from partitioner.methods.virtual_stages.solve import usable_kinds  # loads numba

        self.graph, self.devices, self.regime, self.problem = graph, devices, regime, problem
        self.schedule, self.ways = VIRTUAL[str(regime.schedule)], ways
        self.chunks = self.schedule.chunks_for(regime.virtual_stages)
        self.kinds = usable_kinds(problem)

    @property
    def microbatches(self) -> int:
        """How many microbatches there are."""
        return self.regime.microbatches or 1

    def counts(self) -> list[int]:
        """Return the numbers of devices that the schedule runs the microbatches on, largest first."""
        rule, batch = self.schedule.rule, self.microbatches
        most = int(self.problem.count[self.kinds].sum())
        counts = range(min(most, self.problem.n // self.chunks), 0, -1)
        return [count for count in counts if not rule(count, batch)]

    @cached_property
    def paying(self) -> list[int]:
        """The numbers of the kinds whose devices pay for transfers, or else of all kinds."""
        pays = self.problem.pays
        return [kind for kind in self.kinds if pays[kind]] or self.kinds

    def alike(self, counts: list[int]) -> list[int]:
        """Return the numbers of devices that can all be of the only kind of :attr:`paying`."""
        most = self.problem.count[self.paying[0]] if len(self.paying) == 1 else 0
        return [count for count in counts if count <= most]

    @property
    def work(self) -> Floats:
        """Shape (supernodes,): the least processing time."""
        return np.asarray(self.problem.work()[self.kinds].min(axis=0))

    @cached_property
    def speed(self) -> Floats:
        """Shape (usable kinds,): how much of the supernodes that all kinds may run each runs in a time."""
        common = self.problem.allowed[self.kinds].all(axis=0)
        total = self.problem.time[self.kinds].sum(axis=1)[:, common].sum(axis=1)
        return total.min() / total if total.min(initial=np.inf) > 0 else np.ones(len(total))

    def orders(self, devices: int) -> list[Ints]:
        """Return usual orders of some devices, as positions in `kinds`."""
        memory = self.problem.memory[self.kinds]
        return usual_orders(self.problem.count[self.kinds], self.speed, memory, devices)

    def even(self, weight: Floats, order: Ints, speed: Floats | None = None) -> StageBorders:
        """Return stages even by the speed of their devices, which are in an order of :meth:`orders`."""
        ranks = list(self.schedule.ranks(len(order), self.chunks))
        kinds = tuple(self.kinds[place] for place in order.tolist())
        by_rank = self.speed[order] if speed is None else speed
        return StageBorders.even(weight, by_rank[ranks], kinds)

    def even_memory(self, order: Ints) -> StageBorders:
        """Return stages that fill the memory of devices in an order of :meth:`orders` alike."""
        kinds = np.array(self.kinds)[order]
        weight, speed = memory_shares(self.problem, self.schedule, self.chunks, kinds)
        return self.even(weight, order, speed)

    @property
    def limited(self) -> bool:
        """Whether a device has a limit of memory."""
        return bool(np.isfinite(self.problem.memory[self.kinds]).any())

    def borders(self, solution: Solution) -> StageBorders:
        """Return the stages of a solution."""
        names = list(dict.fromkeys(solution.order or ()))
        return StageBorders.on(self.devices, names, self.stage_of(solution))

    def layers(self, numbered: bool) -> Floats:
        """Return the share of a layer that each supernode is, or of a layer with a number in its name."""
        modules = modules_of(self.graph)
        counts = [not numbered or any(map(str.isdigit, name)) for name in modules.names]
        counted = np.array(counts, dtype=np.float64)
        inside = modules.of >= 0
        share = counted / np.maximum(1, np.bincount(modules.of[inside], minlength=len(counted)))
        member = self.problem.member[inside]
        return np.bincount(member, share[modules.of[inside]], self.problem.n).astype(np.float64)

    def stage_of(self, solution: Solution) -> Ints:
        """Return the stage of every supernode, shape (supernodes,)."""
        order = list(solution.order or ())
        of = solution.stage_of or {node: order.index(name) for node, name in solution.placement.items()}
        stage = np.zeros(self.problem.n, dtype=np.int64)
        stage[self.problem.member] = [of[node] for node in self.graph.ids]
        return stage

    def solution(self, borders: StageBorders) -> Solution:
        """Return the stages on their devices."""
        names, count = borders.names(self.devices), borders.stages // self.chunks
        order = tuple(names[rank] for rank in self.schedule.ranks(count, self.chunks))
        where = borders.stage[self.problem.member].tolist()
        stage_of = dict(zip(self.graph.ids, where, strict=True))
        placement = {node: order[i] for node, i in stage_of.items()}
        return Solution(placement, order=order, stage_of=stage_of, alternatives=self.ways)

    @cached_property
    def estimates(self) -> StageEstimates:
        """The estimates of makespans."""
        given = self.schedule, self.chunks, self.microbatches
        return StageEstimates(self.graph, self.problem, *given, INPUT_SHARE)

    @property
    def free(self) -> bool:
        """Whether nothing but memory limits stages."""
        return bool(self.problem.allowed[self.kinds].all()) and self.regime.constraints == NONE

    def obeys(self, borders: StageBorders) -> bool:
        """Whether stages obey the rules of the call."""
        if self.free:
            return not self.limited or bool((self.over(borders) <= 0).all())
        return self.evaluated(self.solution(borders)).feasible

    def over(self, borders: StageBorders) -> Floats:
        """Return by how much devices exceed their memory, shape (devices,); what is negative is free."""
        pipeline, stage, stages = self.problem.pipeline, borders.stage, borders.stages
        amounts = self.problem.size + pipeline.parameters, pipeline.activations
        once, kept = (np.bincount(stage, each, stages).astype(np.float64) for each in amounts)
        workspace = np.zeros(stages)
        np.maximum.at(workspace, stage, pipeline.workspace)
        held = self.estimates.held(borders)
        return held.memory(once, kept, workspace) - self.problem.memory[list(borders.kinds)]

    def missing(self, borders: StageBorders) -> float:
        """Return the memory that the devices lack for stages.

        It is infinite if the stages break another rule, or their devices lack it together.
        """
        if self.free:
            each = self.over(borders)
            return float(np.maximum(each, 0.0).sum()) if each.sum() <= 0 else np.inf
        found = self.evaluated(self.solution(borders))
        limits = [np.inf if load.memory_limit is None else load.memory_limit for load in found.loads]
        over = [load.memory - limit for load, limit in zip(found.loads, limits, strict=True) if load.nodes]
        lacking = sum(more for more in over if more > 0)
        return 0.0 if found.feasible else lacking if lacking and sum(over) <= 0 else np.inf

    def evaluated(self, solution: Solution) -> Evaluation:
        """Return the evaluation of a solution under the rules of the call."""
        regime = self.regime
        given: dict[str, Any] = {"schedule": regime.schedule, "microbatches": regime.microbatches}
        limits = regime.constraints
        return evaluate(self.graph, self.devices, solution, constraints=limits, split="chain", **given)


MOST_COUNTS = 3  # numbers of devices, the largest first, for which stages are made
MOST_STARTS = 4  # plans whose borders are moved
MANY, SERIES = 100, 8  # supernodes from which on there are more series of annealing before bounds
NEAR = 1e-3  # the gap below which stages are not annealed
LINE, LOADS, MOVES, PATHS = 0.2, 0.1, 0.1, 0.7  # parts of the remaining time for steps of the search
USUAL = "1f1b"  # the schedule with one stage on a device whose pipelines are searched without cuts
WITHOUT = ("schedule", "virtual_stages", "microbatches", "constraints", "replicas")
Start = tuple[float, StageBorders]


def _refuse_onward(graph: Graph, problem: PipelineProblem, schedule: str) -> None:
    """Raise an `OptionError` if backward passes send tensors to stages that cannot be earlier ones."""
    onward = onward_edges(graph, problem)
    if onward:
        source, target = (shown(graph.ids[node]) for node in onward[0])
        others = f" (and {len(onward) - 1} other edges)" if len(onward) > 1 else ""
        raise OptionError(
            f"schedule = {schedule!r}: stages run backward in reverse order, but backward node {source} "
            f"sends a tensor onward to {target}{others}; choose another schedule, as '1f1b', or keep such "
            "nodes in one stage with the constraint `together`"
        )


class VirtualRanking(Ranking):
    """The search where devices have several stages: even stages, and moves of the borders between stages."""

    def search(self) -> float:
        """Simulate usual stages, plans of least load, and neighbours of the best; return a lower bound."""
        problem = self.request.problem()
        assert isinstance(problem, PipelineProblem)
        _refuse_onward(self.graph, problem, str(self.regime.schedule))
        runs = StageRuns(self.graph, self.devices, self.regime, problem)
        counts, starts = runs.counts(), list[Start]()
        self._even(runs, counts[:MOST_COUNTS], starts)
        lines = runs.alike(counts)[:1]
        if runs.chunks == 1:
            self._from_usual(runs, starts)
        for count in lines:
            self._from_line(runs, count, runs.chunks, starts)
        bound = self._least_load(runs, starts)
        if not self.is_proven(bound, self.settings.gap):
            self._move_borders(runs, starts, MOVES, SERIES if runs.problem.n > MANY else 2)
        bound = max(bound, self._by_paths(self._fastest(runs), counts, bound, starts))
        if not self.is_proven(bound, self.settings.gap):
            for count in lines:
                self._from_line(runs, count * runs.chunks, 1, starts)
            self._move_borders(runs, starts, series=0 if self.is_proven(bound, NEAR) else None)
        return bound

    def _least_load(self, runs: StageRuns, starts: list[Start]) -> float:
        """Simulate the plan of the least load; return the number of microbatches times the bound on its load.

        A device whose load is l is busy for l a sample. Without any plan so far, all time that is left is for
        this one, or for the proof that there is none.
        """
        if not self.expired:
            share = 1.0 if self.best is None else LOADS
            with suppress(NoPlanFound):
                plan = self.planned(THROUGHPUT, share)
                if plan.alternatives:
                    self._by_ways(plan.record)
                else:
                    self._offer(runs, runs.borders(plan.record), starts)
                return runs.microbatches * plan.bound
        return 0.0

    def _by_ways(self, plan: Solution) -> None:
        """Simulate a plan whose nodes run by alternatives, and its neighbours where they run by the same."""
        runs, starts = self._runs_by(plan.alternatives), list[Start]()
        if plan.replicas:
            self._keep(plan, runs.evaluated(plan))
            return
        self._offer(runs, runs.borders(plan), starts)
        self._even(runs, runs.counts()[:1], starts)
        self._move_borders(runs, starts)

    def _fastest(self, runs: StageRuns) -> StageRuns:
        """Return the runs in which every node takes the least time of all its ways; no plan is as good."""
        if not self.chooses:
            return runs
        time = self.graph.time.copy()
        for node, ways in self.graph.alternatives.items():
            own = time[:, self.graph.position[node]]
            own[:] = np.minimum(own, figures(ways, self.graph.kinds)[0].min(axis=1))
        return self._runs_on(replace(self.graph, time=time), NO_WAYS)

    def _runs_by(self, ways: Mapping[Any, str]) -> StageRuns:
        """Return the runs of stages whose nodes run by some alternatives."""
        return self._runs_on(choose(self.graph, ways).graph, ways)

    def _runs_on(self, graph: Graph, ways: Mapping[Any, str]) -> StageRuns:
        """Return the runs of stages of a graph that has the figures of some alternatives."""
        problem = replace(self.request, workload=Workload(graph, self.devices)).problem()
        assert isinstance(problem, PipelineProblem)
        return StageRuns(graph, self.devices, self.regime, problem, ways)

    def _by_paths(self, runs: StageRuns, counts: list[int], known: float, starts: list[Start]) -> float:
        """Return a lower bound by paths, at least a known one; simulate the best pipelines on the way."""
        from partitioner.methods.virtual_stages.path_bounds import PathBounds  # loads numba

        low = {count: max(known, self._mean(runs, count)) for count in counts}
        if self.best is None or self.expired:
            return min(low.values())
        found = list[Start]()
        settings = self.share(PATHS)
        problem = replace(runs.problem, nets=runs.estimates.nets)
        paths = PathBounds(runs.graph, problem, runs.kinds, INPUT_SHARE, settings)
        for length, stages in paths.narrow(low, self.best.makespan):
            kinds = tuple(runs.kinds[place] for place in stages.kinds.tolist())
            borders = StageBorders.of(paths.stage(stages.borders), kinds)
            found.append((length, borders))
        best = runs if not self.chooses else self._runs_by(self.best.alternatives)
        for _, borders in sorted(found, key=lambda one: one[0])[:MOST_STARTS]:
            self._offer(best, borders, starts)
        return paths.bound

    def _mean(self, runs: StageRuns, count: int) -> float:
        """Return the least makespan of some devices that are never idle, by their weighted mean load."""
        weighted = (runs.problem.work()[runs.kinds] * runs.speed[:, None]).min(axis=0)
        each = -np.sort(-np.repeat(runs.speed, runs.problem.count[runs.kinds]))
        return runs.microbatches * float(weighted.sum() / each[:count].sum())

    def start_from(self, start: AnySolution) -> None:
        """Use no warm start: the note of the plan says so."""

    def _even(self, runs: StageRuns, counts: list[int], starts: list[Start]) -> None:
        """Simulate stages of even work, and of equally many layers, with and without those of no number."""
        weights = runs.work, runs.layers(numbered=True), runs.layers(numbered=False)
        for count in counts:
            for order in runs.orders(count):
                found = [runs.even(weight, order) for weight in weights]
                for borders in [runs.even_memory(order), *found] if runs.limited else found:
                    if not self.expired:
                        self._offer(runs, borders, starts)

    def _from_line(self, runs: StageRuns, devices: int, pieces: int, starts: list[Start]) -> None:
        """Simulate the stages of a plan with one stage on each device, each cut again into pieces."""
        if self.expired:
            return
        kind = self.devices.kinds[runs.paying[0]]
        wide = replace(self.devices, kinds=(replace(kind, count=devices, memory=None),))
        with suppress(InfeasibleError, NoPlanFound):
            plan = self.planned(THROUGHPUT, LINE, wide, WITHOUT)
            found = runs.borders(plan.record).cut_again(runs.work, pieces)
            if found.stages == devices * pieces:
                count = found.stages // runs.chunks
                self._offer(runs, replace(found, kinds=(runs.paying[0],) * count), starts)

    def _from_usual(self, runs: StageRuns, starts: list[Start]) -> None:
        """Simulate the stages of the best pipeline under 1F1B, where devices have one stage each.

        GPT-3 with 6.7 billion parameters, 8 microbatches, ``zb_h1``: 1,410.6, and 1,424.9 without them.
        """
        if self.expired:
            return
        with suppress(InfeasibleError, NoPlanFound):
            plan = self.planned(SIMULATED, LINE, without=("virtual_stages",), schedule=USUAL)
            self._offer(runs, runs.borders(plan.record), starts)

    def _offer(self, runs: StageRuns, borders: StageBorders, starts: list[Start]) -> None:
        """Simulate stages, moved until they fit; keep them as a start, and as the best if they are."""
        self.statistics["candidates"] += 1
        solution, fitting = runs.solution(borders), borders
        evaluation = runs.evaluated(solution)
        if not evaluation.feasible:
            moved = fitted(borders, runs.missing, lambda: self.expired)
            if moved is None:
                return
            solution, fitting = runs.solution(moved), moved
            evaluation = runs.evaluated(solution)
            if not evaluation.feasible:
                return
        starts.append((self._keep(solution, evaluation), fitting))

    def _keep(self, solution: Solution, evaluation: Evaluation) -> float:
        """Return the simulated makespan of stages that obey the rules; keep them as the best if they are."""
        regime = self.regime
        timeline = simulate(self.graph, self.devices, solution, regime.schedule, regime.microbatches)
        if self.best is None or timeline.makespan < self.best.makespan * (1 - TOLERANCE):
            self.statistics["improvements"] += self.best is not None
            self.best = Simulated(
                solution.placement,
                tuple(solution.order or ()),
                {name: tuple(others) for name, others in solution.replicas.items()},
                timeline.makespan,
                evaluation,
                solution.stage_of,
                solution.alternatives,
            )
        return timeline.makespan

    def _move_borders(
        self, runs: StageRuns, starts: list[Start], share: float = 1.0, series: int | None = None
    ) -> None:
        """Simulate stages whose borders no move improves, from the best starts, at random, and annealed ones.

        There are no moves at random if these are a part of the search alone. `series` are those of annealing,
        all if None.
        """
        from partitioner.methods.virtual_stages.annealing import StageAnnealing  # loads numba

        rng, settings = np.random.default_rng(self.asked.options["seed"]), self.share(share)
        search = BorderDescent(runs.estimates, runs.obeys, lambda: settings.expired, rng)
        first = [borders for _, borders in sorted(starts, key=lambda start: start[0])[:MOST_STARTS]]
        for borders in islice(search.local_optima(first), len(first) if share < 1 else None):
            self._offer(runs, borders, starts)
        annealing = StageAnnealing(runs.estimates, lambda: settings.expired, rng)
        for borders in annealing.series(starts, series):
            self._offer(runs, borders, starts)
        self.statistics["moves"] += search.moves + annealing.moves
