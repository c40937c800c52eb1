"""The layouts of a model on a cluster that were found, and their table as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from partitioner.base.markup import html_table
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, render
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.layouts.runtime_files import Training, settings_of


@dataclass(frozen=True)
class LayoutRow:
    """A layout of the table, simulated.

    Parameters
    ----------
    layout
        The degrees, the microbatch, the schedule.
    seconds
        Of a batch.
    tokens_per_second
        Of all GPUs together.
    tflops_per_gpu, mfu
        The model's operations, without those that are computed again: 10^12 a second and GPU, and as a share
        of the peak.
    memory
        Bytes of the fullest GPU.
    bubble
        The share of time in which devices of a pipeline wait.
    exposed
        The share of time in which gradients are exchanged and nothing is processed.
    blocks
        The blocks of every stage, in the order of the pipeline.
    """

    layout: ClusterLayout
    seconds: float
    tokens_per_second: float
    tflops_per_gpu: float
    mfu: float
    memory: float
    bubble: float
    exposed: float
    blocks: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LayoutPlan:
    """Layouts of a model on a cluster, the fastest first.

    Parameters
    ----------
    rows
        The best layouts.
    bound
        Seconds that a batch takes at least in every layout that was looked at, however layers are dealt to
        stages; these are all of the space if the search is complete.
    tried, simulated
        How many layouts there are, and how many were simulated; closed forms show that the others are slower.
    complete
        Whether all layouts were looked at before the time limit.
    cluster, global_batch, sequence, runtime
        What was asked.
    runtime_seconds
        How long it took.
    """

    rows: tuple[LayoutRow, ...]
    bound: float
    tried: int
    simulated: int
    complete: bool
    cluster: Cluster
    global_batch: int
    sequence: int
    runtime: str
    runtime_seconds: float

    @property
    def best(self) -> LayoutRow:
        """The fastest layout."""
        return self.rows[0]

    @property
    def gap(self) -> float:
        """How far the best layout is from the bound, as a share of its time."""
        return 1 - self.bound / self.best.seconds

    def __repr__(self) -> str:
        return f"<LayoutPlan: {self.best.layout.name}, {self.best.seconds:.4g} s a batch>"

    def _repr_html_(self) -> str:
        rows = [(row.layout.name, f"{row.seconds:.4g}", f"{row.mfu:.1%}") for row in self.rows]
        return html_table(repr(self)[1:-1], ("layout", "seconds", "MFU"), rows)

    def summary(self, width: int | None = None) -> str:
        """Return the table of the layouts as text."""
        return layout_table(self, width)

    def settings(self, number: int = 0) -> str:
        """Return the settings of the runtime that run a layout: arguments, TOML, JSON or overrides.

        Parameters
        ----------
        number
            The row of the layout, from 0.

        Raises
        ------
        OptionError
            If no runtime was asked for.
        """
        row = self.rows[number]
        return settings_of(self.runtime, Training(row.layout, self.global_batch, self.sequence, row.blocks))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        fields = ("bound", "gap", "tried", "simulated", "complete", "global_batch", "sequence", "runtime")
        asked = {name: getattr(self, name) for name in fields}
        cluster = {**vars(self.cluster), "device": self.cluster.device.name}
        return {**asked, "cluster": cluster, "layouts": [asdict(row) for row in self.rows]}

    def to_json(self) -> str:
        """Return everything as a JSON object."""
        return json.dumps(self.as_dict(), indent=2)


FIGURES: dict[str, Callable[[LayoutRow], str]] = {
    "s a batch": lambda row: f"{row.seconds:.4g}",
    "tokens/s": lambda row: f"{row.tokens_per_second:,.0f}",
    "TFLOP/s": lambda row: f"{row.tflops_per_gpu:.0f}",
    "MFU": lambda row: f"{row.mfu:.1%}",
    "GB": lambda row: f"{row.memory / 1e9:.1f}",
    "bubble": lambda row: f"{row.bubble:.1%}",
    "exposed": lambda row: f"{row.exposed:.1%}",
}
NARROW = ("s a batch", "MFU", "GB", "bubble", "exposed")
DEGREES = (
    "TP tensor, PP pipeline (x stages on a device), DP data, CP context, EP expert degree; MB sequences of a "
    "microbatch; Z ZeRO; full, selective: recomputation"
)
COLUMNS = "TFLOP/s and GB of a GPU; exposed: gradients are exchanged and nothing else runs"


def layout_table(plan: LayoutPlan, width: int | None = None) -> str:
    """Return a line for each layout, below one that says how far the first can be from the best."""
    wide = columns(width) >= WIDE
    names = tuple(FIGURES) if wide else NARROW
    table = figure_table(wide, ("layout",), names)
    for row in plan.rows:
        table.add_row(*map(Text, (row.layout.name, *(FIGURES[name](row) for name in names))))
    ended = "" if plan.complete else "; the time limit ended the search"
    best = plan.best
    head = (
        f"{best.layout.name}: {best.seconds:.4g} s a batch, {best.tokens_per_second:,.0f} tokens/s, "
        f"{best.seconds / plan.bound - 1:.1%} above the bound of {plan.bound:.4g} s "
        f"over all {plan.tried} layouts ({plan.simulated} simulated, {plan.runtime_seconds:.1f} s){ended}"
    )
    return render([Text(head), table, *map(Text, (DEGREES, COLUMNS, _why_second(plan)))], width)


def _why_second(plan: LayoutPlan) -> str:
    """Return why the runner-up loses: the part of its time that exceeds the winner's most."""
    if len(plan.rows) < 2:
        return ""
    first, second = plan.rows[:2]
    mine, others = _parts(first), _parts(second)
    more = {name: others[name] - mine[name] for name in mine}
    worst = max(more, key=lambda name: more[name])
    return f"the second takes {second.seconds - first.seconds:.3g} s more, most of it in {worst}"


def _parts(row: LayoutRow) -> dict[str, float]:
    """Return the seconds of a batch by what they are spent on."""
    piped = row.seconds * (1 - row.exposed)
    return {
        "processing": piped * (1 - row.bubble),
        "waiting in the pipeline": piped * row.bubble,
        "exposed exchange": row.seconds * row.exposed,
    }
