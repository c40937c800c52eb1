"""Tables 1, 2 and 3 of the paper, filled with our values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paper_tables.catalogue import OPERATORS
from paper_tables.measurement import Measurement
from paper_tables.model import Cell, Row, Table
from paper_tables.published import Published
from paper_tables.verdict import (
    BETTER,
    DIFFERENT,
    EQUAL,
    against_program,
    last_digit,
    must_agree,
    smaller_is_better,
)

Record = Mapping[str, Any]
COUNT, PERCENT, RATIO = ",d", ".2%", ".3f"
COLUMNS_2 = {"contiguous": "DP", "expert": "expert", "single_accelerator": "single"}


def table1(measurements: Sequence[Measurement], published: Published) -> Table:
    """Time per sample: the largest load of a device, in milliseconds."""
    rows = [Row(m.entry, _times(m, published.table1.get(m.entry.name, {}))) for m in measurements]
    experts = [m for m in measurements if m.expert is not None and not m.expert.feasible]
    notes = [
        *_note("not proven optimal", [m for m in measurements if m.plan.status != "optimal"]),
        *_note("the expert split breaks a rule", experts),
        *_note("single breaks the memory limit", [m for m in measurements if not m.single.feasible]),
    ]
    title = "Table 1. Time per sample (ms): DP, DPL, expert split, single accelerator"
    return Table(1, title, rows, notes)


def table2(measurements: Sequence[Measurement], published: Published) -> Table:
    """Throughput in relation to that of the exact dynamic program."""
    rows = [Row(m.entry, _throughputs(m, published.table1.get(m.entry.name, {}))) for m in measurements]
    return Table(2, "Table 2. Throughput in relation to that of DP, the best pipeline", rows)


def table3(measurements: Sequence[Measurement], published: Published) -> Table:
    """What is lost if a pipeline may only be cut between layers."""
    chosen = [m for m in measurements if m.entry.folder == OPERATORS]
    rows = [Row(m.entry, _granularities(m, published.table3.get(m.entry.name, {}))) for m in chosen]
    notes = _note("the file gives no layers", [m for m in chosen if m.layered is None])
    for m in chosen:
        for reason in m.layered.notes if m.layered else ():
            notes += _note(reason, [m])
    title = "Table 3. Time per sample (ms) of DP, cut between operators or between layers"
    return Table(3, title, rows, notes)


TABLES: Mapping[int, Callable[[Sequence[Measurement], Published], Table]] = {
    1: table1,
    2: table2,
    3: table3,
}


def _times(m: Measurement, paper: Record) -> dict[str, Cell]:
    gap = _gap(m.linear.value, m.plan.value)
    return {
        "nodes": _count(len(m.graph), paper.get("nodes")),
        "ideals": _count(m.ideals, paper.get("ideals")),
        "DP": _optimum(m, paper.get("contiguous"), paper.get("dp_cpp_value")),
        "DP s": Cell(m.plan.runtime_seconds, paper.get("paper_dp_runtime")),
        "DPL": _minimum(m.linear.value, paper.get("dpl")),
        "gap": Cell(gap, _gap(paper.get("dpl"), paper.get("contiguous")), form=PERCENT),
        "expert": _fixed(m.expert.value if m.expert else None, paper.get("expert")),
        "single": _measured(m.single.value, paper.get("single_accelerator")),
    }


def _throughputs(m: Measurement, paper: Record) -> dict[str, Cell]:
    """Ratios, which the paper prints with two decimals; a better DP makes the others smaller."""
    expert = m.expert.value if m.expert else None
    ours = {"contiguous": m.plan.value, "expert": expert, "single_accelerator": m.single.value}
    improved = smaller_is_better(m.plan.value, paper.get("contiguous")) == BETTER
    cells = {}
    for name, value in ours.items():
        ratio, printed = _ratio(m.plan.value, value), _ratio(paper.get("contiguous"), paper.get(name))
        verdict = must_agree(ratio, printed)
        explained = improved and verdict == DIFFERENT
        cells[COLUMNS_2[name]] = Cell(ratio, printed, BETTER if explained else verdict, RATIO)
    return cells


def _granularities(m: Measurement, paper: Record) -> dict[str, Cell]:
    layered = m.layered.value if m.layered else None
    gain = _gap(layered, m.plan.value)
    return {
        "operators": _minimum(m.plan.value, paper.get("operator")),
        "layers": _minimum(layered, paper.get("layer")),
        "gain": Cell(gain, _gap(paper.get("layer"), paper.get("operator")), form=PERCENT),
    }


def _note(text: str, measurements: Sequence[Measurement]) -> list[str]:
    """A remark on some workloads, if there are any."""
    names = ", ".join(m.entry.name for m in measurements)
    return [f"{names}: {text}."] if names else []


def _optimum(m: Measurement, printed: float | None, program: float | None) -> Cell:
    """The exact value, held against the paper and, where it agrees, against the paper's program."""
    verdict = smaller_is_better(m.plan.value, printed)
    if verdict == EQUAL and program is not None:
        verdict = against_program(m.plan.value, program)
    return Cell(m.plan.value, printed, verdict)


def _minimum(ours: float | None, published: float | None) -> Cell:
    return Cell(ours, published, smaller_is_better(ours, published))


def _fixed(ours: float | None, published: float | None) -> Cell:
    return Cell(ours, published, must_agree(ours, published))


def _measured(ours: float, published: float | None) -> Cell:
    """A value of six significant digits."""
    unit = last_digit(published) if published else 1.0
    return Cell(ours, published, must_agree(ours, published, unit))


def _count(ours: int | None, published: int | None) -> Cell:
    return Cell(ours, published, must_agree(ours, published, unit=1), COUNT)


def _ratio(base: float | None, value: float | None) -> float | None:
    return None if base is None or value is None else base / value


def _gap(value: float | None, optimum: float | None) -> float | None:
    return None if value is None or optimum is None else value / optimum - 1
