"""The layouts of a model on a cluster that were found, and their table as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from partitioner.base.markup import html_table
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, render
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.layouts.runtime_files import Training, writer_of
from partitioner.planning.layouts.timing import LayoutRun

SAME = 0.0005  # relative difference of times below which the table shows none


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


@dataclass(frozen=True)
class LayoutChange:
    """What a change of the cluster, or of the numbers, would buy.

    Parameters
    ----------
    change
        What is changed, or the name of the device that is taken instead.
    best
        The fastest layout then; None if there is none.
    gain
        Its tokens per second, as a multiple of those without the change.
    bound
        Seconds that a batch takes at least in every layout that was looked at.
    complete
        Whether all layouts were looked at.
    reason
        Why there is no layout; empty if there is one.
    """

    change: str
    best: LayoutRow | None
    gain: float
    bound: float
    complete: bool
    reason: str = ""


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
    changes
        What changes of the cluster would buy, if that was asked for: each is compared with the fastest layout
        before unequal stages were sought.
    tokens_per_second
        The rate for which the GPUs of the cluster are the fewest; None if their number was given.
    runs
        The simulation of every layout in `rows`.
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
    changes: tuple[LayoutChange, ...] = ()
    tokens_per_second: float | None = None
    runs: tuple[LayoutRun, ...] = field(default=(), repr=False)

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

    def headline(self) -> list[str]:
        """Return a sentence on the best layout, after one on the number of GPUs if that was sought."""
        ended = "" if self.complete else "; the time limit ended the search"
        best, head = self.best, []
        if self.tokens_per_second is not None:
            rate = f"{self.tokens_per_second:,.0f} tokens/s"
            head = [f"{self.cluster.gpus} GPUs, the fewest with {rate} in equal stages"]
        return [
            *head,
            f"{best.layout.name}: {best.seconds:.4g} s a batch, {best.tokens_per_second:,.0f} tokens/s, "
            f"{best.seconds / self.bound - 1:.1%} above the bound of {self.bound:.4g} s "
            f"over all {self.tried} layouts ({self.simulated} simulated, "
            f"{self.runtime_seconds:.1f} s){ended}",
        ]

    def why_second(self) -> str:
        """Return why the runner-up loses: the part of its time that exceeds the winner's most."""
        if len(self.rows) < 2:
            return ""
        first, second = self.rows[:2]
        later = second.seconds - first.seconds
        if later < SAME * first.seconds:
            return "the second takes as long"
        mine, others = _parts(first), _parts(second)
        more = {name: others[name] - mine[name] for name in mine}
        worst = max(more, key=lambda name: more[name])
        return f"the second takes {later:.3g} s more, most of it in {worst}"

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
        return writer_of(self.runtime)(Training(row.layout, self.global_batch, self.sequence, row.blocks))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        fields = ("bound", "gap", "tried", "simulated", "complete", "global_batch", "sequence", "runtime")
        asked = {name: getattr(self, name) for name in fields}
        cluster = {**vars(self.cluster), "device": self.cluster.device.name}
        found: dict[str, Any] = {"layouts": [asdict(row) for row in self.rows]}
        if self.tokens_per_second is not None:
            found["tokens_per_second"] = self.tokens_per_second
        if self.changes:
            found["changes"] = [asdict(change) for change in self.changes]
        return {**asked, "cluster": cluster, **found}

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
CHANGES = (
    "gain: tokens/s with the change over those without it, equal stages in both; *: not all layouts were "
    "looked at"
)
CHANGE_TEXTS, CHANGE_FIGURES = ("change", "layout"), ("tokens/s", "gain", "GB", "to bound")
COLUMNS = "TFLOP/s and GB of a GPU; exposed: gradients are exchanged and nothing else runs"


def layout_table(plan: LayoutPlan, width: int | None = None) -> str:
    """Return a line for each layout, below one that says how far the first can be from the best."""
    wide = columns(width) >= WIDE
    names = tuple(FIGURES) if wide else NARROW
    table = figure_table(wide, ("layout",), names)
    for row in plan.rows:
        table.add_row(*map(Text, (row.layout.name, *(FIGURES[name](row) for name in names))))
    head = map(Text, plan.headline())
    below = map(Text, (DEGREES, COLUMNS, plan.why_second()))
    parts: list[RenderableType] = [*head, table, *below]
    if plan.changes:
        parts += [Text(""), change_table(plan.changes, wide), Text(CHANGES)]
    return render(parts, width)


def change_table(changes: Sequence[LayoutChange], wide: bool) -> Table:
    """Return a line for each change: the tokens per second that it buys, and the layout that has them."""
    table = figure_table(wide, CHANGE_TEXTS, CHANGE_FIGURES[: None if wide else 2])
    for change in changes:
        table.add_row(*map(Text, change_cells(change)[: len(table.columns)]))
    return table


def change_cells(change: LayoutChange) -> list[str]:
    """Return the texts of a change: its name, layout, tokens per second, gain, memory, and gap."""
    best, mark = change.best, "" if change.complete else "*"
    if best is None:
        return [change.change, change.reason, *["-"] * len(CHANGE_FIGURES)]
    figures = (f"{best.tokens_per_second:,.0f}", f"{change.gain:.2f}{mark}", f"{best.memory / 1e9:.1f}")
    return [change.change, best.layout.name, *figures, f"{best.seconds / change.bound - 1:.1%}"]


def _parts(row: LayoutRow) -> dict[str, float]:
    """Return the seconds of a batch by what they are spent on."""
    piped = row.seconds * (1 - row.exposed)
    return {
        "processing": piped * (1 - row.bubble),
        "waiting in the pipeline": piped * row.bubble,
        "exposed exchange": row.seconds * row.exposed,
    }
