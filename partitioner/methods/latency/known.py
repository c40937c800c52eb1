"""What a run for latency knows so far."""

from __future__ import annotations

from partitioner.methods.latency.layout import SubgraphLayout, outcome_of
from partitioner.methods.latency.program.scheduling import ScheduleTask
from partitioner.methods.latency.timing import latency, obeys
from partitioner.methods.method import Outcome
from partitioner.methods.solvers.search import Search


class LayoutSearch(Search[SubgraphLayout]):
    """A search for a layout."""

    def plan_value(self, solution: SubgraphLayout) -> float:
        """Return the latency; infinity if the layout breaks a rule."""
        return latency(self.problem, solution) if obeys(self.problem, solution) else float("inf")

    def task(self) -> ScheduleTask:
        """Return the layouts that are still of interest."""
        return ScheduleTask(self.problem, self.target, self.bound, self.best)

    def found(self, stop_reason: str) -> Outcome:
        """Return the layout."""
        return outcome_of(self.problem, self.best, self.value, self.bound, stop_reason)
