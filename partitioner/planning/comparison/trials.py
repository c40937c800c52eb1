"""Plans for kinds of pipeline within a limit of time: one of each kind, then better ones of the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, PartitionerError
from partitioner.base.interruption import Interruption
from partitioner.methods.method import Progress
from partitioner.planning.comparison.copies import Spread, devices_of_a_copy, graph_of_a_copy
from partitioner.planning.comparison.recipes import Recipe
from partitioner.planning.comparison.recommended_pipeline import RecommendedPipeline, simulated_choice
from partitioner.planning.objectives import SIMULATED, THROUGHPUT
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.schedule.kinds.registry import kind_of
from partitioner.schedule.simulation import INPUT_SHARE
from partitioner.workload.alternatives import Alternatives
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.in_flight import SCHEDULES, Held, samples_in_flight
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from partitioner.workload.workload import Workload

# A kind of pipeline with a number of copies, and its plan.

INFEASIBLE = "no stages fit the memory and the constraints"
TIME_OVER = "(time_limit)"  # what the message of such an error says
LATE = "no plan was found in the time"


class Trial(NamedTuple):
    """A kind of pipeline, and how many devices hold each stage."""

    recipe: Recipe
    spread: Spread

    @property
    def key(self) -> tuple[str, str, bool, Spread]:
        """What its plan depends on."""
        return self.recipe.planned, str(self.recipe.options), self.recipe.ways, self.spread

    @property
    def takes_start(self) -> bool:
        """Whether the search for its plan can start from a plan."""
        return self.recipe.uneven and not self.recipe.ways

    def __str__(self) -> str:
        ways = " with alternatives" if self.recipe.ways else ""
        return f"{self.recipe.title}{ways}{'' if str(self.spread) == '1' else f' x{self.spread}'}"

    def planned(self, workload: Workload, microbatches: int, options: Mapping[str, Any]) -> Plan | str:
        """Return the plan for one copy, or why there is none.

        Parameters
        ----------
        workload, microbatches
            The graph, all devices, and all samples of a batch.
        options
            Further options of :func:`partitioner.solve`.
        """
        recipe, spread = self
        graph, share = self._graph(workload.graph), devices_of_a_copy(workload.devices, spread.copies)
        samples = -(-microbatches // spread.copies)
        if exceeds_memory(graph, share, recipe.planned, samples):
            return INFEASIBLE
        given = {**options, **recipe.options, "schedule": recipe.planned, "microbatches": samples}
        given |= {"replicas": spread.replicas} if spread.replicas > 1 else {}
        given |= {"method": THROUGHPUT.choosing_method} if recipe.ways else {}
        try:
            return solve(graph, share, (THROUGHPUT if recipe.ways else SIMULATED).name, **given)
        except InfeasibleError:
            return INFEASIBLE
        except NoPlanFound as error:
            return LATE if TIME_OVER in str(error) else str(error)
        except OptionError as error:
            return str(error)

    @property
    def bounded_by_load(self) -> bool:
        """Whether it needs the bound of :meth:`least_by_load`: its plan is made for another schedule."""
        recipe, spread = self
        return recipe.planned != recipe.schedule and not recipe.ways and spread.replicas == 1

    def least_by_load(self, workload: Workload, microbatches: int, options: Mapping[str, Any]) -> float:
        """Return a lower bound of the makespan of pipelines with one stage on a device; 0 if none is found.

        Every sample keeps the busiest device of its copy of the pipeline for at least the least load of all
        pipelines. The memory limits that load where it does not depend on the schedule.
        """
        graph, share = self._graph(workload.graph), devices_of_a_copy(workload.devices, self.spread.copies)
        if graph.parts.any():
            share = replace(share, kinds=tuple(replace(kind, memory=None) for kind in share.kinds))
        try:
            return -(-microbatches // self.spread.copies) * solve(graph, share, **options).bound
        except PartitionerError:
            return 0.0

    def _graph(self, graph: Graph) -> Graph:
        """Return the graph of a copy, with those alternatives among which the plan may choose."""
        if not graph.alternatives:
            return graph_of_a_copy(graph, self.spread.copies)
        most = self.spread.replicas if self.recipe.ways else 0
        return replace(graph, alternatives=graph.alternatives.kept(lambda way: way.degree <= most))


FIRST_ROUND = 0.6  # of the time, for a plan of each kind
LEAST = 0.05  # seconds for a plan
BY_LOAD = 0.1  # of the time that is left, for a lower bound by loads
MORE = 1.5  # times the first time, below which a second one is not worth it
NO_TIME = "not planned, since the time was over"
INTERRUPTED = "not planned, since the run was interrupted"
ENDED = ("optimal", "gap", "heuristic")  # reasons of a search that has ended by itself
OPEN = ("", LATE, NO_TIME)  # what more time may change
Group = list[Trial]  # trials that share a plan


class PipelineTrials:
    """Plans for kinds of pipeline, and their simulations.

    Parameters
    ----------
    workload, microbatches, constraints, seed
        What is planned.
    clock
        The time for all of it.
    interruption
        Says whether the user wants the run to end.
    report
        Called with the progress; None if nobody asks for it.
    states
        The options with which the graph of the workload was made for training.
    """

    def __init__(
        self,
        workload: Workload,
        microbatches: int,
        constraints: Constraints,
        seed: int,
        clock: Clock,
        interruption: Interruption,
        report: Callable[[Progress], None] | None,
        states: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.workload, self.microbatches, self.constraints = workload, microbatches, constraints
        self.options = {"seed": seed, "stop": interruption, "constraints": constraints, **states}
        self.clock, self.interruption, self.report = clock, interruption, report
        self.plans: dict[Any, Plan] = {}
        self.given: dict[Any, float] = {}
        self.choices: dict[Trial, RecommendedPipeline] = {}
        self.least: dict[tuple[bool, float], float] = {}
        self.least_by_load: dict[Spread, float] = {}

    def run(self, trials: Sequence[Trial]) -> list[RecommendedPipeline]:
        """Plan each kind in a part of the time, then again the best of the fastest schedules."""
        groups: dict[Any, Group] = {}
        for trial in trials:
            groups.setdefault(trial.key, []).append(trial)
        kept = (1 - FIRST_ROUND) * self.clock.limit
        for number, group in enumerate(groups.values()):
            self._plan(group, (self.clock.left - kept) / (len(groups) - number))
        again = self._affordable(list(self._worth_more_time()))
        for number, key in enumerate(again):
            seconds = self.clock.left * self.given[key] / sum(self.given[one] for one in again[number:])
            if seconds > MORE * self.given[key]:
                self._plan(groups[key], seconds)
        return list(self.choices.values())

    def _worth_more_time(self) -> Iterator[Any]:
        """Yield the key of the best plan of each schedule that may become better, or of all that may exist.

        All are tried if there is none. If the plan is made for another schedule, one made for this schedule
        follows, which has a bound. Schedules without a plan come last, and a key is yielded once.
        """
        by_schedule: dict[str, list[Trial]] = {}
        for trial, choice in self.choices.items():
            if choice.against in OPEN and self._may_lead(trial):
                by_schedule.setdefault(choice.schedule, []).append(trial)
        ranked = [sorted(trials, key=self._hope) for trials in by_schedule.values()]
        ranked.sort(key=lambda trials: self._rank(trials[0]))
        wanted = [
            trial
            for trials in ranked
            for trial in (trials if self.choices[trials[0]].against else self._best_of(trials))
        ]
        yield from dict.fromkeys(trial.key for trial in wanted)

    def _affordable(self, keys: list[Any]) -> list[Any]:
        """Return the keys without the last ones with a plan, until the others can have :data:`MORE` time.

        GPT-3 with 6.7 billion parameters, 8 microbatches, 8 s: the gaps of the three fastest schedules are
        3.9, 5.2 and 4.0 %; 6.4, 6.8 and 4 to 11 % if all keys share the time.
        """
        kept = list(keys)
        for key in reversed(keys):
            if self.clock.left >= MORE * sum(self.given[one] for one in kept):
                break
            if key in self.plans:
                kept.remove(key)
        return kept

    def _best_of(self, ranked: list[Trial]) -> list[Trial]:
        """Return the first trial, and if its plan is made for another schedule one that is not."""
        first = ranked[0]
        if first.recipe.exact or first.recipe.ways:
            return [first]
        copies = self.choices[first].copies
        exact = [one for one in ranked if one.recipe.exact and self.choices[one].copies == copies]
        return [first, *exact[:1]]

    def _may_lead(self, trial: Trial) -> bool:
        """Whether more time may lead to the best plan of its schedule."""
        plan, choice = self.plans.get(trial.key), self.choices[trial]
        if plan is None or plan.stop_reason in ENDED:
            return plan is None
        return choice.plan is None or choice.plan.bound < self._fastest(choice.schedule)

    def _hope(self, trial: Trial) -> tuple[bool, bool, float]:
        """Trials in rising order of this: first the best of a schedule, then the least bounds."""
        choice = self.choices[trial]
        bound = math.inf if choice.plan is None else choice.plan.bound
        return bool(choice.against), choice.makespan > self._fastest(choice.schedule), bound

    def _fastest(self, schedule: str) -> float:
        """Return the least makespan of what can be used under a schedule; infinity if nothing can."""
        usable = (one for one in self.choices.values() if one.schedule == schedule and not one.against)
        return min((one.makespan for one in usable), default=math.inf)

    def _rank(self, trial: Trial) -> tuple[bool, float, float]:
        return self.choices[trial].rank

    def _plan(self, group: Group, seconds: float) -> None:
        """Plan once for trials that share a plan, and keep of each what is better than before."""
        self.given[group[0].key] = seconds = max(seconds, LEAST)
        plan = self._planned(group[0], seconds)
        if isinstance(plan, Plan):
            self.plans[group[0].key] = plan
        for trial in group:
            found = self._simulated(trial, plan)
            known = self.choices.get(trial)
            if known is None or found.against != NO_TIME:
                self.choices[trial] = found if known is None else known.better(found)

    def _planned(self, trial: Trial, seconds: float) -> Plan | str:
        """Return the plan for one copy, found in the time given, or why there is none."""
        if self.interruption.asked or self.clock.expired:
            return INTERRUPTED if self.interruption.asked else NO_TIME
        start = {"warm_start": self.plans[trial.key]} if trial.takes_start and trial.key in self.plans else {}
        options = {**self.options, **start, "time_limit": seconds, "on_progress": self._reporter(trial)}
        return trial.planned(self.workload, self.microbatches, options)

    def _reporter(self, trial: Trial) -> Callable[[Progress], None] | None:
        """Return a callback that reports the progress of a plan under the name of its trial."""
        report = self.report
        if report is None:
            return None
        return lambda progress: report(replace(progress, phase=f"{trial}: {progress.phase}"))

    def _simulated(self, trial: Trial, plan: Plan | str) -> RecommendedPipeline:
        """Return the choice of a plan; that there is none, or its schedule refuses it, is a choice, too."""
        if isinstance(plan, str):
            return RecommendedPipeline(*trial, against=plan)
        try:
            least = max(self._least_makespan(trial.recipe), self._least_by_load(trial))
            return simulated_choice(self.workload, *trial, plan, self.microbatches, self.constraints, least)
        except PartitionerError as error:
            return RecommendedPipeline(*trial, against=str(error))

    def _least_makespan(self, recipe: Recipe) -> float:
        """Return a lower bound of the makespan of all pipelines under the schedule of a recipe."""
        graph, share = self.workload.graph, INPUT_SHARE if kind_of(recipe.schedule).halves else 1.0
        if (recipe.ways, share) not in self.least:
            graph = graph if recipe.ways else replace(graph, alternatives=Alternatives())
            found = least_makespan(graph, self.workload.devices, self.microbatches, share)
            self.least[recipe.ways, share] = found
        return self.least[recipe.ways, share]

    def _least_by_load(self, trial: Trial) -> float:
        """Return the lower bound by loads of pipelines of as many copies; 0 where it is not needed."""
        if not trial.bounded_by_load:
            return 0.0
        if trial.spread not in self.least_by_load:
            options = {**self.options, "time_limit": max(LEAST, self.clock.left * BY_LOAD)}
            found = trial.least_by_load(self.workload, self.microbatches, options)
            self.least_by_load[trial.spread] = found
        return self.least_by_load[trial.spread]


# What no pipeline of a kind can do without, whatever its stages are: time and memory.


def least_makespan(graph: Graph, devices: Devices, microbatches: int, input_share: float = 1.0) -> float:
    """Return a lower bound of the makespan of all pipelines.

    It is the larger of two: all processing divided among all devices, and the processing of one sample along
    the longest path of the graph. Nodes take the time of the fastest way to run them.

    Parameters
    ----------
    graph, devices, microbatches
        The workload, and the number of samples of a batch.
    input_share
        The part of a backward pass that later passes of the sample wait for, from 0 to 1.

    Examples
    --------
    >>> from partitioner.workload.devices import DeviceKind
    >>> graph = Graph.from_arrays({"gpu": [1.0, 2.0]}, [(0, 1)])
    >>> [least_makespan(graph, Devices((DeviceKind("gpu", 2),)), m) for m in (1, 8)]
    [3.0, 12.0]
    """
    time, work = _least_times(graph, devices)
    awaited = np.where(graph.backward, input_share, 1.0) * time
    path: nx.DiGraph[int] = nx.DiGraph()
    path.add_nodes_from(range(len(graph)))
    path.add_edges_from(graph.edges.tolist())
    reached = np.zeros(len(graph))
    for node in nx.topological_sort(path):
        reached[node] = awaited[node] + max(
            (reached[before] for before in path.predecessors(node)), default=0.0
        )
    count = sum(kind.count for kind in devices.kinds)
    return float(max(microbatches * work.sum() / count, reached.max(initial=0.0)))


def _least_times(graph: Graph, devices: Devices) -> tuple[Floats, Floats]:
    """Return the least time of each node, and that of all devices that run it together, shape (n,) each."""
    kinds = [kind for kind in devices.kinds if kind.count and kind.row in graph.kinds]
    time = np.array([graph.time[graph.kinds.index(kind.row)] * kind.time_factor for kind in kinds]).min(
        axis=0
    )
    work = time.copy()
    for node, ways in graph.alternatives.items():
        place = graph.position[node]
        for way in ways:
            least = min(way.times[kind.row] * kind.time_factor for kind in kinds)
            time[place] = min(time[place], least)
            work[place] = min(work[place], least * way.degree)
    return time, work


def exceeds_memory(graph: Graph, devices: Devices, schedule: str, microbatches: int) -> bool:
    """Whether no stages can fit the memory of all devices together: not all cases are found.

    Each stage holds at least what the last one does under the schedule. A schedule with several stages on a
    device may be limited to fewer devices by its number of microbatches.
    """
    if graph.alternatives:
        return False  # other ways to run nodes may take less
    held = samples_in_flight(schedule, 0, 1, microbatches) if schedule in SCHEDULES else Held(1, 1)
    parameters, gradients, optimizer, activations, _ = graph.parts.sum(axis=1)
    fixed = graph.size.sum() + gradients + optimizer
    needed = fixed + held.weights * parameters + held.activations * activations
    limits = sorted((kind.memory_limit for kind in devices.kinds for _ in range(kind.count)), reverse=True)
    return bool(needed > sum(limits[: _most_devices(schedule, len(limits), microbatches)]))


def _most_devices(schedule: str, devices: int, microbatches: int) -> int:
    """Return the most devices that a schedule runs the microbatches on."""
    if schedule not in VIRTUAL:
        return devices
    counts = range(devices, 0, -1)
    return next((count for count in counts if not VIRTUAL[schedule].rule(count, microbatches)), 0)
