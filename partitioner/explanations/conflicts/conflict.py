"""The public function `conflicting_demands`: the smallest set of demands that rules out every plan."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import networkx as nx
from rich.text import Text

from partitioner.base.argument_types import require_callable, require_type
from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, WorkloadError, shown
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.evaluation.text.tables import render
from partitioner.explanations.conflicts.demands import Demanded, NamedDemand, demands_in, without_links
from partitioner.explanations.conflicts.remedies import remedies_of
from partitioner.explanations.conflicts.smallest import smallest_conflict
from partitioner.explanations.wording import listed
from partitioner.methods.method import Progress
from partitioner.planning.options import check_values
from partitioner.planning.request import ANY_PLAN
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.networkx_graph import from_networkx

TIME_LIMIT = 60.0  # seconds for all attempts, by default
SHARE = 0.1  # of the time that is left, for an attempt


@dataclass(frozen=True, eq=False)
class Conflict:
    """The smallest set of demands that no plan obeys all of.

    Parameters
    ----------
    demands
        The demands in words; empty if they leave a plan.
    smallest
        Whether it is proven that no smaller set rules out every plan.
    remedies
        For memory and numbers of devices among them, how much of it alone would leave a plan, as sentences.
    plan
        A plan that obeys all demands, None if there is none.
    """

    demands: tuple[str, ...]
    smallest: bool
    remedies: tuple[str, ...]
    plan: Plan | None = None

    def __repr__(self) -> str:
        return f"<Conflict: {len(self.demands)} demands{', the smallest set' if self.smallest else ''}>"

    def sentences(self) -> list[str]:
        """Return what conflicts, and what would leave a plan, as sentences."""
        if self.plan is not None:
            return ["The demands do not conflict: there is a plan that obeys all of them."]
        if not self.demands:
            return ["No plan exists even without these demands: classes of nodes or their kinds rule it out."]
        lead = (
            "This demand alone rules" if len(self.demands) == 1 else f"These {len(self.demands)} demands rule"
        )
        size = "no smaller set of demands does" if self.smallest else "a smaller set may do so, too"
        return [f"{lead} out every plan; {size}: {listed(self.demands)}.", *self.remedies]

    def summary(self, width: int | None = None) -> str:
        """Return the sentences in lines of at most `width` columns."""
        return render([Text(text) for text in self.sentences()], width)

    def to_json(self) -> str:
        """Return the demands as one JSON object."""
        record = {"feasible": self.plan is not None, "demands": list(self.demands)}
        return json.dumps(record | {"smallest": self.smallest, "remedies": list(self.remedies)}, indent=1)


def conflicting_demands(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    objective: str = "throughput",
    *,
    time_limit: float | None = TIME_LIMIT,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
    **options: Any,
) -> Conflict:
    """Find the smallest set of demands that rules out every plan of a question.

    Demands are the memory and the number of the devices of each kind, every constraint, the schedule, and
    that layers stay together. Without the number of devices of a kind, a plan need not use all devices. The
    split, classes of nodes and the kinds that nodes may run on are taken as
    given. The links between devices and the time limit rule out no plan.

    Parameters
    ----------
    graph, devices, objective
        As for :func:`partitioner.solve`.
    time_limit
        Seconds for all attempts to find a plan without some demands, of which each takes at most a tenth of
        what is left; None for no limit. An attempt without an answer leaves open whether the set is the
        smallest one.
    on_progress, stop
        As for :func:`partitioner.solve`.
    **options
        Further options of :func:`partitioner.solve`.

    Returns
    -------
    Conflict
        The demands, with what would leave a plan; without demands, but with a plan, if there is one.

    Raises
    ------
    WorkloadError
        If the graph and the devices do not fit together.
    OptionError
        If an option has a value that it may not have.
    NoPlanFound
        If it is not known whether there is a plan.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0] * 3}, [(0, 1), (1, 2)], size=3.0)
    >>> found = conflicting_demands(graph, Devices.accelerated(2, memory=5.0))
    >>> found.demands
    ('the memory of each device of kind accelerator (5B)', 'the number of devices of kind accelerator (2)')
    >>> found.remedies[1]
    'With 3 devices of kind accelerator in place of 2 there is a plan; fewer are proven not to suffice.'
    """
    require_type("devices", devices, Devices)
    require_callable(on_progress=on_progress)
    check_values(time_limit=time_limit)
    _check(options)
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    search = _ConflictSearch(
        graph,
        objective,
        Demanded(without_links(devices), options),
        Clock(math.inf if time_limit is None else time_limit),
        Interruption(stop),
        on_progress,
    )
    with search.interruption:
        try:
            return Conflict((), True, (), search.solved(Demanded(devices, options), "all demands"))
        except InfeasibleError:
            return search.run()


def _check(options: Mapping[str, Any]) -> None:
    """Refuse options of :func:`partitioner.solve` that mean nothing here, before the first attempt.

    Raises
    ------
    OptionError, WorkloadError
        If there is a gap, or the constraints are no :class:`partitioner.Constraints`.
    """
    if "gap" in options:
        raise OptionError(f"gap = {shown(options['gap'])}: has no effect here, where any plan will do")
    if options.get("constraints") is not None:
        require_type("constraints", options["constraints"], Constraints)


class _ConflictSearch:
    """The search for the conflict of an infeasible question."""

    def __init__(
        self,
        graph: Graph,
        objective: str,
        asked: Demanded,
        clock: Clock,
        interruption: Interruption,
        report: Callable[[Progress], None] | None,
    ) -> None:
        self.graph, self.objective, self.asked = graph, objective, asked
        self.clock, self.interruption, self.report = clock, interruption, report
        self.demands = demands_in(graph, asked)

    def run(self) -> Conflict:
        """Find the smallest conflict, and what would leave a plan."""
        if self._has_plan(frozenset()) is False:
            return Conflict((), True, ())
        found, smallest = smallest_conflict(len(self.demands), self._has_plan)
        demands = [self.demands[i] for i in sorted(found)]
        remedies = remedies_of(self.graph, self.objective, self.asked, demands, self.clock, self.interruption)
        return Conflict(tuple(each.words for each in demands), smallest, tuple(remedies))

    def _has_plan(self, kept: frozenset[int]) -> bool | None:
        """Whether there is a plan under some demands; None if that is not known."""
        dropped: Sequence[NamedDemand] = [each for i, each in enumerate(self.demands) if i not in kept]
        if self.clock.expired or self.interruption.asked:
            return None
        try:
            self.solved(
                reduce(lambda asked, each: each.drop(asked), dropped, self.asked), f"{len(kept)} demands"
            )
        except (InfeasibleError, WorkloadError):
            return False
        except (NoPlanFound, OptionError):
            return None
        return True

    def solved(self, asked: Demanded, words: str) -> Plan:
        """Return any plan under what is demanded."""
        left, report = self.clock.left, self.report
        seconds = None if math.isinf(left) else max(SHARE, SHARE * left)
        return solve(
            self.graph,
            asked.devices,
            self.objective,
            time_limit=seconds,
            gap=ANY_PLAN,
            stop=self.interruption,
            on_progress=report and (lambda told: report(replace(told, phase=f"{words}, {told.phase}"))),
            **asked.options,
        )
