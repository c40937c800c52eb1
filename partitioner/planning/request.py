"""A checked request, and what a method and the evaluator are given for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import is_ordered
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.methods.expand import Placement
from partitioner.methods.explain import conflicting_constraints_of, memory_conflict
from partitioner.methods.info import MethodInfo
from partitioner.methods.method import Settings
from partitioner.methods.placing import Placer
from partitioner.methods.registry import METHODS
from partitioner.planning.evaluate import evaluated
from partitioner.planning.objectives import Objective
from partitioner.planning.options import Options
from partitioner.problem.arrays import Ints
from partitioner.problem.contract import Goal
from partitioner.problem.fit import companions, fit
from partitioner.problem.pipeline import Extension
from partitioner.problem.problem import Problem
from partitioner.workload.constraints import Constraints
from partitioner.workload.graph import Graph
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.resolved_constraints import Demands, demands_of
from partitioner.workload.transfers import Transfers
from partitioner.workload.workload import Workload

ANY_PLAN = 0.999  # a gap that any plan closes


@dataclass(frozen=True, eq=False)
class Request:
    """A request for a plan, checked.

    Parameters
    ----------
    workload
        The graph and the devices.
    objective, split, info
        As in :func:`partitioner.solve`, and the method chosen.
    options
        The options of the call.
    layer
        Shape (N,): layers to keep together, -1 for none; None if nodes are placed one by one.
    """

    workload: Workload
    objective: Objective
    split: str
    info: MethodInfo
    options: Options
    layer: Ints | None = None

    @cached_property
    def demands(self) -> Demands:
        """The constraints, resolved for each node."""
        return demands_of(self.workload.graph, self.workload.devices, self.options.regime.constraints)

    @cached_property
    def fitted(self) -> Graph:
        """Return the graph with the times, sizes and limits that hold on the devices."""
        by_schedule = self.options.regime.schedule is not None
        return fit(self.workload.graph, self.workload.devices, self.demands, by_schedule)

    def check_memory(self) -> None:
        """Refuse a workload whose nodes exceed the memory of all devices together, before any other work.

        Raises
        ------
        InfeasibleError
            If they do.
        """
        conflict = memory_conflict(self.fitted, self.workload.devices)
        if conflict:
            raise InfeasibleError(conflict)

    def problem(self, apart: bool = False) -> Problem:
        """Return the problem for the method: the fitted graph, contracted as far as an optimum is kept.

        With `apart` nodes that cost nothing are not merged, see
        :class:`partitioner.problem.contract.Goal`.
        """
        devices, options, demands = self.workload.devices, self.options, self.demands
        extended = "replicas" in self.info.features or bool(options.regime.features(devices))
        goal = Goal(
            measure=self.objective.measure,
            split=self.split,
            classes=(companions(demands), *(() if self.layer is None else (self.layer,))),
            sequence=demands.sequence,
            contiguous_cpus=options["contiguous_cpus"],
            contiguous_backward=options["contiguous_backward"],
            subgraphs=min(options["subgraphs_per_accelerator"], len(self.workload.graph)),
            extension=Extension(options.regime, demands) if extended else None,
            transfers=options.placing.transfers if self.info.places_operators else None,
            apart=apart,
            alternatives="alternatives" in self.info.features,
        )
        return self.objective.contract(self.fitted, devices, goal)

    def evaluated(self, placement: Placement, subgraphs: Mapping[Any, int] | None) -> Evaluation:
        """Return the evaluation of a placement."""
        regime, terms = self.options.regime, self.objective.terms
        known: dict[str, Any] = {
            "subgraphs_per_accelerator": self.options["subgraphs_per_accelerator"],
            "schedule": regime.schedule,
            "microbatches": regime.microbatches,
            "transfers": self.options.placing.transfers,
        }
        solution = Solution(
            placement.device,
            replicas=placement.replicas,
            order=placement.order if is_ordered(self.split) and "order" in terms else None,
            subgraphs=subgraphs,
            execution_order=placement.sequence if "execution_order" in terms else None,
            stage_of=placement.stage_of,
            alternatives=placement.alternatives,
        )
        under = Terms(
            constraints=regime.constraints,
            split=self.split,
            **{name: value for name, value in known.items() if name in terms},
        )
        return evaluated(self.objective, self.workload.graph, self.workload.devices, solution, under)

    def _method_under(self, fewer: Regime) -> MethodInfo:
        """Return the method, or the automatic one if there are no longer several stages on a device."""
        if fewer.has_virtual_stages == self.options.regime.has_virtual_stages:
            return self.info
        return METHODS[self.objective.automatic(self.split, fewer.features(self.workload.devices))]

    def conflicting_constraints(self, settings: Settings) -> Callable[[], tuple[str, ...]]:
        """Return a function that finds constraints of which each makes a plan possible if it is dropped."""

        def has_plan(fewer: Regime, seconds: float) -> bool:
            options = Options({**self.options.values, **vars(fewer)})
            easier = replace(self, options=options).problem()
            easy = replace(settings, gap=ANY_PLAN, clock=Clock(seconds), incumbent=None, report=None)
            return self._method_under(fewer).load_for(easier)(easier, easy).parts is not None

        return lambda: conflicting_constraints_of(self.options.regime, has_plan)


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call as plain data."""
    return {
        k: v.as_dict() if isinstance(v, Constraints | Transfers | Placer) else v for k, v in options.items()
    }
