"""What a change would buy: each changed question solved again, with its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from partitioner.analysis.explanations.question import PlanQuestion
from partitioner.analysis.explanations.what_ifs.changes import Change
from partitioner.analysis.explanations.wording import relative_change
from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, PartitionerError, WorkloadError
from partitioner.base.interruption import Interruption
from partitioner.methods.method import Progress
from partitioner.planning.alternatives import method_under
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan

UNLIMITED = "unlimited_memory"
LEAST = 0.1  # seconds for a change
REASONS = {
    InfeasibleError: "there is no plan",
    NoPlanFound: "no plan was found",
    OptionError: "it is refused",
}


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The answer to a changed question.

    Parameters
    ----------
    name
        What the change is asked for by; empty for the question as it is.
    words
        The change in words.
    value, bound
        Of the best plan found for the changed question; None without one.
    change
        By which fraction its value differs from that of the plan that is explained; None without one, and
        if that value is 0 and its own is not.
    plan
        The plan; None without one.
    against
        Why there is none, as a clause: nothing would change, there is no plan, or none was found; else empty.
    """

    name: str
    words: str
    value: float | None = None
    bound: float | None = None
    change: float | None = None
    plan: Plan | None = None
    against: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain data for JSON."""
        names = ("name", "words", "value", "bound", "change", "against")
        return {name: getattr(self, name) for name in names}


class WhatIfs:
    """The solver of changed questions, which share a time.

    Parameters
    ----------
    question, split, value
        The question, and the split and the value of its plan.
    clock, interruption, report
        The time of all of them, their end on request, and what is called with their progress.
    options
        Further options of :func:`partitioner.solve`: gap, seed, workers.
    """

    def __init__(
        self,
        question: PlanQuestion,
        split: str,
        value: float,
        *,
        clock: Clock,
        interruption: Interruption,
        report: Callable[[Progress], None] | None,
        options: dict[str, Any],
    ) -> None:
        self.question, self.split, self.value = question, split, value
        self.clock, self.interruption, self.report, self.options = clock, interruption, report, options

    def answers(self, changes: Sequence[Change]) -> tuple[WhatIf, ...]:
        """Return the answer to each change; each takes an equal share of the time that is left."""
        found = []
        left = sum(not change.against for change in changes)
        for change in changes:
            if change.against:
                found.append(WhatIf(change.name, change.words, against=change.against))
                continue
            seconds = None if math.isinf(self.clock.left) else max(LEAST, self.clock.left / left)
            found.append(self._answer(change, seconds))
            left -= 1
        return tuple(found)

    def _answer(self, change: Change, seconds: float | None) -> WhatIf:
        if self.interruption.asked:
            return WhatIf(change.name, change.words, against="it was not tried: the run was interrupted")
        try:
            plan = self._solved(change, seconds)
        except (WorkloadError, InfeasibleError, NoPlanFound, OptionError) as error:
            return WhatIf(change.name, change.words, against=_reason(error))
        gain = relative_change(self.value, plan.value)
        return WhatIf(change.name, change.words, plan.value, plan.bound_on_any_devices, gain, plan)

    def _solved(self, change: Change, seconds: float | None) -> Plan:
        question, report = self.question, self.report
        told = f"with {change.words}" if change.name else "as it is"
        several = question.plan.stage_of is not None  # stages on a device, of which other schedules have one
        graph = question.searched if change.graph is None else change.graph
        devices = question.devices if change.devices is None else change.devices
        options = {**question.options, **change.options, **self.options}
        return solve(
            graph,
            devices,
            question.asked.name,
            split=self.split,
            method=method_under(graph, devices, question.asked, self.split, options),
            time_limit=seconds,
            warm_start=None if several and "schedule" in change.options else question.plan,
            stop=self.interruption,
            on_progress=report and (lambda one: report(replace(one, phase=f"{told}, {one.phase}"))),
            **options,
        )


def _reason(error: PartitionerError) -> str:
    """Return why a change has no plan, in one line."""
    lead = next((words for kind, words in REASONS.items() if isinstance(error, kind)), "it is refused")
    return f"{lead}: {str(error).splitlines()[0]}"
