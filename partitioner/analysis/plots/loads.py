"""A picture of the load of every device for a sample, with the lower bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from partitioner.analysis.plots.canvas import head, label_rows, row_axes
from partitioner.analysis.plots.colours import COMPUTE, PARTS, ink
from partitioner.base.argument_types import require_type
from partitioner.base.errors import OptionError, shown
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.text.figures import figure
from partitioner.evaluation.text.names import joined_within, ranges
from partitioner.planning.objectives import OBJECTIVES
from partitioner.problem.measure import Measure
from partitioner.results.plan import Plan
from partitioner.workload.device_validation import LARGEST, is_amount
from partitioner.workload.graph import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.0
NAMES = 32  # characters of the names of a stage's layers
TOLERANCE = 1e-9


def plot_loads(plan: Plan | Evaluation, ax: Axes | None = None, *, bound: float | None = None) -> Axes:
    """Draw the parts of every device's load as a bar, in the order of the pipeline, and return the axes.

    Parameters
    ----------
    plan
        A plan or an evaluation. Devices without a node are left out; the replicas of a stage share a bar.
        The bar of a stage of a plan has the names of the stage's layers, if the graph has layers.
    ax
        The axes to draw on; by default those of a new figure.
    bound
        Lower bound of the largest load, drawn as a line. By default the bound of a plan whose value is its
        largest load; otherwise no line is drawn.

    Returns
    -------
    Axes
        The axes, with a container of bars for each part. If parts overlap in time, the load is less than
        their sum, and is drawn as a mark on the bar.

    Raises
    ------
    BackendUnavailable
        If matplotlib is not installed.
    """
    if not isinstance(plan, Plan):
        require_type("plan", plan, Evaluation, "must be a Plan or an Evaluation")
    if bound is not None and not is_amount(bound):
        raise OptionError(f"bound = {shown(bound)}: must be a number from 0 to {LARGEST:g}, or None")
    everything, order = _given(plan)
    loads = in_order(everything, order)
    copies = Counter(load.replica_of for load in everything)
    layers = _layers(plan) if isinstance(plan, Plan) else {}
    titles = [stage_title(load.name, 1 + copies[load.name], layers.get(load.name, "")) for load in loads]
    ax = row_axes(ax, WIDTH, titles)
    parts = load_parts(loads)
    _draw_bars(ax, parts)
    load = np.array([entry.load for entry in loads])
    total = np.sum(list(parts.values()), axis=0)
    if (total > load * (1 + TOLERANCE)).any():
        _mark(ax, load)
    if bound is None and isinstance(plan, Plan) and bounds_loads(plan):
        bound = plan.bound
    if bound is not None:
        ax.axvline(bound, color=ink(), linestyle="--", label=f"lower bound {figure(bound)}")
    longest = max(float(total.max()), bound or 0.0)
    ax.set_xlim(0, 1.04 * longest or 1.0)
    ax.set_xlabel("time per sample")
    label_rows(ax, [figure(value) for value in load.tolist()])
    largest = "" if plan.value == plan.bottleneck.load else f", largest load {figure(load.max())}"
    head(ax, f"{plan.objective}: {figure(plan.value)}{largest}")
    return ax


def bounds_loads(plan: Plan) -> bool:
    """Whether the bound of a plan is one of the largest load."""
    objective = OBJECTIVES.get(plan.objective)
    if objective is None or objective.base is not None:
        return False
    return objective.measure is Measure.LARGEST_LOAD


def in_order(loads: Sequence[DeviceLoad], order: Sequence[str]) -> list[DeviceLoad]:
    """Return the devices in use, one for each stage, in the order of the pipeline."""
    place = {name: number for number, name in enumerate(order)}
    used = [load for load in loads if load.nodes > 0 and load.replica_of is None]
    return sorted(used, key=lambda load: place.get(load.name, len(place)))


def _given(plan: Plan | Evaluation) -> tuple[Sequence[DeviceLoad], Sequence[str]]:
    return (plan.devices, plan.stages) if isinstance(plan, Plan) else (plan.loads, plan.shape.order)


def _layers(plan: Plan) -> dict[str, str]:
    """Return the layers of each stage as ranges, by the first device of the stage."""
    return {
        stage.devices[0]: joined_within(ranges(stage.layers), NAMES)
        for stage in plan.by_stage
        if stage.layers
    }


def stage_title(name: str, devices: int, layers: str) -> str:
    """Return the name of the first device of a stage, the number of its devices, and its layers."""
    title = name if devices == 1 else f"{name} x{devices}"
    return f"{title}: {layers}" if layers else title


def load_parts(loads: Sequence[DeviceLoad]) -> dict[str, Floats]:
    """Return the parts of the loads by name, shape (devices,) each; ``sync`` only if there is any."""
    parts = {
        "in": np.array([sum(load.transfer_in) for load in loads]),
        "compute": np.array([sum(load.compute) for load in loads]),
        "out": np.array([sum(load.transfer_out) for load in loads]),
        "sync": np.array([load.sync for load in loads]),
    }
    return parts if parts["sync"].any() else {name: parts[name] for name in ("in", "compute", "out")}


def _draw_bars(ax: Axes, parts: dict[str, Floats]) -> None:
    left = np.zeros(len(parts["compute"]))
    for name, length in parts.items():
        ax.barh(
            np.arange(len(left)),
            length,
            left=left,
            height=0.72,
            color=PARTS.get(name, COMPUTE),
            label="exchange of weights" if name == "sync" else name,
            hatch="////" if name == "sync" else None,
            edgecolor=ax.get_facecolor(),
            linewidth=0.3,
        )
        left = left + length


def _mark(ax: Axes, load: Floats) -> None:
    rows = np.arange(len(load))
    ax.vlines(load, rows - 0.46, rows + 0.46, colors=[ink()], linewidths=2, label="load (parts overlap)")
