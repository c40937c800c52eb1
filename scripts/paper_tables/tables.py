"""Tables 1, 2 and 3 of the paper, filled with our values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paper_tables.catalogue import LAYERS, OPERATORS
from paper_tables.cells import PERCENT, RATIO, count, excess, fixed, measured, minimum, note, ratio
from paper_tables.measurement import Measurement
from paper_tables.model import Cell, Row, Table
from paper_tables.published import Published
from paper_tables.verdict import BETTER, DIFFERENT, EQUAL, against_program, must_agree, smaller_is_better

Record = Mapping[str, Any]
PIPEDREAM = "1 PipeDream"
COLUMNS_2 = {"contiguous": "DP", "pipedream": "PipeDream", "expert": "expert", "single_accelerator": "single"}


def table1(measurements: Sequence[Measurement], published: Published) -> Table:
    """Time per sample: the largest load of a device, in milliseconds."""
    rows = [Row(m.entry, _times(m, published.table1.get(m.entry.name, {}))) for m in measurements]
    experts = [m for m in measurements if m.expert is not None and not m.expert.feasible]
    notes = [
        *note("not proven optimal", [m for m in measurements if m.plan.status != "optimal"]),
        *note("the expert split breaks a rule", experts),
        *note("single breaks the memory limit", [m for m in measurements if not m.single.feasible]),
    ]
    title = "Table 1. Time per sample (ms): DP, DPL, expert split, single accelerator"
    return Table(1, title, rows, notes)


def pipedream(measurements: Sequence[Measurement], published: Published) -> Table:
    """Time per sample of the baseline that keeps branchings whole, which is for layer graphs."""
    chosen = [m for m in measurements if m.entry.folder == LAYERS]
    rows = [Row(m.entry, _whole_branchings(m, published.table1.get(m.entry.name, {}))) for m in chosen]
    title = "Table 1, continued. Time per sample (ms) of layer graphs: DP, PipeDream"
    return Table(PIPEDREAM, title, rows, ["gap: what it costs to keep branchings whole."])


def table2(measurements: Sequence[Measurement], published: Published) -> Table:
    """Throughput in relation to that of the exact dynamic program."""
    rows = [Row(m.entry, _throughputs(m, published.table1.get(m.entry.name, {}))) for m in measurements]
    return Table(2, "Table 2. Throughput in relation to that of DP, the best pipeline", rows)


def table3(measurements: Sequence[Measurement], published: Published) -> Table:
    """What is lost if a pipeline may only be cut between layers."""
    chosen = [m for m in measurements if m.entry.folder == OPERATORS]
    rows = [Row(m.entry, _granularities(m, published.table3.get(m.entry.name, {}))) for m in chosen]
    notes = note("the file gives no layers", [m for m in chosen if m.layered is None])
    for m in chosen:
        for reason in m.layered.notes if m.layered else ():
            notes += note(reason, [m])
    title = "Table 3. Time per sample (ms) of DP, cut between operators or between layers"
    return Table(3, title, rows, notes)


def _times(m: Measurement, paper: Record) -> dict[str, Cell]:
    gap = excess(m.linear.value, m.plan.value)
    return {
        "nodes": count(len(m.graph), paper.get("nodes")),
        "ideals": count(m.ideals, paper.get("ideals")),
        "DP": _optimum(m, paper.get("contiguous"), paper.get("dp_cpp_value")),
        "DP s": Cell(m.plan.runtime_seconds, paper.get("paper_dp_runtime")),
        "DPL": minimum(m.linear.value, paper.get("dpl")),
        "gap": Cell(gap, excess(paper.get("dpl"), paper.get("contiguous")), form=PERCENT),
        "expert": fixed(m.expert.value if m.expert else None, paper.get("expert")),
        "single": measured(m.single.value, paper.get("single_accelerator")),
    }


def _whole_branchings(m: Measurement, paper: Record) -> dict[str, Cell]:
    best, ours, printed = paper.get("contiguous"), m.path.value if m.path else None, paper.get("pipedream")
    return {
        "DP": minimum(m.plan.value, best),
        "PipeDream": fixed(ours, printed),
        "gap": Cell(excess(ours, m.plan.value), excess(printed, best), form=PERCENT),
    }


def _throughputs(m: Measurement, paper: Record) -> dict[str, Cell]:
    """Ratios, which the paper prints with two decimals; a better DP makes the others smaller."""
    ours = {
        "contiguous": m.plan.value,
        "pipedream": m.path.value if m.path else None,
        "expert": m.expert.value if m.expert else None,
        "single_accelerator": m.single.value,
    }
    improved = smaller_is_better(m.plan.value, paper.get("contiguous")) == BETTER
    cells = {}
    for name, value in ours.items():
        ours_to_best, printed = ratio(m.plan.value, value), ratio(paper.get("contiguous"), paper.get(name))
        verdict = must_agree(ours_to_best, printed)
        explained = improved and verdict == DIFFERENT
        cells[COLUMNS_2[name]] = Cell(ours_to_best, printed, BETTER if explained else verdict, RATIO)
    return cells


def _granularities(m: Measurement, paper: Record) -> dict[str, Cell]:
    layered = m.layered.value if m.layered else None
    gain = excess(layered, m.plan.value)
    return {
        "operators": minimum(m.plan.value, paper.get("operator")),
        "layers": minimum(layered, paper.get("layer")),
        "gain": Cell(gain, excess(paper.get("layer"), paper.get("operator")), form=PERCENT),
    }


def _optimum(m: Measurement, printed: float | None, program: float | None) -> Cell:
    """The exact value, held against the paper and, where it agrees, against the paper's program."""
    verdict = smaller_is_better(m.plan.value, printed)
    if verdict == EQUAL and program is not None:
        verdict = against_program(m.plan.value, program)
    return Cell(m.plan.value, printed, verdict)
