"""What a run for latency knows so far."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.methods.latency.layout import SubgraphLayout, outcome_of
from partitioner.methods.latency.program.scheduling import ScheduleTask
from partitioner.methods.latency.timing import latency, obeys
from partitioner.methods.method import Outcome
from partitioner.methods.solvers.search import Search
from partitioner.problem.variants import SampleProblem


@dataclass(eq=False)
class LayoutSearch(Search[SubgraphLayout]):
    """A search for a layout."""

    problem: SampleProblem

    def plan_value(self, solution: SubgraphLayout) -> float:
        """The latency; infinity if the layout breaks a rule."""
        return latency(self.problem, solution) if obeys(self.problem, solution) else float("inf")

    def task(self) -> ScheduleTask:
        """The layouts that are still of interest."""
        return ScheduleTask(self.problem, self.target, self.bound, self.best)

    def found(self, stop_reason: str) -> Outcome:
        """The layout."""
        return outcome_of(self.problem, self.best, self.value, self.bound, stop_reason)
