"""A checked request, and what a method and the evaluator are given for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError
from partitioner.base.interruption import Interruption
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import is_ordered
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.methods.expand import Placement
from partitioner.methods.explain import conflicting_constraints_of, memory_conflict
from partitioner.methods.info import MethodInfo
from partitioner.methods.method import Progress, Settings
from partitioner.methods.placing import Placer, Placing
from partitioner.methods.registry import METHODS
from partitioner.planning.alternatives import chooses
from partitioner.planning.evaluate import evaluated
from partitioner.planning.objectives import Objective
from partitioner.problem.arrays import Ints
from partitioner.problem.fit import companions, fit
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import SHARES, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.resolved_constraints import Demands, demands_of
from partitioner.workload.transfers import Transfers
from partitioner.workload.workload import Workload

HOST, DIRECT = SHARES  # the routes of transfers
ANY_PLAN = 0.999  # a gap that any plan closes


@dataclass(frozen=True, eq=False)
class Request:
    """A request for a plan, checked by :func:`partitioner.planning.options.request_of`.

    Parameters
    ----------
    workload
        The graph and the devices.
    objective, split, info
        As in :func:`partitioner.solve`, and the method chosen.
    options
        The value of every option of :func:`partitioner.solve`, defaults filled in.
    layer
        Shape (N,): layers to keep together, -1 for none; None if nodes are placed one by one.
    given
        The options that the call gave by name, without those that are parameters of their own.
    notes
        Sentences on layers, and on options that have no effect.
    clock
        The time that is left.
    interruption
        Says whether the user wants the run to end.
    report
        Called with the progress; None if nobody asks for it.
    fallback
        Whether a quick first plan may be the answer; else there is no plan but the method's.
    """

    workload: Workload
    objective: Objective
    split: str
    info: MethodInfo
    options: Mapping[str, Any] = field(default_factory=dict)
    layer: Ints | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    clock: Clock = field(default_factory=Clock)
    interruption: Interruption = field(default_factory=Interruption)
    report: Callable[[Progress], None] | None = None
    fallback: bool = True

    def __str__(self) -> str:
        return f"method {self.info.name}, objective {self.objective.name!r} and split {self.split!r}"

    @property
    def graph(self) -> Graph:
        """The graph of the workload."""
        return self.workload.graph

    @property
    def devices(self) -> Devices:
        """The devices of the workload."""
        return self.workload.devices

    @cached_property
    def regime(self) -> Regime:
        """The options of pipelines."""
        return Regime(**fields_of(Regime, self.options))

    @cached_property
    def placing(self) -> Placing:
        """The options of methods that place operators one by one."""
        return Placing(**fields_of(Placing, self.options))

    def under(self, regime: Regime, info: MethodInfo | None = None) -> Request:
        """Return the request with other options of pipelines, and by another method if one is given."""
        return replace(self, options={**self.options, **vars(regime)}, info=info or self.info)

    @property
    def settings(self) -> Settings:
        """The limits that hold for a search as a whole: gap, time, stop and progress."""
        return Settings(
            gap=self.options["gap"],
            clock=self.clock,
            interruption=self.interruption,
            report=self.report,
            started=self.clock.started,
            deterministic=self.options["deterministic"],
        )

    @property
    def step(self) -> dict[str, Any]:
        """The keywords of a request that is a step of this one: options, gap, seed, workers and stop."""
        shared = {name: self.options[name] for name in ("gap", "seed", "workers")}
        return {**self.given, **shared, "on_progress": self.report, "stop": self.interruption}

    @cached_property
    def demands(self) -> Demands:
        """The constraints, resolved for each node."""
        return demands_of(self.graph, self.devices, self.regime.constraints)

    @cached_property
    def fitted(self) -> Graph:
        """Return the graph with the times, sizes and limits that hold on the devices.

        For one sample, whose methods know transfers through host memory alone, direct transfers are such
        ones of half the cost, which is what each end pays.
        """
        scheduled, copied = self.regime.schedule is not None, self.regime.replicas > 1
        fitted = fit(self.graph, self.devices, self.demands, scheduled, copied)
        if not self._direct_sample:
            return fitted
        return replace(fitted, cost=fitted.cost * SHARES[self.devices.route])

    @property
    def _direct_sample(self) -> bool:
        return self.objective.measure is Measure.ONE_SAMPLE and self.devices.route == DIRECT

    def check_memory(self) -> None:
        """Refuse a workload whose nodes exceed the memory of all devices together, before any other work.

        Raises
        ------
        InfeasibleError
            If they do.
        """
        conflict = memory_conflict(self.fitted, self.devices)
        if conflict:
            raise InfeasibleError(conflict)

    def problem(self, apart: bool = False) -> Problem:
        """Return the problem for the method: the fitted graph, contracted as far as an optimum is kept.

        With `apart` nodes that cost nothing are not merged, see
        :class:`partitioner.problem.goal.Goal`.
        """
        devices, options, demands = self.devices, self.options, self.demands
        extended = "replicas" in self.info.features or bool(self.regime.features(devices))
        goal = Goal(
            measure=self.objective.measure,
            split=self.split,
            classes=(companions(demands), *(() if self.layer is None else (self.layer,))),
            sequence=demands.sequence,
            contiguous_cpus=options["contiguous_cpus"],
            contiguous_backward=options["contiguous_backward"],
            subgraphs=min(options["subgraphs_per_accelerator"], len(self.graph)),
            regime=self.regime,
            demands=demands if extended else None,
            transfers=self.placing.transfers if self.info.places_operators else None,
            apart=apart,
            alternatives=chooses(self.graph, self.devices, self.info),
        )
        devices = replace(devices, route=HOST) if self._direct_sample else devices
        return self.objective.contract(self.fitted, devices, goal)

    def evaluated(self, placement: Placement, subgraphs: Mapping[Any, int] | None) -> Evaluation:
        """Return the evaluation of a placement."""
        regime, terms = self.regime, self.objective.terms
        known: dict[str, Any] = {
            "subgraphs_per_accelerator": self.options["subgraphs_per_accelerator"],
            "schedule": regime.schedule,
            "microbatches": regime.microbatches,
            "transfers": self.placing.transfers,
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
        return evaluated(self.objective, self.graph, self.devices, solution, under)

    def _method_under(self, fewer: Regime) -> MethodInfo:
        """Return the method, or the automatic one if there are no longer several stages on a device."""
        if fewer.has_virtual_stages == self.regime.has_virtual_stages:
            return self.info
        return METHODS[self.objective.automatic(self.split, fewer.features(self.devices))]

    def conflicting_constraints(self, settings: Settings) -> Callable[[], tuple[str, ...]]:
        """Return a function that finds constraints of which each makes a plan possible if it is dropped."""

        def has_plan(fewer: Regime, seconds: float) -> bool:
            easier = self.under(fewer).problem()
            easy = replace(settings, gap=ANY_PLAN, clock=Clock(seconds), incumbent=None, report=None)
            return self._method_under(fewer).load_for(easier)(easier, easy).parts is not None

        return lambda: conflicting_constraints_of(self.regime, has_plan)


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call as plain data."""
    return {
        k: v.as_dict() if isinstance(v, Constraints | Transfers | Placer) else v for k, v in options.items()
    }


def fields_of(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of those options that are fields of a dataclass.

    Examples
    --------
    >>> fields_of(Regime, {"replicas": 2, "seed": 0})
    {'replicas': 2}
    """
    return {each.name: values[each.name] for each in fields(kind) if each.name in values}
