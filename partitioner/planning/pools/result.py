"""The layouts of training on a pool that were found, and their table as text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from partitioner.base.markup import html_table
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, render
from partitioner.planning.pools.pool import PooledKind, unused_in
from partitioner.planning.pools.training import PartRun, PoolLayout, PoolRun

NAMES = (
    "copies x (kind TP tensor degree PP groups in a pipeline) + further replicas; MB sequences of a "
    "microbatch; Z1 replicas divide the optimizer's state; full: recomputation, as a column the memory used"
)


@dataclass(frozen=True)
class PoolPipeline:
    """One of the equal pipelines of a part of the pool.

    Parameters
    ----------
    copies
        How many of them there are.
    stages
        The kind of each stage, its GPUs and its blocks, in the order of the pipeline.
    sequences
        The sequences of a batch that each of them runs.
    memory
        The largest part of a GPU's usable memory that is taken.
    bubble
        The share of time in which its stages wait, until its last pass ends.
    used
        How many GPUs of each kind all copies take.
    """

    copies: int
    stages: tuple[tuple[str, int, int], ...]
    sequences: int
    memory: float
    bubble: float
    used: dict[str, int]

    @classmethod
    def of(cls, run: PartRun) -> PoolPipeline:
        """Return the figures of a simulated pipeline."""
        names = [run.part.kinds[k].name for k in run.kinds]
        return cls(
            run.part.copies,
            tuple(zip(names, run.tensor, run.blocks, strict=True)),
            run.share * run.layout.microbatch,
            run.full,
            run.passes[1],
            run.used,
        )


@dataclass(frozen=True)
class PoolRow:
    """A layout of the table, simulated.

    Parameters
    ----------
    layout
        The parts of the pool, the microbatch, and what is computed again.
    seconds
        Of a batch.
    tokens_per_second
        Of all GPUs together.
    exposed
        The share of the batch in which gradients are exchanged and nothing is processed, and the optimizer
        steps.
    pipelines
        The pipelines of each part.
    """

    layout: PoolLayout
    seconds: float
    tokens_per_second: float
    exposed: float
    pipelines: tuple[PoolPipeline, ...]

    @classmethod
    def of(cls, run: PoolRun, tokens: int) -> PoolRow:
        """Return the figures of a simulated layout with a batch of some tokens."""
        total, ends = run.simulated
        pipelines = tuple(map(PoolPipeline.of, run.parts))
        return cls(run.layout, run.seconds, tokens / run.seconds, 1 - ends / total, pipelines)

    def unused(self, pool: tuple[PooledKind, ...]) -> dict[str, int]:
        """Return how many GPUs of each kind have no part in it; kinds without any are left out."""
        return unused_in(pool, (pipeline.used for pipeline in self.pipelines))


@dataclass(frozen=True, eq=False)
class PoolPlan:
    """Layouts of training on a pool, the fastest first.

    Parameters
    ----------
    rows
        The best layouts.
    bound
        Seconds that a batch takes at least in every layout that was looked at, however its layers and the
        batch are divided.
    tried, simulated
        How many layouts there are, and how many were dealt and simulated; bounds show that the others are
        slower.
    complete
        Whether the search ended before its time limit.
    pool, global_batch, sequence
        What was asked.
    runtime_seconds
        How long it took.
    """

    rows: tuple[PoolRow, ...]
    bound: float
    tried: int
    simulated: int
    complete: bool
    pool: tuple[PooledKind, ...]
    global_batch: int
    sequence: int
    runtime_seconds: float

    @property
    def best(self) -> PoolRow:
        """The fastest layout."""
        return self.rows[0]

    @property
    def gap(self) -> float:
        """How far the best layout is from the bound, as a share of its time."""
        return (self.best.seconds - self.bound) / self.best.seconds

    def __repr__(self) -> str:
        return f"<PoolPlan: {self.best.layout.name}, {self.best.seconds:.4g} s a batch>"

    def _repr_html_(self) -> str:
        rows = [(row.layout.name, f"{row.seconds:.4g}", f"{row.exposed:.1%}") for row in self.rows]
        return html_table(repr(self)[1:-1], ("layout", "seconds", "exposed"), rows)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        fields = ("bound", "gap", "tried", "simulated", "complete", "global_batch", "sequence")
        asked = {name: getattr(self, name) for name in fields}
        pool = {kind.name: {"count": kind.count, "memory": kind.memory} for kind in self.pool}
        return {**asked, "pool": pool, "layouts": [self._row(row) for row in self.rows]}

    def to_json(self) -> str:
        """Return everything as a JSON object."""
        return json.dumps(self.as_dict(), indent=2)

    def _row(self, row: PoolRow) -> dict[str, Any]:
        layout, fields = row.layout, ("seconds", "tokens_per_second", "exposed")
        settings = {name: getattr(layout, name) for name in ("microbatch", "recompute", "zero")}
        pipelines = []
        for each in row.pipelines:
            stages = [dict(zip(("kind", "gpus", "blocks"), stage, strict=True)) for stage in each.stages]
            pipelines.append({**vars(each), "stages": stages})
        figures = {name: getattr(row, name) for name in fields}
        unused = row.unused(self.pool)
        return {"name": layout.name, **settings, **figures, "unused": unused, "pipelines": pipelines}

    def summary(self, width: int | None = None) -> str:
        """Return the table of the layouts as text, below a line with the bound over all of them."""
        best, wide = self.best, columns(width) >= WIDE
        ended = "" if self.complete else "; the time limit ended the search"
        head = (
            f"{best.seconds:.4g} s a batch, {best.tokens_per_second:,.0f} tokens/s, "
            f"{best.seconds / self.bound - 1:.1%} above the bound of {self.bound:.4g} s over all "
            f"{self.tried} layouts ({self.simulated} simulated, {self.runtime_seconds:.1f} s){ended}"
        )
        table = figure_table(wide, ("layout",), ("s a batch", "full", "bubble", "exposed"))
        for row in self.rows:
            full = max(each.memory for each in row.pipelines)
            bubble = max(each.bubble for each in row.pipelines)
            figures = (f"{row.seconds:.4g}", f"{full:.0%}", f"{bubble:.1%}", f"{row.exposed:.1%}")
            table.add_row(Text(row.layout.name), *map(Text, figures))
        stages = [Text(_dealt(pipeline)) for pipeline in best.pipelines]
        idle = ", ".join(f"{count} {name}" for name, count in best.unused(self.pool).items())
        notes = [Text(f"not worth using: {idle}")] if idle else []
        return render([Text(head), table, *stages, *notes, Text(NAMES)], width)


def _dealt(pipeline: PoolPipeline) -> str:
    stages = ", ".join(f"{blocks} on {gpus} {kind}" for kind, gpus, blocks in pipeline.stages)
    each = "each of " * (pipeline.copies > 1)
    return (
        f"blocks of the first's stages: {stages}; {each}{pipeline.copies} with {pipeline.sequences} sequences"
    )
