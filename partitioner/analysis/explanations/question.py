"""The question that a plan answers: what was asked for, and how to evaluate and to ask it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from partitioner.base.argument_types import require_mapping
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import is_ordered
from partitioner.evaluation.solution import AnySolution, PlanRecord, Solution, solution_of
from partitioner.evaluation.time_parts import parts_of_value
from partitioner.formats.plan_record import evaluation_arguments
from partitioner.methods.method import ANY_DEVICES
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import DEFAULT, SIMULATED, THROUGHPUT, Objective, objective_of
from partitioner.planning.options import default_options
from partitioner.results.serving import MAXIMISED
from partitioner.schedule import simulate
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Graph, NodeId

LONGEST = "max_time_per_sample"  # what `max_slowdown` came to is among the statistics of a plan
NOT_KEPT = ("placer",)  # options that a plan holds in another form than a call gives them


@dataclass(frozen=True, eq=False)
class PlanQuestion:
    """A plan, with the question that it answers.

    Parameters
    ----------
    graph, devices
        The workload.
    searched
        The graph in which plans are looked for: without the copies that the plan has of operators.
    plan
        The solution, with what is known of its call.
    asked, evaluated_as
        The objective of the call, and the one that the loads are evaluated for: throughput for pipelines
        whose makespan is simulated, else the same.
    terms
        Further arguments of :func:`partitioner.evaluate` for the plan.
    options
        The options of the call, without those that say how long and by which method to search.
    """

    graph: Graph
    devices: Devices
    searched: Graph
    plan: PlanRecord
    asked: Objective
    evaluated_as: Objective
    terms: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def maximised(self) -> bool:
        """Whether larger values are better."""
        return MAXIMISED.get(self.asked.name, False)

    def better(self, value: float, other: float, tolerance: float = 0.0) -> bool:
        """Whether a value is better than another one, by more than a fraction of that."""
        if self.maximised:
            return value > other * (1 + tolerance)
        return value < other * (1 - tolerance)

    @property
    def simulated(self) -> bool:
        """Whether the value is a simulated makespan."""
        return self.asked is not self.evaluated_as

    @property
    def bound(self) -> float | None:
        """The bound for every choice of devices; None if it is not known for this graph and these devices."""
        plan, bound = self.plan, self.plan.bound
        known = plan.hardware in (None, self.devices) and not plan.foreign(self.graph, self.devices)
        if not known or bound is None:
            return None
        wide = plan.statistics.get(ANY_DEVICES)
        return min(bound, wide) if isinstance(wide, int | float) else bound

    def evaluation(self, placement: Mapping[NodeId, str] | None = None) -> Evaluation:
        """Return the evaluation of the plan, or of another placement under the same terms.

        Raises
        ------
        WorkloadError
            If the placement leaves a stage of the plan without a node.
        """
        placement = self.plan.placement if placement is None else placement
        return evaluate(self.graph, self.devices, placement, self.evaluated_as.name, **self.terms)

    def value(self, evaluation: Evaluation) -> float:
        """Return the value of the plan for the objective that was asked for."""
        if not self.simulated:
            return evaluation.value
        return simulate(self.graph, self.devices, self.plan, **self.run).makespan

    def parts(self, evaluation: Evaluation, value: float) -> dict[str, float]:
        """Return what the value of the plan is made of; they add up to it."""
        if not self.simulated:
            return dict(evaluation.parts)
        return parts_of_value(evaluation.parts, self.options.get("microbatches") or 1, value)

    @property
    def run(self) -> dict[str, Any]:
        """The schedule and the number of microbatches of the call."""
        return {name: self.options.get(name) for name in ("schedule", "microbatches")}

    def split(self, evaluation: Evaluation) -> str:
        """Return the split of the call; for a placement the least free one that contains it."""
        return self.plan.split or self.asked.freer(evaluation.shape.name)

    def order(self, evaluation: Evaluation) -> tuple[str, ...]:
        """Return the device of every stage, first to last; empty if the split has no stages."""
        if not is_ordered(self.split(evaluation)):
            return ()
        return tuple(self.plan.order or evaluation.shape.order)

    def on(self, device: str) -> Bools:
        """Return which nodes are placed on a device, shape (n,)."""
        return np.array([self.plan.placement[node] == device for node in self.graph.ids])


def question_of(graph: Graph, devices: Devices | None, plan: AnySolution) -> PlanQuestion:
    """Return a plan with its question; a placement without one is taken as a plan for throughput.

    Raises
    ------
    WorkloadError
        If the plan is made for another graph, or no devices are given and the plan has none.
    """
    found = solution_of(plan)
    if not isinstance(found, PlanRecord):
        found = PlanRecord(**{entry.name: getattr(found, entry.name) for entry in fields(Solution)})
    require_mapping("placement", found.placement, "must be a plan, or a mapping from node id to device name")
    devices = found.devices(devices)
    searched, graph = found.trained(graph, copies=False), found.trained(graph)
    found.check_graph(graph, devices, strict=False)
    asked = objective_of(found.objective or DEFAULT, options=found.options)
    judged = THROUGHPUT if asked is SIMULATED else asked
    longest = found.statistics.get(LONGEST) if LONGEST in judged.terms else None
    terms = evaluation_arguments(found, graph, judged.terms, {LONGEST: longest})
    known = {name: found.options[name] for name in default_options() if name in found.options}
    known |= {name: terms[name] for name in ("constraints", "transfers") if name in terms}
    known = {name: value for name, value in known.items() if name not in NOT_KEPT}
    return PlanQuestion(graph, devices, searched, found, asked, judged, terms, known)
