"""The public function `conflicting_demands`: the smallest set of demands that rules out every plan."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any

import networkx as nx
from rich.text import Text

from partitioner.analysis.explanations.conflict_demands import (
    MEMORY,
    NUMBER,
    Asked,
    NamedDemand,
    constraints_in,
    demands_in,
    without_links,
)
from partitioner.analysis.explanations.wording import listed, memory
from partitioner.base.argument_types import require_callable, require_type
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
from partitioner.evaluation.text.tables import render
from partitioner.methods.method import Progress
from partitioner.planning.options import check_values
from partitioner.planning.request import ANY_PLAN
from partitioner.planning.sizing.fewest_devices import fewest_devices
from partitioner.planning.sizing.least_memory import least_memory
from partitioner.planning.sizing.pool import kind_in_question, with_count
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
        {"devices": without_links(devices), **options},
        Clock(math.inf if time_limit is None else time_limit),
        Interruption(stop),
        on_progress,
    )
    with search.interruption:
        try:
            return Conflict((), True, (), search.solved({"devices": devices, **options}, "all demands"))
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
        asked: Asked,
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

    def solved(self, asked: Asked, words: str) -> Plan:
        """Return any plan under what is demanded."""
        left, report = self.clock.left, self.report
        seconds = None if math.isinf(left) else max(SHARE, SHARE * left)
        return solve(
            self.graph,
            objective=self.objective,
            time_limit=seconds,
            gap=ANY_PLAN,
            stop=self.interruption,
            on_progress=report and (lambda told: report(replace(told, phase=f"{words}, {told.phase}"))),
            **asked,
        )


# How much memory, or how many devices, would leave a plan where there is none.

LEAST = 0.5  # seconds for an answer


def remedies_of(
    graph: Graph,
    objective: str,
    asked: Asked,
    demands: Sequence[NamedDemand],
    clock: Clock,
    interruption: Interruption,
) -> Iterator[str]:
    """Yield a sentence for each of the demands that says how much of it would leave a plan.

    Nothing is said of a demand for which no amount suffices, or none was found.
    """
    for demand in demands:
        if demand.what not in ANSWERS or interruption.asked:
            continue
        seconds = None if math.isinf(clock.left) else max(LEAST, clock.left / len(demands))
        given = {"kind": demand.kind, "objective": objective, "time_limit": seconds, "stop": interruption}
        with suppress(PartitionerError):
            yield ANSWERS[demand.what](graph, asked, demand, given)


def _more_memory(graph: Graph, asked: Asked, demand: NamedDemand, given: Mapping[str, Any]) -> str:
    found = least_memory(graph, **given, **asked)
    held = kind_in_question(asked["devices"], demand.kind).memory or 0.0
    proof = "less is proven not to suffice" if found.proven else f"at least {memory(found.bound)} are needed"
    return (
        f"With {memory(found.memory)} of memory for each device of kind {demand.kind} in place of "
        f"{memory(held)} there is a plan; {proof}."
    )


def _more_devices(graph: Graph, asked: Asked, demand: NamedDemand, given: Mapping[str, Any]) -> str:
    """Return the fewest devices with a plan; raise if all must be used and that number has none."""
    many = demand.drop(asked)
    found = fewest_devices(graph, **given, **many)
    had = kind_in_question(asked["devices"], demand.kind).count
    if constraints_in(asked).use_all_devices:  # the pool above need not be used up
        exact = with_count(asked["devices"], demand.kind, found.count)
        limits = {name: given[name] for name in ("objective", "time_limit", "stop")}
        solve(graph, gap=ANY_PLAN, **limits, **{**asked, "devices": exact})
    proof = "fewer are proven not to suffice" if found.proven else f"at least {found.bound} are needed"
    return f"With {found.count} devices of kind {demand.kind} in place of {had} there is a plan; {proof}."


ANSWERS = {MEMORY: _more_memory, NUMBER: _more_devices}


# The smallest set of demands that conflict, by hitting sets.

HasPlan = Callable[[frozenset[int]], bool | None]


def smallest_conflict(count: int, has_plan: HasPlan) -> tuple[frozenset[int], bool]:
    """Return a smallest set of demands that no plan obeys all of, and whether that is proven.

    A conflict has a demand in common with every set of demands without which there is a plan. The method
    takes a smallest set that has one in common with all such sets known so far; if no plan obeys that, it is
    a smallest conflict. Otherwise it adds demands as long as there is a plan; those that remain are a new set
    without which there is one (Ignatiev, Previti, Liffiton and Marques-Silva, CP 2015).

    Parameters
    ----------
    count
        The number of demands, which no plan obeys all of.
    has_plan
        Whether there is a plan that obeys some demands, given by their numbers; None if that is not known.

    Examples
    --------
    >>> smallest_conflict(4, lambda kept: not kept >= {1, 3})
    (frozenset({1, 3}), True)
    """
    everything, proven = frozenset(range(count)), True
    without: list[frozenset[int]] = []
    while True:
        chosen = _hitting(without, count)
        answer = False if chosen == everything else has_plan(chosen)
        if answer is False:
            return chosen, proven
        proven &= answer is not None
        kept, known = _grown(chosen, everything, has_plan)
        proven &= known
        without.append(everything - kept)


def _hitting(sets: Sequence[frozenset[int]], count: int) -> frozenset[int]:
    """Return a smallest set of numbers that has one in common with each of the sets."""
    members = sorted(frozenset().union(*sets))
    return next(
        frozenset(chosen)
        for size in range(count + 1)
        for chosen in combinations(members, size)
        if all(each & set(chosen) for each in sets)
    )


def _grown(
    chosen: frozenset[int], everything: frozenset[int], has_plan: HasPlan
) -> tuple[frozenset[int], bool]:
    """Return a largest extension of some demands without a known conflict, and whether it is known."""
    kept, known = chosen, True
    for demand in sorted(everything - chosen):
        if kept | {demand} == everything:
            break
        answer = has_plan(kept | {demand})
        known &= answer is not None
        kept = kept if answer is False else kept | {demand}
    return kept, known
