"""Comparisons of methods on one workload, the best plan first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
from rich.text import Text

from partitioner.base.argument_types import require_callable
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.base.markup import html_table
from partitioner.base.safe_text import csv_text
from partitioner.evaluation.shape import SHAPES
from partitioner.evaluation.text.figures import amount, figure, gap_cell, relative_gap
from partitioner.evaluation.text.tables import WIDE, bar, columns, figure_table, fullness, render, unit_of
from partitioner.methods.method import Progress
from partitioner.methods.registry import METHODS
from partitioner.planning.alternatives import can_choose, comparable
from partitioner.planning.comparison.runs import (
    BUG,
    CANNOT_RUN,
    INFEASIBLE,
    NOT_RUN,
    Compared,
    backends_of,
    run_method,
    runs_of,
)
from partitioner.planning.objectives import OPERATORS, Objective, objective_of
from partitioner.planning.option_effects import check_options, known_options
from partitioner.planning.options import check_transfer_factors, check_values, read_options
from partitioner.planning.request import Request, fields_of
from partitioner.planning.verify import TOLERANCE
from partitioner.results.serving import MAXIMISED
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.networkx_graph import as_graph
from partitioner.workload.pass_order import with_pass_order
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.training_states import as_trained, require_decided
from partitioner.workload.workload import Workload

Report = Callable[[Progress], None]


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """A comparison of methods on a workload: those with a plan first, the best value first.

    Parameters
    ----------
    objective, time_limit, seed
        What was asked for; the limit is of each method.
    compared
        The methods, see :class:`Compared`.
    bounds
        For each split the best bound that any method proved for it or for a freer one.
    """

    objective: str
    time_limit: float | None
    seed: int
    compared: tuple[Compared, ...]
    bounds: Mapping[str, float]

    def __repr__(self) -> str:
        best = self.best
        found = "no plan" if best is None else f"best {best.method} ({best.split}) with {best.value:.6g}"
        return f"<MethodComparison: {self.objective}, {len(self.compared)} runs, {found}>"

    def _repr_html_(self) -> str:
        rows = [(one.method, one.split, f"{one.value:.6g}", one.reason) for one in self.compared]
        return html_table(repr(self)[1:-1], ("method", "split", "value", "against"), rows)

    @property
    def best(self) -> Compared | None:
        """The method with the best plan; None if there is no plan."""
        return self.compared[0] if self.compared[0].plan is not None else None

    @property
    def maximised(self) -> bool:
        """Whether larger values are better, so that bounds are upper bounds."""
        return MAXIMISED.get(self.objective, False)

    def gap(self, one: Compared) -> float:
        """The largest possible distance from the optimum of its split, as :attr:`partitioner.Plan.gap`."""
        return relative_gap(one.value, self.bounds[one.split]) if one.plan is not None else 0.0

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Plans that the evaluator contradicts, and bounds above values of their split, in words."""
        words = [
            f"{one.method}, {one.split} split: {one.reason}" for one in self.compared if one.against == BUG
        ]
        for one in self.compared:
            if one.plan is not None and self._is_beyond(one.value, self.bounds[one.split]):
                bound = f"a bound of {self.bounds[one.split]!r} for {one.split} splits"
                where = "above" if self.maximised else "below"
                words.append(f"{one.method} found {one.value!r}, {where} {bound}")
        return tuple(words)

    def _is_beyond(self, value: float, bound: float) -> bool:
        """Whether a value is better than a bound allows, by more than rounding."""
        if self.maximised:
            return value > bound
        return bound > value * (1 + TOLERANCE) + 1e-300

    def summary(self, width: int | None = None) -> str:
        """Return a text table of at most `width` columns, by default the terminal's."""
        return compared_table(
            self._head(), self.compared, self.bounds, self.contradictions, self.maximised, width
        )

    def _head(self) -> str:
        """Return the lines above the table: the best plan, and what the gap means."""
        best = self.best
        if best is None:
            return f"{self.objective}: no method found a plan"
        limit = "" if self.time_limit is None else f", at most {self.time_limit:g} s each"
        bound = "upper bound" if self.maximised else "bound"
        return (
            f"{self.objective}: {best.value:.6g}{unit_of(self.objective)} "
            f"by {best.method} ({best.split} split){limit}\n"
            f"gap: to the {bound}, the best that any method proved for the split or a freer one"
        )

    def to_csv(self) -> str:
        """Return a row for each method as CSV, best first; figures are empty where there is no plan."""
        rows = [self._record(one) for one in self.compared]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        return csv_text(columns, ([row.get(name, "") for name in columns] for row in rows))

    def to_json(self) -> str:
        """Return the methods and their figures as one JSON object."""
        record = {"objective": self.objective, "time_limit": self.time_limit, "seed": self.seed}
        rows = {"methods": [self._record(one) for one in self.compared]}
        rest = {"bounds": dict(self.bounds), "contradictions": list(self.contradictions)}
        return json.dumps(record | rest | rows, indent=1)

    def _record(self, one: Compared) -> dict[str, Any]:
        record: dict[str, Any] = {"method": one.method, "split": one.split, "seconds": one.seconds}
        fullest = one.fullest
        if one.plan is None or fullest is None:
            return record | {"against": one.against, "reason": one.reason}
        return record | {
            "value": one.value,
            "bound": self.bounds[one.split],
            "gap": self.gap(one),
            "own_bound": one.plan.bound,
            **({"time_per_sample": one.plan.bottleneck.load} if self.maximised else {}),
            "stop_reason": one.plan.stop_reason,
            "backend": one.plan.backend,
            "fullest_device": fullest.name,
            "memory": fullest.memory,
            "memory_limit": fullest.memory_limit,
        }


def compare_methods(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    objective: str = "throughput",
    *,
    split: str | None = None,
    methods: Sequence[str] | None = None,
    backend: str = "auto",
    time_limit: float | None = 10.0,
    gap: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    on_progress: Report | None = None,
    stop: StopEvent | None = None,
    **method_options: Any,
) -> MethodComparison:
    """Run the methods one after another and rank their plans.

    Parameters
    ----------
    graph, devices, objective, gap, seed, workers
        As for :func:`partitioner.solve`.
    split
        The one split to compare on. None: for latency and makespans the usual one; else a method that makes
        chains makes chains, one that places operators free splits, and any other all that it knows.
    methods
        Names that ``partitioner methods`` lists, and ``"auto"`` for the one that ``solve`` would take; None:
        all that the objective and the splits suit.
    backend
        The solver for those methods that can run on it; the others run as with ``"auto"``.
    time_limit
        Seconds for each method.
    on_progress
        Called with a :class:`partitioner.Progress` from time to time.
    stop
        As for :func:`partitioner.solve`; methods whose turn comes after it is set are not run.
    **method_options
        As for :func:`partitioner.solve`; every method is given those that have an effect on it.

    Raises
    ------
    WorkloadError
        If the graph and the devices do not fit together.
    OptionError
        If an option has a value it may not have, or no method can do what is asked.
    BackendUnavailable
        If no method that is compared runs on the backend.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> found = compare_methods(graph, Devices.accelerated(2), methods=["single_device", "dp"])
    >>> [(one.method, one.value, found.gap(one)) for one in found.compared][0]
    ('dp', 3.5, 0.0)
    """
    require_decided(method_options)
    graph = as_trained(as_graph(graph, devices), method_options)
    workload = Workload(graph, devices)
    wanted = objective_of(objective, options=method_options)
    require_callable(on_progress=on_progress)
    check_values(backend=backend, split=split)
    interruption = Interruption(stop)
    limits = {"time_limit": time_limit, "gap": gap, "seed": seed, "workers": workers}
    regime = Regime(**fields_of(Regime, read_options(wanted, method_options, **limits)))
    check_transfer_factors(wanted, devices)
    if wanted is OPERATORS:
        with_pass_order(graph)  # refuses, once, what every method would refuse
    features = [*regime.features(devices), *(["placer"] if "placer" in method_options else [])]
    methods = _named(methods, wanted, split, features, can_choose(graph, devices))
    runs = runs_of(wanted, split, methods, features)
    kept = comparable(graph, devices, [name for name, _ in runs], methods is not None)
    runs = [run for run, keep in zip(runs, kept, strict=True) if keep]
    backends = backends_of([name for name, _ in runs], backend)
    requests = [Request(workload, wanted, shape, METHODS[name]) for name, shape in runs]
    check_options(method_options, requests)
    found: list[Compared] = []
    for number, request in enumerate(requests, 1):
        name, shape = request.info.name, request.split
        if any(_interrupted(one) for one in found) or interruption.asked:
            found.append(Compared(name, shape, None, 0.0, NOT_RUN, "not run: interrupted before its turn"))
            continue
        tell = _teller(f"{number} of {len(runs)}, {name} ({shape})", found, on_progress)
        extra = {"on_progress": tell, "stop": stop, "backend": backends[name]}
        options = known_options({**limits, **extra, **method_options}, request)
        found.append(run_method(graph, devices, objective, name, shape, options))
    cut = any(_interrupted(one) for one in found) and not interruption.asked
    if cut and all(one.plan is None for one in found):
        raise KeyboardInterrupt
    upper = MAXIMISED.get(objective, False)
    bounds = _bounds(found, upper, nested=not method_options.get("contiguous_backward"))
    ranked = sorted(found, key=lambda one: _rank(one, upper))
    return MethodComparison(objective, time_limit, seed, tuple(ranked), bounds)


def _named(
    methods: Sequence[str] | None,
    wanted: Objective,
    split: str | None,
    features: Sequence[str],
    choosing: bool,
) -> Sequence[str] | None:
    """Return the names of methods; ``"auto"`` is replaced by that of the one that ``solve`` would take."""
    if not isinstance(methods, list | tuple) or not all(isinstance(name, str) for name in methods):
        return methods  # None, or refused later
    usual = wanted.automatic(split or wanted.splits[0], features, choosing)
    return list(dict.fromkeys(usual if name == "auto" else name for name in methods))


def _interrupted(one: Compared) -> bool:
    return one.against == NOT_RUN or (one.plan is not None and one.plan.stop_reason == "interrupted")


def _bounds(found: Sequence[Compared], upper: bool, nested: bool) -> dict[str, float]:
    """Return the best bound of each split; with `nested`, every chain counts as convex."""
    best: dict[str, float] = {}
    for split in sorted({one.split for one in found}, key=SHAPES.index):
        freer = SHAPES[SHAPES.index(split) :] if nested else (split, SHAPES[-1])
        plans = [one.plan for one in found if one.plan and one.split in freer]
        best[split] = (min if upper else max)((plan.bound for plan in plans), default=0.0)
    return best


def _rank(one: Compared, upper: bool) -> tuple[bool, float, float]:
    """Return what orders methods: those with a plan by value; with `upper` the largest one, then by time."""
    if one.plan is None or not upper:
        return one.plan is None, float(f"{one.value:.12g}"), 0.0
    return False, -one.value, float(f"{one.plan.bottleneck.load:.12g}")


def _teller(what: str, found: Sequence[Compared], report: Report | None) -> Report | None:
    """Return a callback that reports the start of a method and then its progress, under its name."""
    if report is None:
        return None
    report(Progress(f"{what}: starting", 0, 0, min((one.value for one in found), default=math.inf), 0.0, 0.0))
    return lambda progress: report(replace(progress, phase=f"{what}: {progress.phase}"))


# A comparison of methods as a text table.

FIGURES = ("value", "gap", "bound", "seconds", "memory", "full")
PER_SAMPLE = "per sample"  # the time of a sample, where the value is a number of samples
PREFIX = {INFEASIBLE: "infeasible: ", CANNOT_RUN: "cannot run: "}


def compared_table(
    head: str,
    compared: Sequence[Compared],
    bounds: Mapping[str, float],
    contradictions: Sequence[str],
    served: bool,
    width: int | None = None,
) -> str:
    """Return a line for each plan, then the reasons of methods without a plan, then contradictions.

    Parameters
    ----------
    head
        What stands above the table.
    compared
        The methods, the best one first.
    bounds
        For each split the best bound that any method proved for it or for a freer one.
    contradictions
        Bugs, in words.
    served
        Whether values are numbers of samples in flight, so that the time of a sample is shown, too.
    width
        The most columns, by default the terminal's.
    """
    wide = columns(width) >= WIDE
    titles = (FIGURES[0], PER_SAMPLE, *FIGURES[1:]) if served else FIGURES
    table = figure_table(wide, ("method", "split"), titles)
    if wide:
        table.add_column("stopped", no_wrap=True)
        table.add_column("best value to its own", no_wrap=True)
    for one in compared:
        if one.plan is not None:
            table.add_row(*map(Text, _cells(one, bounds[one.split], compared[0].value, served, wide)))
    without = [
        Text(f"{one.method}, {one.split}: {PREFIX.get(one.against, '') + one.reason}")
        for one in compared
        if one.against not in ("", BUG)
    ]
    bugs = [Text(f"CONTRADICTION, please report: {words}") for words in contradictions]
    tables = [table] if compared[0].plan is not None else []
    return render([Text(head), *tables, *without, *bugs], width)


def _cells(one: Compared, bound: float, best: float, served: bool, wide: bool) -> list[str]:
    assert one.plan is not None and one.fullest is not None
    timed = [figure(one.plan.bottleneck.load)] if served else []
    cells = [
        *(one.method, one.split, figure(one.value), *timed, gap_cell(one.value, bound)),
        *(figure(bound), f"{one.seconds:.2f}"),
        *(amount(one.fullest.memory), fullness(one.fullest)),
    ]
    larger, smaller = max(best, one.value), min(best, one.value)
    share = smaller / larger if larger > 0 else 1.0
    return [*cells, one.plan.stop_reason, bar(share)] if wide else cells
