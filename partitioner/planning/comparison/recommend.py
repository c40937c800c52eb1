"""Recommendations: pipelines of several kinds for a workload, the fastest first."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import networkx as nx
from rich.text import Text

from partitioner.base.argument_types import MANY, is_count, require_callable, require_items
from partitioner.base.clock import Clock
from partitioner.base.errors import OptionError, one_of, shown
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.base.markup import html_table
from partitioner.evaluation.text.figures import amount, figure, gap_cell, samples_per_second
from partitioner.evaluation.text.tables import WIDE, bar, columns, figure_table, render
from partitioner.methods.method import Progress
from partitioner.planning.comparison.copies import spreads
from partitioner.planning.comparison.ranked import bubble_share, fullest_device
from partitioner.planning.comparison.recipes import RECIPES, WITH_WAYS, Recipe
from partitioner.planning.comparison.recommended_pipeline import RecommendedPipeline
from partitioner.planning.comparison.trials import PipelineTrials, Trial
from partitioner.planning.objectives import THROUGHPUT
from partitioner.planning.options import check_values
from partitioner.planning.remedies import remedies
from partitioner.planning.request import ANY_PLAN
from partitioner.planning.solve import solve
from partitioner.results.rates import rates_in_words
from partitioner.results.timeline_table import memory_share
from partitioner.schedule.kinds.registry import kind_of
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.networkx_graph import as_graph
from partitioner.workload.training_states import NAMES as STATES
from partitioner.workload.training_states import require_decided, with_training_states
from partitioner.workload.workload import Workload

TIME_LIMIT = 8.0  # seconds, by default
NOTICED = 0.01  # the share of memory by which a slower pipeline must need less to be worth a look


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
        How long it took, without compiling kernels.
    time_unit
        The unit of times, empty if it is not known.
    compiling
        Seconds that kernels were compiled for in addition.
    look_for_remedies
        Returns what :meth:`remedies` does.
    """

    choices: tuple[RecommendedPipeline, ...]
    microbatches: int
    seconds: float
    time_unit: str = ""
    compiling: float = 0.0
    look_for_remedies: Callable[[], tuple[str, ...]] = tuple

    def remedies(self) -> tuple[str, ...]:
        """Return sentences on what would make a pipeline fit, as of :class:`partitioner.InfeasibleError`."""
        return self.look_for_remedies() if self.best is None else ()

    def __repr__(self) -> str:
        best = "none can be used" if self.best is None else f"best {self.best.schedule}"
        makespan = "" if self.best is None else f" with makespan {self.best.makespan:.6g}"
        return f"<Recommendation: {len(self.choices)} pipelines, {best}{makespan}>"

    def _repr_html_(self) -> str:
        rows = [(one.schedule, one.copies, f"{one.makespan:.6g}", one.against) for one in self.choices]
        return html_table(repr(self)[1:-1], ("schedule", "copies", "makespan", "against"), rows)

    @property
    def best(self) -> RecommendedPipeline | None:
        """The fastest pipeline that can be used; None if none can."""
        return self.choices[0] if self.choices and not self.choices[0].against else None

    @property
    def trade(self) -> tuple[RecommendedPipeline, ...]:
        """The pipelines that can be used and need less memory than every faster one, by 1 % at least."""
        found: list[RecommendedPipeline] = []
        for one in self.choices:
            if not one.against and (not found or one.full < found[-1].full * (1 - NOTICED)):
                found.append(one)
        return tuple(found)

    def summary(self, width: int | None = None) -> str:
        """Return a text table of at most `width` columns, by default the terminal's."""
        return recommendation_table(
            self.choices, self.trade, self.microbatches, self._took, self.time_unit, width
        )

    @property
    def _took(self) -> str:
        compiling = f", and {self.compiling:.3g} s to compile kernels" if self.compiling > 0 else ""
        return f"{self.seconds:.3g} s{compiling}"

    def to_json(self) -> str:
        """Return the pipelines and their figures as one JSON object."""
        record = {"microbatches": self.microbatches, "seconds": self.seconds, "compiling": self.compiling}
        return json.dumps(record | {"choices": [one.as_dict() for one in self.choices]}, indent=1)


def recommend(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    microbatches: int,
    *,
    schedules: Sequence[str] | None = None,
    constraints: Constraints | None = None,
    equal_replicas: bool = False,
    time_limit: float = TIME_LIMIT,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
    **states: Any,
) -> Recommendation:
    """Plan pipelines under all schedules, with 1, 2, 4, ... copies, and rank them by their simulated time.

    With r copies every stage runs on r devices, which take the samples in turn; the stages are those of the
    best plan for the r-th part of the devices and of the samples. One more plan may give every stage another
    number of devices, up to 8, or all stages any one number if they must have equal numbers. All plans are
    simulated on all devices, and their memory is that of the simulation, pass by pass. Plans choose among
    alternatives of nodes where each device has one stage.

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
    equal_replicas
        As the constraint of this name.
    time_limit
        Seconds for the whole call; compiling kernels is not counted. Plans of all kinds share the first part
        of it. What is left goes to the schedules of which no plan is found yet, and to the best plans of the
        fastest others.
    seed, on_progress, stop
        As for :func:`partitioner.solve`.
    **states
        Its options ``recompute``, ``zero``, ``data_parallel`` and ``optimizer``, for all plans.

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
    check_values(time_limit=time_limit, seed=seed)
    if not isinstance(equal_replicas, bool):
        raise OptionError(f"equal_replicas = {shown(equal_replicas)}: must be True or False")
    if time_limit is None:
        raise OptionError("time_limit = None: must be a positive number")
    require_callable(on_progress=on_progress)
    _check_states(states)
    require_decided(states)
    graph = with_training_states(as_graph(graph, devices), **states)
    recipes = _recipes(graph, schedules)
    workload, clock, interruption = Workload(graph, devices), Clock(time_limit), Interruption(stop)
    constraints = constraints or NONE
    if equal_replicas:
        constraints = replace(constraints, equal_replicas=True)
    trials = PipelineTrials(
        workload, microbatches, constraints, seed, clock, interruption, on_progress, states
    )
    with interruption:
        choices = trials.run(
            [
                Trial(recipe, spread)
                for spread, recipe in product(spreads(devices, microbatches), recipes)
                if spread.replicas == 1 or recipe.uneven
            ]
        )
    if interruption.by_keyboard and all(one.plan is None for one in choices):
        raise KeyboardInterrupt
    seconds = time.perf_counter() - clock.started - clock.compiled
    unit = graph.extras.time_unit or ""
    usual = "1f1b" if graph.backward.any() else "inference"
    asked: dict[str, Any] = {
        "objective": THROUGHPUT.name,
        "schedule": usual,
        "microbatches": microbatches,
        "stop": stop,
    }
    brief = partial(solve, constraints=constraints, gap=ANY_PLAN, workers=1, **asked, **states)
    look = partial(remedies, graph, devices, brief)
    return Recommendation(_ranked(choices), microbatches, seconds, unit, clock.compiled, look)


def _check_states(states: Mapping[str, Any]) -> None:
    for name in states.keys() - set(STATES):
        raise OptionError(f"option {name!r} is unknown: must be {one_of(name, STATES)}")


def _ranked(choices: list[RecommendedPipeline]) -> tuple[RecommendedPipeline, ...]:
    """Return the choices, the fastest first; of several with equal schedule and copies only that one.

    Those whose nodes run by alternatives are kept apart from those whose nodes run by their own figures. A
    choice has the largest bound of all plans of its line, each of which holds for the line's pipelines.
    """
    kept: dict[tuple[str, str, bool], RecommendedPipeline] = {}
    for one in sorted(choices, key=lambda one: one.rank):
        ways = one.recipe.ways and (one.plan is None or bool(one.ways))
        key = one.schedule, one.copies, ways
        kept[key] = kept[key].better(one) if key in kept else one
    return tuple(kept.values())


def _recipes(graph: Graph, schedules: Sequence[str] | None) -> list[Recipe]:
    """Return the recipes to try.

    Raises
    ------
    OptionError
        If a schedule has none, or is not for the graph.
    """
    trains, known = bool(graph.backward.any()), (*RECIPES, *(WITH_WAYS if graph.alternatives else ()))
    suited = [one for one in known if kind_of(one.schedule).trains in (None, trains)]
    if schedules is None:
        return suited
    names = list(dict.fromkeys(one.schedule for one in suited))
    for name in require_items("schedules", schedules):
        if name not in names:
            raise OptionError(f"schedules = {shown(name)}: must be {one_of(name, names)} for this graph")
    return [one for one in suited if one.schedule in schedules]


# A recommendation as a text table.

FIGURES = ("copies", "stages", "devices", "makespan", "gap", "bubble", "memory", "full")
WIDE_FIGURES = (*FIGURES[:4], "per sample", *FIGURES[4:])
MARK = "* needs at least 1 % less memory than every faster one"
GAP = "gap: distance to a lower bound for pipelines of the line"
WAYS = "other ways: how many nodes run by which alternative; the rest runs by its own figures"


def recommendation_table(
    choices: Sequence[RecommendedPipeline],
    trade: Sequence[RecommendedPipeline],
    microbatches: int,
    took: str,
    time_unit: str,
    width: int | None = None,
) -> str:
    """Return a line for each pipeline in the order given, then why the others cannot be used."""
    wide = columns(width) >= WIDE
    table = figure_table(wide, ("schedule",), WIDE_FIGURES if wide else FIGURES)
    if wide:
        table.add_column("device", no_wrap=True)
        table.add_column("busy of the makespan", no_wrap=True)
    usable = [one for one in choices if not one.against]
    ways = any(one.ways for one in usable)
    if ways:
        table.add_column("other ways", overflow="fold")
    for one in usable:
        chosen = ", ".join(f"{count} {name}" for name, count in one.ways.items())
        table.add_row(*map(Text, (*_row(one, one in trade, wide), *([chosen] * ways))))
    against = _reasons([one for one in choices if one.against])
    known = [MARK, GAP] * bool(usable) + [WAYS] * ways
    rates = usable[0].plan.rates if usable and usable[0].plan else {}
    known += [f"rates of the first: {rates_in_words(rates)}"] * (len(rates) > 1)
    notes = dict.fromkeys(note for one in usable if one.timeline for note in one.timeline.notes)
    lines = [*known, *against, *(f"note: {note}" for note in notes)]
    head = Text(_head(usable, choices, microbatches, took, time_unit))
    return render([head, *([table] if usable else []), *map(Text, lines)], width)


def _head(
    usable: Sequence[RecommendedPipeline],
    choices: Sequence[RecommendedPipeline],
    microbatches: int,
    took: str,
    time_unit: str,
) -> str:
    tried = f"{len(usable)} of {len(choices)} kinds of pipeline fit, {took}"
    if not usable or usable[0].timeline is None:
        return f"{microbatches} microbatches: no pipeline can be used; {tried}"
    best = usable[0]
    per_sample = best.timeline.time_per_sample if best.timeline else 0.0
    copies = "" if best.copies == "1" else f" with {best.copies} copies of stages"
    batch = f"{best.makespan:.6g}{time_unit and f' {time_unit}'} per batch"
    rate = samples_per_second(per_sample, time_unit)
    return f"{microbatches} microbatches: {best.schedule}{copies} is the fastest, {batch}{rate}; {tried}"


def _row(one: RecommendedPipeline, marked: bool, wide: bool) -> list[str]:
    timeline, plan = one.timeline, one.plan
    assert timeline is not None
    assert plan is not None
    fullest = fullest_device(timeline)
    idle = bubble_share(timeline)
    return [
        f"{one.schedule}{' *' if marked else ''}",
        one.copies,
        str(len(plan.stages)),
        str(one.devices),
        figure(timeline.makespan),
        *([figure(timeline.time_per_sample)] if wide else []),
        gap_cell(timeline.makespan, plan.bound),
        f"{idle:.1%}",
        amount(timeline.peak_memory[fullest]),
        memory_share(timeline, fullest),
        *((timeline.devices[fullest], bar(1 - idle)) if wide else ()),
    ]


def _reasons(unusable: Sequence[RecommendedPipeline]) -> list[str]:
    """Return a line for each reason, with the pipelines that it is about and the numbers of their copies."""
    about: dict[str, dict[str, list[str]]] = {}
    for one in unusable:
        title = f"{one.schedule}{' with alternatives' if one.recipe.ways else ''}"
        about.setdefault(one.against, {}).setdefault(title, [title]).append(f"x{one.spread}")
    return [
        f"not used ({why}): {', '.join(' '.join(names[title]) for title in sorted(names))}"
        for why, names in about.items()
    ]
