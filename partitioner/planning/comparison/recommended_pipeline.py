"""A pipeline of a recommendation, planned and simulated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from partitioner.planning.comparison.copies import Spread, with_copies
from partitioner.planning.comparison.ranked import bubble_share, fullest_device
from partitioner.planning.comparison.recipes import Recipe
from partitioner.planning.evaluate import evaluate
from partitioner.results.by_stage import stage_loads
from partitioner.results.plan import Plan
from partitioner.schedule import Timeline, simulate
from partitioner.workload.constraints import Constraints
from partitioner.workload.workload import Workload


@dataclass(frozen=True, eq=False)
class RecommendedPipeline:
    """A kind of pipeline, and the best plan of it that was found.

    Parameters
    ----------
    recipe, spread
        The kind of pipeline, and how many devices hold each stage.
    plan, timeline
        The plan for all devices, and its simulation; None if there is no plan.
    against
        Why it cannot be used, in words; empty if it can.
    """

    recipe: Recipe
    spread: Spread
    plan: Plan | None = None
    timeline: Timeline | None = None
    against: str = ""

    @property
    def schedule(self) -> str:
        """The schedule, and how many stages each device has where that is chosen."""
        return self.recipe.title

    @property
    def makespan(self) -> float:
        """The simulated time of all microbatches; infinity without a plan."""
        return math.inf if self.timeline is None else self.timeline.makespan

    @property
    def full(self) -> float:
        """The memory of the device nearest to its limit, as a share of it; without limits its amount."""
        if self.timeline is None:
            return math.inf
        fullest = fullest_device(self.timeline)
        peak, limit = self.timeline.peak_memory[fullest], self.timeline.memory_limit[fullest]
        return float(peak / limit) if 0 < limit < math.inf else float(peak)

    @property
    def copies(self) -> str:
        """How many copies of each stage there are: a number, or a range such as ``"1-4"``."""
        if self.plan is None:
            return str(self.spread)
        counts = {stage.copies for stage in self.plan.by_stage}
        return "-".join(map(str, sorted({min(counts), max(counts)})))

    def as_dict(self) -> dict[str, Any]:
        """Return the pipeline and its figures as plain data."""
        record: dict[str, Any] = {"schedule": self.schedule, "copies": self.copies, "against": self.against}
        if self.timeline is None or self.plan is None:
            return record
        fullest = fullest_device(self.timeline)
        return record | {
            "stages": len(self.plan.stages),
            "devices": sum(map(len, self.timeline.groups)),
            "makespan": self.makespan,
            "bound": self.plan.bound,
            "time_per_sample": self.timeline.time_per_sample,
            "bubble": bubble_share(self.timeline),
            "fullest_device": self.timeline.devices[fullest],
            "peak_memory": float(self.timeline.peak_memory[fullest]),
        }


def simulated_choice(
    workload: Workload,
    recipe: Recipe,
    spread: Spread,
    plan: Plan,
    microbatches: int,
    constraints: Constraints,
) -> RecommendedPipeline:
    """Return the choice of a plan for the devices of one copy, simulated on all devices.

    The memory of every device is checked pass by pass, and for several copies all rules once more.
    """
    violations: tuple[str, ...] = ()
    if spread.copies > 1:
        plan, violations = _copied(workload, recipe, spread, plan, microbatches, constraints)
    timeline = simulate(workload.graph, workload.devices, plan, recipe.schedule, microbatches)
    bound = min(plan.bound, timeline.makespan) if recipe.bounded else 0.0
    found = replace(
        plan,
        value=timeline.makespan,
        bound=bound,
        status=plan.status if recipe.bounded and spread.copies == 1 else "feasible",
        options={**plan.options, "schedule": recipe.schedule, "microbatches": microbatches},
    )
    return RecommendedPipeline(recipe, spread, found, timeline, _against(timeline, violations))


def _copied(
    workload: Workload,
    recipe: Recipe,
    spread: Spread,
    plan: Plan,
    microbatches: int,
    constraints: Constraints,
) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan for all copies, and the rules that it breaks."""
    solution = with_copies(plan, workload.devices, spread.copies)
    order = solution.order or ()
    evaluation = evaluate(
        workload.graph,
        workload.devices,
        solution.placement,
        constraints=constraints,
        split="chain",
        schedule=recipe.planned,
        microbatches=microbatches,
        replicas=solution.replicas or None,
        order=order,
        alternatives=solution.alternatives or None,
    )
    found = replace(
        plan,
        devices=evaluation.loads,
        stages=order,
        placement=solution.placement,
        replicas=solution.replicas,
        hardware=workload.devices,
        workload_sha256=workload.sha256,
        by_stage=stage_loads(
            workload.graph,
            solution.placement,
            evaluation.loads,
            order,
            solution.replicas,
            alternatives=solution.alternatives,
        ),
    )
    return found, evaluation.violations


def _against(timeline: Timeline, violations: tuple[str, ...]) -> str:
    """Return the first rule that is broken, or that the memory does not suffice; empty if all is well."""
    if violations:
        return violations[0]
    if timeline.fits.all():
        return ""
    fullest = fullest_device(timeline)
    peak, limit = timeline.peak_memory[fullest], timeline.memory_limit[fullest]
    return f"{timeline.devices[fullest]} would hold {peak / limit:.0%} of its memory"
