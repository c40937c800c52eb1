"""The layouts of a server that were found, and their table as text."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from partitioner.base.markup import html_table
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, render
from partitioner.planning.pools.pool import PooledKind, unused_in
from partitioner.planning.serving.costs import ServingLoad
from partitioner.planning.serving.pipelines import ServingPipeline

NAMES = (
    "copies x (kind TP tensor degree PP groups in a pipeline), EP expert degree, B sequences of a step; "
    "+ separate pipelines, which take requests by their speed"
)


@dataclass(frozen=True)
class ServingRow:
    """Pipelines that serve side by side; each takes requests by its speed.

    Parameters
    ----------
    pipelines
        One or several, of unlike GPUs.
    """

    pipelines: tuple[ServingPipeline, ...]

    @property
    def tokens_per_second(self) -> float:
        """Tokens that all pipelines generate."""
        return sum(each.tokens_per_second for each in self.pipelines)

    @property
    def ttft(self) -> float:
        """Milliseconds until the first token in the slowest pipeline."""
        return max(each.ttft for each in self.pipelines)

    @property
    def tpot(self) -> float:
        """Milliseconds for each further token in the slowest pipeline."""
        return max(each.tpot for each in self.pipelines)

    @property
    def name(self) -> str:
        """The names of the layouts."""
        return " + ".join(each.layout.name for each in self.pipelines)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the requests that each pipeline takes."""
        return tuple(each.tokens_per_second / self.tokens_per_second for each in self.pipelines)

    def unused(self, pool: tuple[PooledKind, ...]) -> dict[str, int]:
        """Return how many GPUs of each kind have no part in it; kinds without any are left out."""
        return unused_in(pool, (pipeline.used for pipeline in self.pipelines))


@dataclass(frozen=True, eq=False)
class ServingPlan:
    """Layouts of a server on a pool, those with the most tokens per second first.

    Parameters
    ----------
    rows
        The best layouts.
    bound
        Tokens per second that no layout of the space exceeds.
    tried, solved
        How many layouts there are, and of how many the layers were dealt; bounds show that the others are no
        better.
    complete
        Whether the search ended before its time limit.
    pool, load, users
        What was asked; `users` is 1 or None for any number.
    seconds
        How long it took.
    """

    rows: tuple[ServingRow, ...]
    bound: float
    tried: int
    solved: int
    complete: bool
    pool: tuple[PooledKind, ...]
    load: ServingLoad
    users: int | None
    seconds: float

    @property
    def best(self) -> ServingRow:
        """The layout with the most tokens per second."""
        return self.rows[0]

    def __repr__(self) -> str:
        return f"<ServingPlan: {self.best.name}, {self.best.tokens_per_second:,.1f} tokens/s>"

    def _repr_html_(self) -> str:
        rows = [(row.name, f"{row.tokens_per_second:,.1f}", f"{row.tpot:.3g}") for row in self.rows]
        return html_table(repr(self)[1:-1], ("layout", "tokens/s", "ms a token"), rows)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        fields = ("bound", "tried", "solved", "complete", "users")
        load = {name: None if value == math.inf else value for name, value in vars(self.load).items()}
        pool = {kind.name: {"count": kind.count, "memory": kind.memory} for kind in self.pool}
        asked = {name: getattr(self, name) for name in fields}
        rows = [
            {
                "tokens_per_second": row.tokens_per_second,
                "ttft": row.ttft,
                "tpot": row.tpot,
                "unused": row.unused(self.pool),
                "pipelines": [_as_dict(*pair) for pair in zip(row.pipelines, row.shares, strict=True)],
            }
            for row in self.rows
        ]
        return {**asked, "load": load, "pool": pool, "layouts": rows}

    def to_json(self) -> str:
        """Return everything as a JSON object."""
        return json.dumps(self.as_dict(), indent=2)

    def summary(self, width: int | None = None) -> str:
        """Return the table of the layouts as text, below a line with the bound over all of them."""
        best, wide = self.best, columns(width) >= WIDE
        ended = "" if self.complete else "; the time limit ended the search"
        more = self.bound / best.tokens_per_second - 1
        head = (
            f"{best.tokens_per_second:,.1f} tokens/s, at most {more:.1%} more in any of {self.tried} layouts "
            f"({self.solved} dealt, {self.seconds:.1f} s){ended}"
        )
        table = figure_table(wide, ("layout",), ("tokens/s", "ms to first", "ms a token", "full"))
        for row in self.rows:
            full = max(each.memory for each in row.pipelines)
            figures = (f"{row.tokens_per_second:,.1f}", f"{row.ttft:,.0f}", f"{row.tpot:.3g}", f"{full:.0%}")
            table.add_row(Text(row.name), *map(Text, figures))
        stages = [Text(line) for pipeline in best.pipelines for line in _stage_lines(pipeline)]
        unused = best.unused(self.pool)
        idle = ", ".join(f"{count} {name}" for name, count in unused.items())
        notes = [Text(f"not worth using: {idle}")] if unused else []
        return render([Text(head), table, *stages, *notes, Text(NAMES)], width)


def _stage_lines(pipeline: ServingPipeline) -> list[str]:
    dealt = ", ".join(f"{count} on {kind}" for kind, count in pipeline.stages)
    return [f"layers of the first's stages: {dealt}"]


def _as_dict(pipeline: ServingPipeline, share: float) -> dict[str, Any]:
    layout = pipeline.layout
    kinds = [
        {"kind": kind.name, "tensor": t, "groups": g}
        for kind, t, g in zip(layout.kinds, layout.tensor, layout.groups, strict=True)
    ]
    fields = ("tokens_per_second", "bound", "ttft", "tpot", "memory")
    stages = [{"kind": kind, "layers": count} for kind, count in pipeline.stages]
    sizes = {"copies": layout.copies, "batch": layout.batch, "expert": layout.expert}
    found = {name: getattr(pipeline, name) for name in fields}
    return {**sizes, "kinds": kinds, "share": share, **found, "stages": stages}
