"""A pipeline of a recommendation, planned and simulated."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from partitioner.evaluation.solution import Solution
from partitioner.planning.comparison.copies import Spread, with_copies
from partitioner.planning.comparison.ranked import bubble_share, fullest_device
from partitioner.planning.comparison.recipes import Recipe
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import SIMULATED
from partitioner.results.by_stage import stage_loads
from partitioner.results.plan import Plan
from partitioner.results.timeline_table import rates_of_timeline
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
    def rank(self) -> tuple[bool, float, float]:
        """Pipelines in rising order of this: those that can be used first, the fastest first."""
        return bool(self.against), self.makespan, self.full

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

    @property
    def devices(self) -> int:
        """How many devices are in use."""
        return 0 if self.plan is None else sum(load.nodes > 0 for load in self.plan.devices)

    def better(self, other: RecommendedPipeline) -> RecommendedPipeline:
        """Return the better one of this and another pipeline of its kind, with the larger bound of both."""
        if self.plan is None or other.plan is None:
            return self if self.plan else other
        best = min(self, other, key=lambda one: one.rank)
        assert best.plan is not None
        bound = min(max(self.plan.bound, other.plan.bound), best.makespan)
        return replace(best, plan=replace(best.plan, bound=bound))

    @property
    def ways(self) -> dict[str, int]:
        """How many nodes run by which alternative, the most frequent one first."""
        return dict(Counter(self.plan.alternatives.values()).most_common()) if self.plan else {}

    def as_dict(self) -> dict[str, Any]:
        """Return the pipeline and its figures as plain data."""
        record: dict[str, Any] = {"schedule": self.schedule, "copies": self.copies, "against": self.against}
        if self.timeline is None or self.plan is None:
            return record
        fullest = fullest_device(self.timeline)
        return record | {
            **({"alternatives": self.ways} if self.ways else {}),
            "stages": len(self.plan.stages),
            "devices": self.devices,
            "makespan": self.makespan,
            "bound": self.plan.bound,
            "time_per_sample": self.timeline.time_per_sample,
            "bubble": bubble_share(self.timeline),
            "fullest_device": self.timeline.devices[fullest],
            "peak_memory": float(self.timeline.peak_memory[fullest]),
            **({"rates": dict(self.plan.rates)} if self.plan.rates else {}),
        }


def simulated_choice(
    workload: Workload,
    recipe: Recipe,
    spread: Spread,
    plan: Plan,
    microbatches: int,
    constraints: Constraints,
    least: float,
) -> RecommendedPipeline:
    """Return the choice of a plan for the devices of one copy, simulated on all devices.

    The memory of every device is checked pass by pass, and for several copies all rules once more. `least` is
    a lower bound of the makespan of all pipelines under the schedule. A plan for throughput bounds the
    largest load: a device whose load is l is busy for l a sample, and of r copies one takes at least the r-th
    part of the samples.
    """
    loads, violations = plan.devices, tuple[str, ...]()
    solution: Solution = plan.record
    if spread.copies > 1:
        solution = with_copies(plan, workload.devices, spread.copies)
        given: dict[str, Any] = {"schedule": recipe.planned, "microbatches": microbatches}
        shape: dict[str, Any] = {"split": "chain", "constraints": constraints}
        judged = evaluate(workload.graph, workload.devices, solution, **given, **shape)
        loads, violations = judged.loads, judged.violations
    samples = -(-microbatches // spread.copies)
    planned = plan.bound * (samples if recipe.ways else 1) if recipe.planned == recipe.schedule else 0.0
    timeline = simulate(workload.graph, workload.devices, solution, recipe.schedule, microbatches)
    bubbles = dict(zip(timeline.devices, timeline.bubble.tolist(), strict=True))
    order = solution.order or ()
    found = replace(
        plan,
        objective=SIMULATED.name,
        value=timeline.makespan,
        bound=min(max(least, planned), timeline.makespan),
        status=plan.status if recipe.exact and spread.copies == 1 else "feasible",
        devices=loads,
        stages=order,
        placement=solution.placement,
        replicas=solution.replicas,
        hardware=workload.devices,
        workload_sha256=workload.sha256,
        options={**plan.options, "schedule": recipe.schedule, "microbatches": microbatches},
        rates=rates_of_timeline(timeline, workload.graph.extras),
        by_stage=stage_loads(
            workload.graph,
            solution.placement,
            loads,
            order,
            solution.replicas,
            bubbles,
            plan.stage_of,
            alternatives=solution.alternatives,
        ),
    )
    return RecommendedPipeline(recipe, spread, found, timeline, _against(timeline, violations))


def _against(timeline: Timeline, violations: tuple[str, ...]) -> str:
    """Return the first rule that is broken, or that the memory does not suffice; empty if all is well."""
    if violations:
        return violations[0]
    if timeline.fits.all():
        return ""
    fullest = fullest_device(timeline)
    peak, limit = timeline.peak_memory[fullest], timeline.memory_limit[fullest]
    return f"{timeline.devices[fullest]} would hold {peak / limit:.0%} of its memory"
