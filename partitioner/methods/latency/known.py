"""The state of a run for latency: its best layout and its bound."""

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
    """A search whose solutions are layouts."""

    problem: SampleProblem

    def plan_value(self, solution: SubgraphLayout) -> float:
        """Return the latency; infinity if the layout breaks a rule."""
        return latency(self.problem, solution) if obeys(self.problem, solution) else float("inf")

    def task(self) -> ScheduleTask:
        """Return the task of finding a layout with a latency of at most `target`."""
        return ScheduleTask(self.problem, self.target, self.bound, self.best)

    def found(self, stop_reason: str) -> Outcome:
        """Return the outcome with the best layout, its latency and the bound."""
        return outcome_of(self.problem, self.best, self.value, self.bound, stop_reason)
