"""Unequal stages for a layout: the exact methods on its layers, simulated again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError
from partitioner.base.interruption import StopEvent
from partitioner.planning.layouts.costs import FIELDS
from partitioner.planning.layouts.timing import LayoutRun
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.layer import ACCELERATOR, Layer


def refined(run: LayoutRun, seconds: float, stop: StopEvent | None) -> LayoutRun:
    """Return the run with the stages that the exact methods find, or the same if none are faster."""
    if run.layout.pipeline == 1:
        return run
    layout = run.layout
    options: dict[str, Any] = {"schedule": layout.schedule, "microbatches": run.microbatches}
    if layout.virtual_stages > 1:
        options["virtual_stages"] = layout.virtual_stages
    try:
        found = solve(
            _graph(run),
            Devices((DeviceKind(ACCELERATOR, layout.pipeline, memory=run.costs.cluster.memory),)),
            "makespan",
            time_limit=seconds,
            stop=stop,
            **options,
        )
    except (InfeasibleError, NoPlanFound, OptionError):
        return run
    borders = _borders(found, len(run.costs.layer_names))
    if len(borders) != layout.stages + 1:
        return run
    other = replace(run, borders=borders)
    return other if other.fits and other.simulated[0] < run.simulated[0] else run


def _graph(run: LayoutRun) -> Graph:
    """Return the chain of the layers, with times and memory under the layout."""
    costs = run.costs.layers(run.layout)
    fields = {name: getattr(costs, name).tolist() for name in FIELDS}
    layers = [
        Layer(str(i), **{name: values[i] for name, values in fields.items()})
        for i in range(len(run.costs.layer_names))
    ]
    return Graph.chain(layers, bandwidth=run.costs.cluster.bandwidth(run.layout.apart), training=True)


def _borders(plan: Plan, layers: int) -> tuple[int, ...]:
    """Return the first layer of every stage of a plan, and the number of layers."""
    if plan.stage_of is not None:
        stage = np.array([plan.stage_of[str(i)] for i in range(layers)])
    else:
        place = {name: i for i, name in enumerate(plan.stages)}
        stage = np.array([place[plan.placement[str(i)]] for i in range(layers)])
    return (0, *(np.flatnonzero(np.diff(stage)) + 1).tolist(), layers)
