"""Recommendations: pipelines of several kinds for a workload, the fastest first."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import networkx as nx

from partitioner.base.argument_types import MANY, is_count, require_items
from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, PartitionerError, one_of, shown
from partitioner.base.interruption import StopEvent
from partitioner.methods.method import Progress
from partitioner.planning.comparison.copies import ALONE, Spread, devices_of_a_copy, spreads
from partitioner.planning.comparison.recipes import RECIPES, Recipe
from partitioner.planning.comparison.recommendation_table import recommendation_table
from partitioner.planning.comparison.recommended_pipeline import RecommendedPipeline, simulated_choice
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.schedule.kinds.registry import kind_of
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.in_flight import SCHEDULES, samples_in_flight
from partitioner.workload.networkx_graph import from_networkx
from partitioner.workload.workload import Workload

TIME_LIMIT = 25.0  # seconds for all plans, by default
LEAST_TIME = 1.0  # seconds that every plan may take
INFEASIBLE = "no stages fit the memory and the constraints"


@dataclass(frozen=True, eq=False)
class Recommendation:
    """Pipelines for a workload: those that can be used first, the fastest first.

    Parameters
    ----------
    choices
        The pipelines, see :class:`partitioner.planning.comparison.recommended_pipeline.RecommendedPipeline`.
    microbatches
        How many samples a batch has.
    seconds
        How long it took.
    time_unit
        The unit of times, empty if it is not known.
    """

    choices: tuple[RecommendedPipeline, ...]
    microbatches: int
    seconds: float
    time_unit: str = ""

    def __repr__(self) -> str:
        best = "none can be used" if self.best is None else f"best {self.best.schedule}"
        makespan = "" if self.best is None else f" with makespan {self.best.makespan:.6g}"
        return f"<Recommendation: {len(self.choices)} pipelines, {best}{makespan}>"

    @property
    def best(self) -> RecommendedPipeline | None:
        """The fastest pipeline that can be used; None if none can."""
        return self.choices[0] if self.choices and not self.choices[0].against else None

    @property
    def trade(self) -> tuple[RecommendedPipeline, ...]:
        """The pipelines that can be used for which no other one is as fast and needs less memory."""
        found: list[RecommendedPipeline] = []
        for one in self.choices:
            if not one.against and (not found or one.full < found[-1].full):
                found.append(one)
        return tuple(found)

    def summary(self, width: int | None = None) -> str:
        """Return a text table of at most `width` columns, by default the terminal's."""
        return recommendation_table(
            self.choices, self.trade, self.microbatches, self.seconds, self.time_unit, width
        )

    def to_json(self) -> str:
        """Return the pipelines and their figures as one JSON object."""
        record = {"microbatches": self.microbatches, "seconds": self.seconds}
        return json.dumps(record | {"choices": [one.as_dict() for one in self.choices]}, indent=1)


def recommend(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    microbatches: int,
    *,
    schedules: Sequence[str] | None = None,
    constraints: Constraints | None = None,
    time_limit: float = TIME_LIMIT,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
) -> Recommendation:
    """Plan pipelines under all schedules, with 1, 2, 4, ... copies, and rank them by their simulated time.

    With r copies every stage runs on r devices, which take the samples in turn; the stages are those of the
    best plan for the r-th part of the devices and of the samples. One more plan may give every stage another
    number of devices, up to 8. All plans are simulated on all devices, and their memory is that of the
    simulation, pass by pass. Plans choose among alternatives of nodes where each device has one stage.

    Parameters
    ----------
    graph, devices
        As for :func:`partitioner.solve`.
    microbatches
        The number of samples of a batch.
    schedules
        The schedules to try; by default all that suit the graph.
    constraints
        What every plan must keep to.
    time_limit
        Seconds for all plans together, divided among those that are left; compiling is not counted, and every
        plan may take a second.
    seed, on_progress, stop
        As for :func:`partitioner.solve`.

    Returns
    -------
    Recommendation
        It holds a choice for every kind of pipeline, also for those that do not fit, with the reason.

    Raises
    ------
    WorkloadError
        If the graph and the devices do not fit together.
    OptionError
        If an option has a value that it may not have.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)])
    >>> from partitioner.workload.devices import DeviceKind
    >>> found = recommend(graph, Devices((DeviceKind("gpu", 2),)), 4)
    >>> [(one.schedule, one.copies, one.makespan) for one in found.choices]
    [('inference', '2', 4.0), ('inference', '1', 5.0)]
    """
    if not is_count(microbatches):
        rule = f"must be an integer of at least 1 and at most {MANY:,}"
        raise OptionError(f"microbatches = {shown(microbatches)}: {rule}")
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    recipes = _recipes(graph, schedules)
    started, constraints = time.perf_counter(), constraints or NONE
    workload, given = Workload(graph, devices), {"seed": seed, "on_progress": on_progress, "stop": stop}
    plans: dict[tuple[str, str, Spread], Plan | str] = {}
    wanted = [
        (spread, recipe)
        for spread, recipe in product(spreads(devices, microbatches), recipes)
        if recipe.replicable or spread == ALONE
    ]
    left, choices = {_key(spread, recipe) for spread, recipe in wanted}, []
    for spread, recipe in wanted:
        key = _key(spread, recipe)
        if key not in plans:
            seconds = (time_limit - time.perf_counter() + started) / len(left - plans.keys())
            options = given | {"time_limit": max(seconds, LEAST_TIME), "constraints": constraints}
            plans[key] = _planned(workload, recipe, spread, microbatches, options)
        choices.append(_simulated(workload, recipe, spread, plans[key], microbatches, constraints))
    return Recommendation(
        _ranked(choices), microbatches, time.perf_counter() - started, graph.extras.time_unit or ""
    )


def _key(spread: Spread, recipe: Recipe) -> tuple[str, str, Spread]:
    """Return what the plan of a recipe depends on."""
    return recipe.planned, str(recipe.options), spread


def _ranked(choices: list[RecommendedPipeline]) -> tuple[RecommendedPipeline, ...]:
    """Return the choices, the fastest first; of several with equal schedule and copies only that one."""
    ordered = sorted(choices, key=lambda one: (bool(one.against), one.makespan, one.full))
    kept: dict[tuple[str, str], RecommendedPipeline] = {}
    for one in ordered:
        kept.setdefault((one.schedule, one.copies), one)
    return tuple(kept.values())


def _recipes(graph: Graph, schedules: Sequence[str] | None) -> list[Recipe]:
    """Return the recipes to try.

    Raises
    ------
    OptionError
        If a schedule has none, or is not for the graph.
    """
    trains = bool(graph.backward.any())
    suited = [one for one in RECIPES if kind_of(one.schedule).trains in (None, trains)]
    if schedules is None:
        return suited
    names = list(dict.fromkeys(one.schedule for one in suited))
    for name in require_items("schedules", schedules):
        if name not in names:
            raise OptionError(f"schedules = {shown(name)}: must be {one_of(name, names)} for this graph")
    return [one for one in suited if one.schedule in schedules]


def _planned(
    workload: Workload, recipe: Recipe, spread: Spread, microbatches: int, options: dict[str, Any]
) -> Plan | str:
    """Return the plan for one copy, or why there is none."""
    share, samples = devices_of_a_copy(workload.devices, spread.copies), -(-microbatches // spread.copies)
    options = {**options, **recipe.options, "schedule": recipe.planned, "microbatches": samples}
    if spread.replicas > 1:
        options["replicas"] = spread.replicas
    if _least_memory(workload.graph, recipe.planned, samples) > sum(
        kind.count * kind.memory_limit for kind in share.kinds
    ):
        return INFEASIBLE
    try:
        return solve(workload.graph, share, "makespan", **options)
    except InfeasibleError:
        return INFEASIBLE
    except (NoPlanFound, OptionError) as error:
        return str(error)


def _least_memory(graph: Graph, schedule: str, samples: int) -> float:
    """Return the memory that all stages take together if each is the last one; 0 if that is not known."""
    if schedule not in SCHEDULES or graph.alternatives:
        return 0.0
    held = samples_in_flight(schedule, 0, 1, samples)
    parameters, gradients, optimizer, activations, _ = graph.parts.sum(axis=1)
    fixed = graph.size.sum() + gradients + optimizer
    return float(fixed + held.weights * parameters + held.activations * activations)


def _simulated(
    workload: Workload,
    recipe: Recipe,
    spread: Spread,
    plan: Plan | str,
    microbatches: int,
    constraints: Constraints,
) -> RecommendedPipeline:
    """Return the choice of a plan; that there is none, or that its schedule refuses it, is a choice, too."""
    if isinstance(plan, str):
        return RecommendedPipeline(recipe, spread, against=plan)
    try:
        return simulated_choice(workload, recipe, spread, plan, microbatches, constraints)
    except PartitionerError as error:
        return RecommendedPipeline(recipe, spread, against=str(error))
