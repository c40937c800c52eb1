"""Table 4: the time of a single sample, by the paper's baselines and by our methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paper_tables.catalogue import Entry
from paper_tables.cells import PERCENT, SECONDS, fixed, minimum, note
from paper_tables.measurement import Effort
from paper_tables.model import Cell, Row, Table
from paper_tables.published import Published
from paper_tables.sources import Source
from paper_tables.verdict import CENT
from partitioner import NoPlanFound, Plan, evaluate, load, load_placement, solve

MORE_SUBGRAPHS = (2, 3)


class LatencyMeasurement:
    """What we make of a published workload for latency.

    Parameters
    ----------
    source
        Its files.
    effort
        For the integer program with all that helps it.
    """

    def __init__(self, source: Source, effort: Effort) -> None:
        self.entry: Entry = source.entry
        self.source, self.effort = source, effort
        self.workload = load(source.workload)
        self._plans: dict[int, Plan] = {}

    def quick(self, method: str) -> float | None:
        """The value of a method that needs no limit, None without a plan."""
        try:
            return solve(self.workload.graph, self.workload.devices, "latency", method=method).value
        except NoPlanFound:
            return None

    def plan(self, subgraphs: int = 1) -> Plan:
        """Our best plan; with more subgraphs the one with fewer is where it starts."""
        if subgraphs not in self._plans:
            self._plans[subgraphs] = solve(
                self.workload.graph,
                self.workload.devices,
                "latency",
                time_limit=self.effort.time_limit,
                gap=self.effort.gap,
                warm_start=self.plan(subgraphs - 1) if subgraphs > 1 else None,
                subgraphs_per_accelerator=subgraphs,
            )
        return self._plans[subgraphs]

    def expert(self) -> float | None:
        """The latency of the hand-made split, whether it fits the memory or not."""
        if self.source.expert is None:
            return None
        graph, devices = self.workload.graph, self.workload.devices
        placement = load_placement(self.source.expert, graph, devices)
        return evaluate(graph, devices, placement, "latency").value


def table4(measurements: Sequence[LatencyMeasurement], published: Published) -> Table:
    """Time of a single sample over accelerators with little memory."""
    rows = [Row(m.entry, _cells(m, published.table4.get(m.entry.name, {}))) for m in measurements]
    unproven = [m for m in measurements if m.plan().gap > m.effort.gap + 1e-9]
    notes = [
        f"max-load: the split of the max-load DP; IP: ours, at most {measurements[0].effort.time_limit:g} s.",
        *note("not proven within the gap", unproven),
    ]
    return Table(4, "Table 4. Time of a single sample (ms)", rows, notes)


def _cells(m: LatencyMeasurement, paper: Mapping[str, Any]) -> dict[str, Cell]:
    best = m.plan()
    cells = {
        "greedy": fixed(m.quick("greedy"), paper.get("greedy")),
        "max-load": minimum(m.quick("max_load"), paper.get("max_load_dp")),
        "sum DP": Cell(m.quick("latency_dp")),
        "expert": fixed(m.expert(), paper.get("expert")),
        "IP": minimum(best.value, paper.get("ip"), _unit(paper.get("ip"))),
        "IP s": Cell(best.runtime_seconds, paper.get("ip_runtime"), form=SECONDS),
        "gap": Cell(best.gap, paper.get("ip_mip_gap"), form=PERCENT),
    }
    for subgraphs in MORE_SUBGRAPHS:
        value = m.plan(subgraphs).value
        cells[f"q={subgraphs}"] = Cell(value)
        cells[f"q={subgraphs} gain"] = Cell(1 - value / best.value, form=PERCENT)
    return cells


def _unit(printed: float | None) -> float:
    """What the last digit is worth: the paper prints one or two decimals."""
    return CENT if printed is None or printed != round(printed, 1) else 10 * CENT
