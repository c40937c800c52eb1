"""Plans for kinds of pipeline within a limit of time: one of each kind, then better ones of the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from partitioner.base.clock import Clock
from partitioner.base.errors import PartitionerError
from partitioner.base.interruption import Interruption
from partitioner.methods.method import Progress
from partitioner.planning.comparison.bounds import least_makespan
from partitioner.planning.comparison.recipes import Recipe
from partitioner.planning.comparison.recommended_pipeline import RecommendedPipeline, simulated_choice
from partitioner.planning.comparison.trial import LATE, Trial
from partitioner.results.plan import Plan
from partitioner.schedule.kinds.registry import kind_of
from partitioner.schedule.simulation import INPUT_SHARE
from partitioner.workload.alternatives import Alternatives
from partitioner.workload.constraints import Constraints
from partitioner.workload.workload import Workload

FIRST_ROUND = 0.6  # of the time, for a plan of each kind
LEAST = 0.05  # seconds for a plan
MORE = 1.5  # times the first time, below which a second one is not worth it
NO_TIME = "not planned, since the time was over"
INTERRUPTED = "not planned, since the run was interrupted"
ENDED = ("optimal", "gap", "heuristic")  # reasons of a search that has ended by itself
OPEN = ("", LATE, NO_TIME)  # what more time may change
Group = list[Trial]  # trials that share a plan


class PipelineTrials:
    """Plans for kinds of pipeline, and their simulations.

    Parameters
    ----------
    workload, microbatches, constraints, seed
        What is planned.
    clock
        The time for all of it.
    interruption
        Says whether the user wants the run to end.
    report
        Called with the progress; None if nobody asks for it.
    """

    def __init__(
        self,
        workload: Workload,
        microbatches: int,
        constraints: Constraints,
        seed: int,
        clock: Clock,
        interruption: Interruption,
        report: Callable[[Progress], None] | None,
    ) -> None:
        self.workload, self.microbatches, self.constraints = workload, microbatches, constraints
        self.options = {"seed": seed, "stop": interruption, "constraints": constraints}
        self.clock, self.interruption, self.report = clock, interruption, report
        self.plans: dict[Any, Plan] = {}
        self.given: dict[Any, float] = {}
        self.choices: dict[Trial, RecommendedPipeline] = {}
        self.least: dict[tuple[bool, float], float] = {}

    def run(self, trials: Sequence[Trial]) -> list[RecommendedPipeline]:
        """Plan each kind in a part of the time, then again the best of each schedule in what is left."""
        groups: dict[Any, Group] = {}
        for trial in trials:
            groups.setdefault(trial.key, []).append(trial)
        kept = (1 - FIRST_ROUND) * self.clock.limit
        for number, group in enumerate(groups.values()):
            self._plan(group, (self.clock.left - kept) / (len(groups) - number))
        again = list(self._worth_more_time())
        for number, key in enumerate(again):
            seconds = self.clock.left / (len(again) - number)
            if seconds > MORE * self.given[key]:
                self._plan(groups[key], seconds)
        return list(self.choices.values())

    def _worth_more_time(self) -> Iterator[Any]:
        """Yield the key of the best plan of each schedule, or of all that may exist if there is none.

        Schedules without a plan come last. A key is yielded once, and not if its search has ended by itself.
        """
        by_schedule: dict[str, list[Trial]] = {}
        for trial, choice in self.choices.items():
            if choice.against in OPEN:
                by_schedule.setdefault(choice.schedule, []).append(trial)
        ranked = [sorted(trials, key=self._rank) for trials in by_schedule.values()]
        ranked.sort(key=lambda trials: self._rank(trials[0]))
        wanted = [
            trial
            for trials in ranked
            for trial in (trials if self.choices[trials[0]].against else trials[:1])
            if trial.key not in self.plans or self._is_open(trial)
        ]
        yield from dict.fromkeys(trial.key for trial in wanted)

    def _is_open(self, trial: Trial) -> bool:
        """Whether more time may lead to a better plan."""
        return self.plans[trial.key].stop_reason not in ENDED

    def _rank(self, trial: Trial) -> tuple[bool, float, float]:
        return self.choices[trial].rank

    def _plan(self, group: Group, seconds: float) -> None:
        """Plan once for trials that share a plan, and keep of each what is better than before."""
        self.given[group[0].key] = seconds = max(seconds, LEAST)
        plan = self._planned(group[0], seconds)
        if isinstance(plan, Plan):
            self.plans[group[0].key] = plan
        for trial in group:
            found = self._simulated(trial, plan)
            known = self.choices.get(trial)
            if known is None or found.against != NO_TIME:
                self.choices[trial] = found if known is None else known.better(found)

    def _planned(self, trial: Trial, seconds: float) -> Plan | str:
        """Return the plan for one copy, found in the time given, or why there is none."""
        if self.interruption.asked or self.clock.expired:
            return INTERRUPTED if self.interruption.asked else NO_TIME
        start = {"warm_start": self.plans[trial.key]} if trial.takes_start and trial.key in self.plans else {}
        options = {**self.options, **start, "time_limit": seconds, "on_progress": self._reporter(trial)}
        return trial.planned(self.workload, self.microbatches, options)

    def _reporter(self, trial: Trial) -> Callable[[Progress], None] | None:
        """Return a callback that reports the progress of a plan under the name of its trial."""
        report = self.report
        if report is None:
            return None
        return lambda progress: report(replace(progress, phase=f"{trial}: {progress.phase}"))

    def _simulated(self, trial: Trial, plan: Plan | str) -> RecommendedPipeline:
        """Return the choice of a plan; that there is none, or its schedule refuses it, is a choice, too."""
        if isinstance(plan, str):
            return RecommendedPipeline(*trial, against=plan)
        try:
            least = self._least_makespan(trial.recipe)
            return simulated_choice(self.workload, *trial, plan, self.microbatches, self.constraints, least)
        except PartitionerError as error:
            return RecommendedPipeline(*trial, against=str(error))

    def _least_makespan(self, recipe: Recipe) -> float:
        """Return a lower bound of the makespan of all pipelines under the schedule of a recipe."""
        graph, share = self.workload.graph, INPUT_SHARE if kind_of(recipe.schedule).halves else 1.0
        if (recipe.ways, share) not in self.least:
            graph = graph if recipe.ways else replace(graph, alternatives=Alternatives())
            found = least_makespan(graph, self.workload.devices, self.microbatches, share)
            self.least[recipe.ways, share] = found
        return self.least[recipe.ways, share]
