"""Table 1 continued with Scotch, which is not the same program as in 2020."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paper_tables.cells import PERCENT, RATIO, excess, note, ratio
from paper_tables.measurement import AS_IN_PAPER, Measurement
from paper_tables.model import Cell, Row, Table
from paper_tables.published import Published
from partitioner import BackendUnavailable
from partitioner.methods.baselines.graph_partitioning.scotch import version

SCOTCH = "1 Scotch"


def scotch(measurements: Sequence[Measurement], published: Published) -> Table:
    """Time per sample of Scotch's parts beside the printed ones; a difference is no failure."""
    rows = [Row(m.entry, _cells(m, published.table1.get(m.entry.name, {}))) for m in measurements]
    heavy = [m for m in measurements if m.scotch is not None and not m.scotch.feasible]
    notes = [_which(), *note("Scotch's parts break a rule", heavy)]
    return Table(SCOTCH, "Table 1, continued. Time per sample (ms): DP, Scotch", rows, notes)


def _cells(m: Measurement, paper: Mapping[str, Any]) -> dict[str, Cell]:
    ours, printed = m.scotch.value if m.scotch else None, paper.get("scotch")
    return {
        "DP": Cell(m.plan.value, paper.get("contiguous")),
        "Scotch": Cell(ours, printed),
        "over DP": Cell(ratio(ours, m.plan.value), ratio(printed, paper.get("contiguous")), form=RATIO),
        "to printed": Cell(excess(ours, printed), form=PERCENT),
        "memory": Cell(_fullest(m), form=".0%"),
    }


def _fullest(m: Measurement) -> float | None:
    """The memory of the fullest device, as a share of its limit."""
    loads = m.scotch.loads if m.scotch else ()
    return max((load.memory / load.memory_limit for load in loads if load.memory_limit), default=None)


def _which() -> str:
    """The program, and what it was asked."""
    try:
        program = version()
    except BackendUnavailable as error:
        return f"ours are missing: {error}."
    asked = f"seed {AS_IN_PAPER.seed}, imbalance {AS_IN_PAPER.placing.imbalance:g}"
    return (
        f"{program}, {asked}; the version behind the printed values is not known, others find other parts: "
        "differences are expected. memory: of the fullest device, which Scotch does not look at."
    )
