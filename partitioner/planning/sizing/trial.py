"""Trials of pools: whether a pool of some size has a plan within a limit of the time per sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from partitioner.base.argument_types import require_callable
from partitioner.base.clock import Clock
from partitioner.base.errors import (
    InfeasibleError,
    NoPlanFound,
    OptionError,
    PartitionerError,
    WorkloadError,
    shown,
)
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.base.units import MS_PER_SECOND
from partitioner.evaluation.terms import check_longest
from partitioner.methods.method import Progress
from partitioner.planning.objectives import DEFAULT, SIMULATED, objective_of
from partitioner.planning.options import check_values
from partitioner.planning.request import ANY_PLAN
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.results.rates import TOKENS, longest_time
from partitioner.results.serving import MAXIMISED
from partitioner.workload.device_validation import is_amount
from partitioner.workload.devices import Devices
from partitioner.workload.extras import TIME_UNITS
from partitioner.workload.graph import Graph
from partitioner.workload.networkx_graph import as_graph

ROUNDING = 1 + 1e-9  # of times that are compared with the limit
LEAST = 1e-3  # seconds that a trial may take


@dataclass(frozen=True, eq=False)
class SizeTrial:
    """The answer for one size of a pool.

    Parameters
    ----------
    size
        The number of devices, or the memory of a device in bytes.
    plan
        The best plan found; None if there is none.
    bound
        No plan on this pool takes less time; infinity if it is proven that the pool has no plan.
    limit
        The largest time that a plan may take; infinity without a limit.
    error
        Why there is no plan; None if there is one.
    """

    size: float
    plan: Plan | None
    bound: float
    limit: float
    error: PartitionerError | None = None

    @property
    def suffices(self) -> bool:
        """Whether the plan is within the limit."""
        return self.plan is not None and self.plan.value <= self.limit * ROUNDING

    @property
    def excluded(self) -> bool:
        """Whether it is proven that no plan on this pool is within the limit."""
        return math.isinf(self.bound) or self.bound > self.limit * ROUNDING

    def as_dict(self) -> dict[str, Any]:
        """Return size, value and bound as plain data for JSON; None stands for infinity."""
        verdict = "suffices" if self.suffices else "excluded" if self.excluded else "open"
        return {
            "size": self.size,
            "value": None if self.plan is None else self.plan.value,
            "bound": None if math.isinf(self.bound) else self.bound,
            "verdict": verdict,
        }


@dataclass(frozen=True)
class SizeTarget:
    """What the plans of a search must reach: a value of an objective, in a user's words or as a time.

    Parameters
    ----------
    objective
        As in :func:`partitioner.solve`; None for throughput, or for the makespan where `batch_seconds` is
        given.
    longest
        The largest value, in the unit of the graph's times; None for any.
    tokens_per_second, batch_seconds
        The same as a rate of tokens, or as the seconds of a batch; None where not given.
    """

    objective: str | None
    longest: float | None
    tokens_per_second: float | None = None
    batch_seconds: float | None = None

    def resolved(self, graph: Graph, options: Mapping[str, Any]) -> tuple[str, float | None]:
        """Return the objective, and its largest value in the unit of the graph's times.

        Raises
        ------
        OptionError
            If several targets are given, or the graph or the objective does not say what one of them means.
        """
        given = {
            "max_time_per_sample": self.longest,
            "tokens_per_second": self.tokens_per_second,
            "batch_seconds": self.batch_seconds,
        }
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise OptionError(f"{' and '.join(named)} say the same: give one of them")
        batch = self.batch_seconds is not None
        usual = SIMULATED.name if batch else DEFAULT
        objective = usual if self.objective is None else objective_of(self.objective, options=options).name
        if not named or self.longest is not None:
            return objective, self.longest
        (name,) = named
        value, period = given[name], objective_of(objective, options=options).period
        if not is_amount(value) or not value:
            raise OptionError(f"{name} = {shown(value)}: must be a number above 0")
        if graph.extras.time_unit not in TIME_UNITS:
            raise OptionError(f"{name} = {value:g}: the graph does not say the unit of its times (timeUnit)")
        if period != "samples" and (batch or not period):
            raise OptionError(f"{name} = {value:g}: means nothing to objective {objective!r}")
        if batch:
            return objective, value * MS_PER_SECOND / TIME_UNITS[graph.extras.time_unit]
        if TOKENS not in graph.extras.top:
            raise OptionError(f"{name} = {value:g}: the graph does not say {TOKENS}")
        samples = (options.get("microbatches") or 1) if period == "samples" else 1
        return objective, samples * longest_time(graph.extras, value)


def trials_of(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    target: SizeTarget,
    *,
    time_limit: float | None,
    on_progress: Callable[[Progress], None] | None,
    stop: StopEvent | None,
    options: Mapping[str, Any],
) -> SizeTrials:
    """Return the trials of a call, whose arguments are as for :func:`partitioner.fewest_devices`.

    Raises
    ------
    OptionError, WorkloadError
        If an argument has a value that it may not have.
    """
    require_callable(on_progress=on_progress)
    check_values(time_limit=time_limit)
    known = as_graph(graph, devices)
    return SizeTrials(
        known,
        *target.resolved(known, options),
        clock=Clock(math.inf if time_limit is None else time_limit),
        interruption=Interruption(stop),
        report=on_progress,
        options=options,
    )


class SizeTrials:
    """The trials of one search, which share its time.

    Parameters
    ----------
    graph, objective, limit
        The question: plans whose value is at most the limit, None for any value.
    clock, interruption
        The time of the search, and its end on request.
    report
        Called with the progress of each trial; None for no report.
    options
        The further options of :func:`partitioner.solve`.

    Raises
    ------
    OptionError
        If the limit is no positive number, or the objective does not exist or is maximised.
    """

    def __init__(
        self,
        graph: Graph,
        objective: str,
        limit: float | None,
        *,
        clock: Clock,
        interruption: Interruption,
        report: Callable[[Progress], None] | None,
        options: Mapping[str, Any],
    ) -> None:
        check_longest(limit)
        if MAXIMISED.get(objective_of(objective).name):
            raise OptionError(f"objective = {objective!r}: must be one whose value is a time")
        self.graph, self.objective, self.options = graph, objective, options
        self.longest, self.limit = limit, math.inf if limit is None else limit
        self.clock, self.interruption, self.report = clock, interruption, report
        self.made: list[SizeTrial] = []

    @property
    def ended(self) -> bool:
        """Whether no further trial should be made."""
        return self.clock.expired or self.interruption.asked

    def make(self, size: float, devices: Devices, words: str, best: bool = False) -> SizeTrial:
        """Look for a plan on a pool; without a limit any plan will do, unless the `best` one is asked for.

        A trial takes at most half of the time that is left.

        Raises
        ------
        OptionError
            If an option of the search is refused.
        """
        try:
            plan = self._solved(devices, words, best)
            trial = SizeTrial(size, plan, plan.bound_on_any_devices, self.limit)
        except (InfeasibleError, WorkloadError) as error:
            trial = SizeTrial(size, None, math.inf, self.limit, error)
        except NoPlanFound as error:
            trial = SizeTrial(size, None, 0.0, self.limit, error)
        self.made.append(trial)
        return trial

    def first(self, size: float, devices: Devices, words: str) -> SizeTrial:
        """Return the trial of the largest pool, which must have a plan within the limit.

        Raises
        ------
        WorkloadError, InfeasibleError, NoPlanFound
            If there is none.
        KeyboardInterrupt
            If Ctrl-C was pressed before there was a plan.
        """
        trial = self.make(size, devices, words)
        if trial.suffices:
            return trial
        if self.interruption.by_keyboard:
            raise KeyboardInterrupt
        if trial.plan is None:
            raise trial.error or NoPlanFound(f"no plan found on {words}")
        least = f"{'at least ' if trial.bound < trial.plan.value else ''}{trial.bound:.6g}"
        text = f"max_time_per_sample = {self.limit:g}: the least time per sample on {words} is {least}"
        raise InfeasibleError(text) if trial.excluded else NoPlanFound(text)

    def _solved(self, devices: Devices, words: str, best: bool) -> Plan:
        left, report = self.clock.left, self.report
        loose = {"gap": ANY_PLAN} if math.isinf(self.limit) and not best else {}
        return solve(
            self.graph,
            devices,
            self.objective,
            time_limit=None if math.isinf(left) else max(LEAST, left / 2),
            stop=self.interruption,
            on_progress=report and (lambda told: report(replace(told, phase=f"{words}, {told.phase}"))),
            **{**self.options, **loose},
        )
