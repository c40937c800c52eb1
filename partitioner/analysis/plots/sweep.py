"""A picture of a sweep: values and bounds over the number of devices, and the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitioner.analysis.plots.canvas import head, new_axes
from partitioner.analysis.plots.colours import device_look, ink
from partitioner.analysis.sweeps.result import SweepResult, pareto_front
from partitioner.analysis.sweeps.row import SweepRow
from partitioner.base.argument_types import require_type
from partitioner.base.errors import OptionError, one_of, shown
from partitioner.evaluation.text.tables import unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 9.0, 5.0
FAR = 10.0  # values that differ by this factor are drawn on a logarithmic scale


def plot_sweep(result: SweepResult, ax: Axes | None = None, *, objective: str | None = None) -> Axes:
    """Draw the value and the bound of every plan over the number of devices, and return the axes.

    Each workload has a colour. A plan is a mark over the number of devices of its pool, and a line leads from
    it to its bound. Steps join the plans of the Pareto front, over the number of devices that they use: no
    other plan of the workload is as good on as few devices.

    Parameters
    ----------
    result
        The sweep.
    ax
        The axes to draw on; by default those of a new figure.
    objective
        The objective whose plans are drawn; by default that of the first plan.

    Raises
    ------
    BackendUnavailable
        If matplotlib is not installed.
    OptionError
        If there is no plan for the objective.
    """
    require_type("result", result, SweepResult)
    rows = _rows(result, objective)
    ax = new_axes(ax, WIDTH, HEIGHT)
    from matplotlib.ticker import MaxNLocator

    workloads = list(dict.fromkeys(row.workload for row in rows))
    for number, workload in enumerate(workloads):
        own = [row for row in rows if row.workload == workload]
        _draw(ax, own, device_look(number)[0], named=number == 0)
        _name(ax, own, workload)
    values = [row.value for row in rows if row.value]
    if values and max(values) > FAR * min(values):
        ax.set_yscale("log")
    ax.set_xlabel("devices")
    ax.set_ylabel(f"value{unit_of(rows[0].objective)}")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.spines[["top", "right"]].set_visible(False)
    head(ax, f"{rows[0].objective}: {len(rows)} plans of {len(workloads)} workloads")
    return ax


def _rows(result: SweepResult, objective: str | None) -> list[SweepRow]:
    """Return the rows with a plan for the objective."""
    with_plan = [row for row in result.rows if row.value is not None]
    known = list(dict.fromkeys(row.objective for row in with_plan))
    wanted = objective if objective is not None else next(iter(known), "")
    if wanted not in known:
        raise OptionError(
            f"objective = {shown(objective)}: must be {one_of(wanted, known or ('none: no plan',))}"
        )
    return [row for row in with_plan if row.objective == wanted]


def _draw(ax: Axes, rows: Sequence[SweepRow], colour: str, named: bool) -> None:
    """Draw the plans of a workload; with `named` the marks get the labels of the legend."""
    labels = ("value", "bound", "Pareto front") if named else (None, None, None)
    at = [row.devices for row in rows]
    values, bounds = [row.value or 0.0 for row in rows], [row.bound or 0.0 for row in rows]
    ax.vlines(at, bounds, values, colors=colour, alpha=0.6)
    ax.plot(at, values, "o", color=colour, markersize=4, label=labels[0])
    ax.plot(at, bounds, "_", color=colour, markersize=10, label=labels[1])
    front = pareto_front(rows)
    ax.step(
        [row.used for row in front],
        [row.value or 0.0 for row in front],
        ".-",
        where="post",
        color=colour,
        alpha=0.6,
        label=labels[2],
    )


def _name(ax: Axes, rows: Sequence[SweepRow], workload: str) -> None:
    """Write the name of a workload at the right end of its plans."""
    last = max(rows, key=lambda row: (row.devices, -(row.value or 0.0)))
    ax.annotate(
        workload,
        (last.devices, last.value or 0.0),
        xytext=(6, 0),
        textcoords="offset points",
        verticalalignment="center",
        fontsize="x-small",
        color=ink(),
        annotation_clip=False,
    )
