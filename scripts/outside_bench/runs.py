"""One run: an instance, and how its value and its bound compare with what is known of its optimum."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import partitioner as pt
from outside_bench.cases import Case
from partitioner.base.clock import METER

ROUNDING = 1e-9


@dataclass(frozen=True)
class Run:
    """The result for one instance; without a plan `value` and `bound` are not numbers.

    Parameters
    ----------
    table, name, low, high
        As those of the instance.
    value, bound
        Of the plan.
    seconds
        Of the call, without compiling.
    stop_reason
        Why the run ended.
    failure
        Why there is no plan.
    """

    table: str
    name: str
    low: float
    high: float
    value: float = math.nan
    bound: float = math.nan
    seconds: float = math.nan
    stop_reason: str = ""
    failure: str = ""

    @property
    def proven(self) -> bool:
        """Whether the bound proves the value."""
        return self.stop_reason == "optimal"

    @property
    def excess(self) -> float:
        """How far the value is above the best known one, as a fraction of that."""
        return self.value / self.high - 1 if self.high else math.nan

    @property
    def gap(self) -> float:
        """How far the bound is below the value, as a fraction of the value."""
        return 1 - self.bound / self.value if self.value else 0.0

    @property
    def reached(self) -> bool:
        """Whether the value is the best known one or a better one."""
        return self.value <= self.high * (1 + ROUNDING)

    @property
    def wrong(self) -> bool:
        """Whether the value is below, or the bound above, what the optimum can be."""
        return self.value < self.low * (1 - ROUNDING) or self.bound > self.high * (1 + ROUNDING)


def run(case: Case, limit: float) -> Run:
    """Solve an instance in at most `limit` seconds.

    Raises
    ------
    KeyboardInterrupt
        If the run was interrupted, with a plan or without.
    """
    known = case.table, case.name, case.low, case.high
    workload = case.load()
    began, compiled = time.perf_counter(), METER.seconds
    try:
        plan = pt.solve(workload.graph, workload.devices, time_limit=limit, **case.arguments)
    except pt.PartitionerError as error:
        return Run(*known, failure=str(error))
    if plan.stop_reason == "interrupted":
        raise KeyboardInterrupt
    seconds = time.perf_counter() - began - (METER.seconds - compiled)
    stop = "optimal" if plan.status == "optimal" else plan.stop_reason
    return Run(*known, plan.value, plan.bound, seconds, stop)
