"""Table 1 continued with the integer programs and searches, and what GPipe's objective changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paper_tables.cells import PERCENT, SECONDS, excess, minimum, note
from paper_tables.measurement import Measurement
from paper_tables.model import Cell, Row, Table
from paper_tables.published import Published

IP, GPIPE = "1 continued", "GPipe"
SPLITS = {"convex": "contiguous", "free": "noncontiguous"}
PAPER_GPIPE = 0.06


def programs(measurements: Sequence[Measurement], published: Published) -> Table:
    """Time per sample of convex and free splits, by integer programs and by local search."""
    rows = [Row(m.entry, _solved(m, published.table1.get(m.entry.name, {}))) for m in measurements]
    notes = [
        text
        for split in SPLITS
        for text in note(
            f"{split} split not proven within the gap", [m for m in measurements if _open(m, split)]
        )
    ]
    title = "Table 1, continued. Time per sample (ms): convex and free splits, local search"
    notes += ["search, baseline: free splits by local search, ours and the paper's."]
    return Table(IP, title, rows, notes)


def gpipe(measurements: Sequence[Measurement], published: Published) -> Table:
    """What is lost under GPipe by a plan that is made for throughput."""
    chosen = [m for m in measurements if m.entry.name.endswith("_training")]
    rows = [Row(m.entry, _compared(m)) for m in chosen]
    far = [m for m in chosen if any(_loss(m, split) > PAPER_GPIPE for split in SPLITS)]
    title = "GPipe. Largest forward and largest backward load together (ms): plans for throughput, for GPipe"
    notes = ["T, G: plans for throughput and for GPipe; loss: of T against G; most: against G's bound."]
    notes += note(f"loses more than {PAPER_GPIPE:.0%}, the paper's figure", far)
    return Table(GPIPE, title, rows, notes)


def _solved(m: Measurement, paper: Mapping[str, Any]) -> dict[str, Cell]:
    cells = {}
    for split, column in SPLITS.items():
        plan = m.program(split)
        cells[split] = minimum(plan.value, paper.get(column))
        seconds = paper.get(f"paper_ip_{column}_runtime")
        cells[f"{split} s"] = Cell(plan.runtime_seconds, seconds, form=SECONDS)
        cells[f"{split} gap"] = Cell(plan.gap, form=PERCENT)
        cells[f"{split} by"] = Cell(plan.backend)
    search, baseline = m.searched("local_search"), m.searched("local_search_baseline")
    cells["search"] = minimum(search.value if search else None, paper.get("local_search"))
    cells["search s"] = Cell(search.runtime_seconds if search else None, form=SECONDS)
    cells["baseline"] = Cell(baseline.value if baseline else None, paper.get("local_search"))
    return cells


def _compared(m: Measurement) -> dict[str, Cell]:
    cells = {}
    for split in SPLITS:
        plan = m.program(split, "gpipe")
        cells[f"{split} T"] = Cell(m.under_gpipe(split))
        cells[f"{split} G"] = Cell(plan.value)
        cells[f"{split} loss"] = Cell(_loss(m, split), form=PERCENT)
        cells[f"{split} most"] = Cell(excess(m.under_gpipe(split), plan.bound), form=PERCENT)
    return cells


def _loss(m: Measurement, split: str) -> float:
    return m.under_gpipe(split) / m.program(split, "gpipe").value - 1


def _open(m: Measurement, split: str) -> bool:
    return m.program(split).gap > m.effort.gap + 1e-9
