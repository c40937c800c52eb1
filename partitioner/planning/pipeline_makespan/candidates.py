"""Pipelines ranked by simulation: those of the dynamic program, and neighbours of the best one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.evaluation.chosen import NONE
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import AnySolution, Solution, solution_of
from partitioner.methods.expand import expand
from partitioner.methods.method import ANY_DEVICES, Outcome, Settings, meets
from partitioner.methods.registry import METHODS
from partitioner.methods.virtual_stages.borders import (
    StageBorders,
    StageEstimates,
    boundary_moves,
    onward_edges,
)
from partitioner.planning.alternatives import can_choose, chooses
from partitioner.planning.evaluate import evaluate
from partitioner.planning.first_plan import find_first_plan, lower_bound
from partitioner.planning.objectives import BATCH, THROUGHPUT, Objective
from partitioner.planning.options import request_of
from partitioner.planning.request import Request
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PipelineProblem
from partitioner.results.plan import Plan
from partitioner.schedule import simulate
from partitioner.schedule.simulation import INPUT_SHARE
from partitioner.workload.devices import Devices
from partitioner.workload.virtual_stages.schedules import ALONE
from partitioner.workload.workload import Workload

if TYPE_CHECKING:
    from partitioner.methods.pipeline_bound.fill_drain import FillDrain
    from partitioner.methods.virtual_stages.annealing import StageAnnealing

MOST_MOVES = 400
PATIENCE = 0.5  # seconds by which the search may exceed the time limit to find any plan
TOLERANCE = 1e-9
MOST_COUNTS = 24  # of stages that are tried for batches
QUICKLY, BY_LOAD = 0.15, 0.2  # of the time that is left, for plans for throughput
ANNEALED = 0.25  # of the time of a search for a bound, and of the time that is left, to anneal stages
SLICE = 0.5  # seconds: the least time for which stages are annealed during a search
CLOSE = 1e-2  # of the makespan: the distance to the bound from which on they are not
MANY = 4000  # supernodes, of more of which stages are not annealed
BATCHES = 0.25  # of the time that is left, for a plan for batches, and for those of all numbers of stages
PROVEN = 1e-3  # of the makespan: the distance to the bound from which on plans for batches are left out


@dataclass(frozen=True)
class Simulated:
    """A pipeline, its simulated makespan, and its evaluation.

    `stage_of` has the stage of every node where devices have several, `alternatives` the chosen ones.
    """

    placement: Mapping[Any, str]
    order: tuple[str, ...]
    replicas: Mapping[str, tuple[str, ...]]
    makespan: float
    evaluation: Evaluation
    stage_of: Mapping[Any, int] | None = None
    alternatives: Mapping[Any, str] = field(default_factory=dict)

    @property
    def solution(self) -> Solution:
        """The pipeline as a solution."""
        return Solution(
            self.placement, self.replicas, self.order, stage_of=self.stage_of, alternatives=self.alternatives
        )


class Ranking:
    """The search for the pipeline of a request, within the limits of the settings.

    `request` asks for the throughput of the same pipelines. `chooses` says whether plans for throughput
    choose among alternatives of nodes; bounds that know only the nodes' own figures are then not used.
    """

    def __init__(self, request: Request, settings: Settings) -> None:
        self.graph, self.devices, self.regime = request.graph, request.devices, request.regime
        self.asked, self.settings = request, settings
        self.request = replace(request, objective=THROUGHPUT, info=METHODS[THROUGHPUT.extended_method])
        self.best: Simulated | None = None
        self.cut_short = False  # whether a search for a candidate was, by its share of the time
        features, able = self.regime.features(self.devices), can_choose(self.graph, self.devices)
        automatic = METHODS[THROUGHPUT.automatic("chain", features, able)]
        self.chooses = chooses(self.graph, self.devices, automatic)
        self.statistics = {"candidates": 0, "moves": 0, "improvements": 0}

    @property
    def expired(self) -> bool:
        """Whether the search should end: the time is over or a stop is requested, and there is a plan.

        Without a plan it ends after twice the time, or :data:`PATIENCE` seconds later if that is earlier.
        """
        clock = self.settings.clock
        late = clock.over > min(clock.limit, PATIENCE)
        return self.settings.expired and (self.best is not None or late)

    @property
    def timed(self) -> bool:
        """Whether steps have shares of the time; a deterministic search is that without a limit, cut off."""
        return self.settings.deadline is not None and not self.settings.deterministic

    def share(self, part: float) -> Settings:
        """Return the settings of a step that may take a part of the time that is left, if steps are timed."""
        return self.settings.for_share(part) if self.timed else self.settings

    def is_proven(self, bound: float, gap: float = PROVEN) -> bool:
        """Whether the best pipeline so far is within a gap of a bound."""
        return self.best is not None and meets(bound, self.best.makespan, gap)

    def first(self, problem: Problem) -> float:
        """Simulate the first plan for throughput; return a lower bound as :meth:`candidates` does."""
        plan = find_first_plan(self.request, problem)
        if plan is not None:
            self.statistics["candidates"] += 1
            self._try(plan.placement.device, plan.placement.order, plan.placement.replicas)
        if self.chooses:
            return 0.0
        return (self.regime.microbatches or 1) * lower_bound(problem)

    def candidates(self) -> float:
        """Simulate the best plans for throughput.

        Returns the lower bound of the makespan: a device whose load is l is busy for l a sample, so all
        microbatches take their number times the least largest load that a plan can have.
        """
        assert self.regime.microbatches is not None
        bound = 0.0
        if not (self.devices.levels or self.expired or self.chooses):  # quick, good where memory is plenty
            with suppress(InfeasibleError, NoPlanFound):
                self.take(self.planned(THROUGHPUT, QUICKLY, without=("schedule", "replicas")))
        with suppress(NoPlanFound):
            if not self.expired:
                first = self.planned(THROUGHPUT, BY_LOAD)
                self.take(first)
                wide = first.statistics.get(ANY_DEVICES, first.bound)  # a warm start may use any devices
                bound = self.regime.microbatches * min(wide, first.bound)
        return bound

    def fill_and_drain(self, busy: float, known: float | None = None) -> float:
        """Simulate pipelines whose stages refute no shorter makespan; return a lower bound that knows paths.

        Parameters
        ----------
        busy
            The number of microbatches times a lower bound on the largest load of a stage.
        known
            A lower bound on the makespan; None in the first call, in which only one search is made where the
            time is limited.

        Returns
        -------
        float
            The bound. It is 0 if nothing is known of the schedule, or plans choose among alternatives. Where
            the ideals are too many it knows the number of stages in series alone.
        """
        from partitioner.methods.dp.equal_replicas import numbers_of  # loads numba

        if self.best is None or self.expired or self.chooses:
            return 0.0
        exact = self.request.problem(apart=True)
        assert isinstance(exact, PipelineProblem)
        return min(self._fill_and_drain(exact, count, busy, known) for count in numbers_of(exact))

    def _fill_and_drain(
        self, exact: PipelineProblem, count: int | None, busy: float, known: float | None
    ) -> float:
        """Do the same where every stage has a number of devices; None for any."""
        from partitioner.methods.dp.forms import with_replicas
        from partitioner.methods.pipeline_bound.fill_drain import FillDrainModel
        from partitioner.methods.pipeline_bound.paths import spine_of
        from partitioner.methods.pipeline_bound.series import busiest_bound, series_bound

        assert self.best is not None
        graph, brief = self.request.fitted, known is None and self.timed
        exact = with_replicas(exact, count)
        spine = spine_of(graph, exact)
        busiest = busiest_bound(exact, spine, busy / (self.regime.microbatches or 1))
        bound = max(known or 0.0, series_bound(exact, spine), busiest)
        for apart in (True, False):
            problem = exact if apart else self.request.problem()
            if self.expired or not isinstance(problem, PipelineProblem):
                break
            problem = exact if apart else with_replicas(problem, count)
            model = FillDrainModel.of(graph, problem, exact, spine, self.settings)
            for search in () if model is None else model.searches(bound, self.best.makespan):
                bound = self._narrowed(search, problem, bound)
                if search.fewer is None or brief:
                    return bound
        return bound

    def _narrowed(self, search: FillDrain, problem: PipelineProblem, bound: float) -> float:
        """Simulate the pipelines that a search finds; return its bound, or a larger one that is known."""
        assert self.best is not None
        search.bound, search.value = max(search.bound, bound), self.best.makespan
        clock, began, annealed = self.settings.clock, self.settings.clock.left, 0.0

        def look() -> None:
            nonlocal annealed
            before = clock.left
            owed = ANNEALED * (began - before) - annealed
            if owed > SLICE and self.best is not None:
                self.anneal(search.bound, owed)
                annealed += before - clock.left
                search.value = min(search.value, self.best.makespan)

        search.look = look if self.timed else None
        for stages in search.narrow():
            outcome = Outcome(problem, stages, search.value, search.bound, "heuristic")
            placement = expand(self.graph, self.devices, outcome)
            self.statistics["candidates"] += 1
            if placement and self._try(placement.device, placement.order, placement.replicas):
                search.value = self.best.makespan
        self.statistics["steps"] = self.statistics.get("steps", 0) + search.steps
        return search.bound

    def batches(self, bound: float) -> None:
        """Simulate the best plans for batches with any number of stages, unless the best so far is proven.

        Where plans choose among alternatives it is one plan with whatever number of stages is best.
        """
        limits = self.regime.constraints
        counts: list[int | None] = [limits.stages]
        if limits.stages is None and not self.chooses:
            counts += _numbers_of_stages(len(self.devices.names))
        for tried, count in enumerate(counts):
            late = self.settings.expired and (self.best is not None or count is not counts[0])
            if late or self.is_proven(bound):
                return
            with suppress(InfeasibleError, NoPlanFound):
                share = BATCHES / (len(counts) if tried else 1)
                self.take(self.planned(BATCH, share, constraints=replace(limits, stages=count)))

    def anneal(self, bound: float, seconds: float) -> None:
        """Simulate the best stages of series of annealing for some seconds, from the best pipelines.

        There are none if the makespan is close to a bound, if there is one stage or replicas, or after some
        in which nothing better was found. Inception-v3 in training, 1F1B with 8 microbatches, 60 s:
        1,223.5 for 1,252.0.
        """
        clock, end = self.settings.clock, self.settings.clock.left - seconds
        while clock.left > end and not self.is_proven(bound, CLOSE):
            best, annealing = self.best, None if self.expired else self._annealing
            if annealing is None or annealing.exhausted:
                return
            if best is None or best.replicas or len(best.order) == 1:
                return
            problem = annealing.estimates.problem
            start = StageBorders.on(self.devices, best.order, self._stages(problem, best))
            value, found = annealing.improved(start)
            if value < best.makespan * (1 - TOLERANCE):
                order = found.names(self.devices)
                self.statistics["candidates"] += 1
                self._try(self._placement(problem, found.stage, order), order, {})

    @cached_property
    def _annealing(self) -> StageAnnealing | None:
        """The annealing of stages, a step that a plan can do without; None where estimates would be wrong."""
        from partitioner.methods.virtual_stages.annealing import StageAnnealing  # loads numba

        schedule, settings = ALONE.get(self.regime.schedule or ""), self.settings
        if schedule is None or settings.deterministic or settings.compiled_enough or self.chooses:
            return None
        problem, unlike = self.request.problem(apart=True), self.devices.levels or self.devices.groups
        if unlike or problem.n > MANY or not self.graph.backward.any() or onward_edges(self.graph, problem):
            return None
        assert isinstance(problem, PipelineProblem) and problem.pipeline.microbatches is not None
        given = self.graph, problem, schedule, 1, problem.pipeline.microbatches, INPUT_SHARE
        rng = np.random.default_rng(self.asked.options["seed"])
        vary = self.regime.constraints.stages is None
        return StageAnnealing(StageEstimates(*given), lambda: self.expired, rng, vary)

    def refine(self, problem: Problem) -> None:
        """Move single supernodes over the boundaries of stages as long as the makespan falls."""
        improved = True
        while improved and self.best is not None:
            improved = False
            lead = self.best.order
            for stage in boundary_moves(problem, self._stages(problem, self.best)):
                if self.expired or self.statistics["moves"] >= MOST_MOVES:
                    return
                self.statistics["moves"] += 1
                placement = self._placement(problem, stage, lead)
                if self._try(placement, lead, self.best.replicas, self.best.alternatives):
                    self.statistics["improvements"] += 1
                    improved = True
                    break

    def _placement(self, problem: Problem, stage: Ints, order: tuple[str, ...]) -> dict[Any, str]:
        """Return the device of every node by the stages of supernodes."""
        where = stage[problem.member].tolist()
        return {node: order[i] for node, i in zip(self.graph.ids, where, strict=True)}

    def _stages(self, problem: Problem, known: Simulated) -> Ints:
        """Return the stage of every supernode of a pipeline, shape (supernodes,)."""
        number = {name: i for i, name in enumerate(known.order)}
        stage = np.zeros(problem.n, dtype=np.int64)
        stage[problem.member] = [number[known.placement[node]] for node in self.graph.ids]
        return stage

    def start_from(self, start: AnySolution) -> None:
        """Simulate the warm start; stages without an order are run in the order of their chain."""
        self.statistics["candidates"] += 1
        known = solution_of(start)
        order = known.order or evaluate(self.graph, self.devices, known.placement).shape.order
        self._try(known.placement, order, known.replicas)

    def take(self, plan: Plan) -> None:
        """Keep a plan if it is a pipeline that obeys the rules and is better than the best so far."""
        self.statistics["candidates"] += 1
        self.cut_short |= plan.stop_reason == "time_limit"
        self._try(plan.placement, plan.stages, plan.replicas, plan.alternatives)

    def _try(
        self,
        placement: Mapping[Any, str],
        order: tuple[str, ...],
        replicas: Mapping[str, tuple[str, ...]],
        alternatives: Mapping[Any, str] = NONE,
    ) -> bool:
        """Keep a pipeline if it is better than the best so far, and return whether it is."""
        regime = self.regime
        given: dict[str, Any] = {"schedule": regime.schedule, "microbatches": regime.microbatches}
        limits = regime.constraints
        solution = Solution(placement, replicas=replicas, order=order or None, alternatives=alternatives)
        evaluation = evaluate(self.graph, self.devices, solution, constraints=limits, split="chain", **given)
        if not evaluation.feasible or not order:
            return False
        timeline = simulate(self.graph, self.devices, solution, **given)
        if self.best is not None and timeline.makespan >= self.best.makespan * (1 - TOLERANCE):
            return False
        self.best = Simulated(
            placement, order, replicas, timeline.makespan, evaluation, alternatives=alternatives
        )
        return True

    def planned(
        self,
        objective: Objective,
        share: float = 0.5,
        devices: Devices | None = None,
        without: Sequence[str] = (),
        **changed: Any,
    ) -> Plan:
        """Return the plan of a step of the search.

        Parameters
        ----------
        objective
            What to plan for.
        share
            The part of the remaining time that the step may take.
        devices
            The devices, if others than those of the request.
        without
            The options of the request that are left at their defaults.
        **changed
            Further options.

        Raises
        ------
        InfeasibleError, NoPlanFound
            If there is no plan. Once any pipeline is known, there is none but that of the method.
        """
        given = {name: value for name, value in self.asked.step.items() if name not in without} | changed
        if self.settings.deadline is not None:
            given["time_limit"] = max(1e-3, self.share(share).clock.left)
        workload = self.asked.workload if devices is None else Workload(self.graph, devices)
        request = request_of(workload, objective, **given)
        return objective.answer(replace(request, fallback=self.best is None))


def _numbers_of_stages(most: int) -> list[int]:
    """Return the numbers of stages to try: all up to the most, or some of them where they are many."""
    if most <= MOST_COUNTS:
        return list(range(1, most + 1))
    return sorted({round(number) for number in np.geomspace(1, most, MOST_COUNTS)})
