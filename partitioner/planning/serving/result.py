"""The layouts of a server that were found, and their table as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.text import Text

from partitioner.base.errors import OptionError
from partitioner.base.markup import html_table
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, render
from partitioner.exports.device_map import HOST
from partitioner.exports.llama_cpp import arguments
from partitioner.planning.pools.pool import PooledKind, unused_in
from partitioner.planning.serving.costs import BOTH, DECODE, PREFILL, ServingLoad
from partitioner.planning.serving.pipelines import ServingPipeline

NAMES = (
    "copies x (kind TP tensor degree PP groups in a pipeline), EP expert degree, B sequences of a step; "
    "+ other pipelines, which take requests by their speed, or after prefill generate (decode)"
)


@dataclass(frozen=True)
class ServingRow:
    """Pipelines that serve side by side; each takes requests by its speed, or one half of each request.

    Parameters
    ----------
    pipelines
        One or several, of unlike GPUs.
    """

    pipelines: tuple[ServingPipeline, ...]

    @property
    def tokens_per_second(self) -> float:
        """Tokens that all pipelines generate, those that only do so no more than prompts are taken."""
        return self._rate(BOTH) + min(self._rate(PREFILL), self._rate(DECODE))

    def _rate(self, role: str) -> float:
        return sum(each.tokens_per_second for each in self.pipelines if each.layout.role == role)

    @property
    def idle(self) -> tuple[str, float]:
        """Of separate servers those that wait for the others, and the part of the time that they do."""
        rates = {role: self._rate(role) for role in (PREFILL, DECODE)}
        role = max(rates, key=lambda each: rates[each])
        return role, 1 - self.tokens_per_second / rates[role] if rates[role] else 0.0

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
        """The share of the requests that each pipeline takes, of those that do the same."""
        return tuple(each.tokens_per_second / self._rate(each.layout.role) for each in self.pipelines)

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
    best_of
        The best row with prompts and generated tokens on the ``"same"`` servers and on ``"separate"`` ones.
    wanted, fewer
        The tokens per second that were asked for, and those that no smaller or cheaper part of the pool
        exceeds; None where all of the pool was to be used.
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
    best_of: Mapping[str, ServingRow] = field(default_factory=dict)
    wanted: float | None = None
    fewer: float | None = None

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
        fields = ("bound", "tried", "solved", "complete", "users", "wanted", "fewer")
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
        best_of = {name: row.tokens_per_second for name, row in self.best_of.items()}
        return {**asked, "load": load, "pool": pool, "best_of": best_of, "layouts": rows}

    def to_json(self) -> str:
        """Return everything as a JSON object."""
        return json.dumps(self.as_dict(), indent=2)

    def settings(self) -> str:
        """Return llama.cpp's arguments for the best layout of one user.

        Raises
        ------
        OptionError
            If it is not for one user, or has a tensor degree, which llama.cpp has not.
        """
        (pipeline, *_), layout = self.best.pipelines, self.best.pipelines[0].layout
        if self.users != 1 or max(layout.tensor) > 1:
            raise OptionError(f"settings: are for one user and GPUs that divide no layer, not {layout.name}")
        slots = [HOST if slot is None else slot for slot in pipeline.placed]
        first = pipeline.blocks.start
        experts = [layer - first for layer in pipeline.experts]
        return arguments([*(slots[i] for i in pipeline.blocks), slots[-1]], experts)

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
        notes = [f"not worth using: {idle}"] if unused else []
        notes += [line for line in (_fewest_line(self), _servers_line(self)) if line]
        return render([Text(head), table, *stages, *map(Text, notes), Text(NAMES)], width)


def _stage_lines(pipeline: ServingPipeline) -> list[str]:
    dealt = ", ".join(f"{count} on {kind}" for kind, count in pipeline.stages)
    role = "" if pipeline.layout.role == BOTH else f" for {pipeline.layout.role}"
    lines = [f"layers of the first's stages{role}: {dealt}"]
    if pipeline.experts:
        lines.append(f"the experts of {len(pipeline.experts)} layers on GPUs are on the CPU")
    return lines


def _fewest_line(plan: ServingPlan) -> str:
    """Return which part of the pool suffices, and what no smaller one exceeds; empty where all was asked."""
    if plan.wanted is None or plan.fewer is None:
        return ""
    have = ", ".join(f"{kind.count} {kind.name}" for kind in plan.pool)
    proven = plan.fewer < plan.wanted
    less = f"no smaller or cheaper part has more than {plan.fewer:,.1f}" if proven else "others may do"
    return (
        f"{have} for {plan.wanted:,.1f} tokens/s; {less if plan.fewer else 'no other is smaller or cheaper'}"
    )


def _servers_line(plan: ServingPlan) -> str:
    """Return what prompts and generated tokens on the other sort of servers would do, and why."""
    best = max(plan.best_of, key=lambda name: plan.best_of[name].tokens_per_second, default="")
    other = next((row for name, row in plan.best_of.items() if name != best), None)
    if other is None:
        return ""
    rate = f"prefill and decode on {'the same' if best == 'separate' else 'separate'} servers: "
    rate += f"{other.tokens_per_second:,.1f} tokens/s"
    if best == "same":
        role, idle = other.idle
        return f"{rate}; those for {role} would wait {idle:.0%} of the time"
    busy = max(each.prompts for each in other.pipelines)
    same, apart = (sum(map(_in_flight, row.pipelines)) for row in (other, plan.best))
    return (
        f"{rate}; prompts take {busy:.0%} of the time between two tokens there, "
        f"and {same:,} sequences get some at once, here {apart:,}"
    )


def _in_flight(pipeline: ServingPipeline) -> int:
    """Return the sequences that get tokens at once in all copies."""
    layout = pipeline.layout
    return 0 if layout.role == PREFILL else layout.copies * layout.sequences


def _as_dict(pipeline: ServingPipeline, share: float) -> dict[str, Any]:
    layout = pipeline.layout
    kinds = [
        {"kind": kind.name, "tensor": t, "groups": g}
        for kind, t, g in zip(layout.kinds, layout.tensor, layout.groups, strict=True)
    ]
    fields = ("tokens_per_second", "bound", "ttft", "tpot", "memory")
    stages = [{"kind": kind, "layers": count} for kind, count in pipeline.stages]
    sizes = {
        "role": layout.role, "copies": layout.copies, "batch": layout.batch, "expert": layout.expert,
    }  # fmt: skip
    found = {name: getattr(pipeline, name) for name in fields}
    return {**sizes, "kinds": kinds, "share": share, **found, "stages": stages}
