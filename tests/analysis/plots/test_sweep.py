"""The picture of a sweep has every plan over its devices, a line to its bound, and the front as steps."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import OptionError, SweepResult, SweepRow
from partitioner.analysis.plots import plot_sweep
from partitioner.analysis.sweeps.row import FEASIBLE, INFEASIBLE

FOUND = [(2, 2, 9.0, 8.0), (4, 4, 5.0, 5.0), (6, 4, 5.0, 4.5), (8, 7, 6.0, 3.0)]


def result(*objectives: str) -> SweepResult:
    rows = [
        SweepRow(
            f"{name}{i}", name, "pool", pool, objective, FEASIBLE, {}, value * scale, bound * scale, used=used
        )
        for objective in objectives
        for name, scale in (("a", 1.0), ("b", 30.0))
        for i, (pool, used, value, bound) in enumerate(FOUND)
    ]
    rows.append(SweepRow("none", "a", "pool", 1, "throughput", INFEASIBLE))
    return SweepResult(tuple(rows), len(rows), 0, 1.0)


def test_marks_lines_and_steps_are_where_the_rows_are(style: str) -> None:
    from matplotlib.collections import LineCollection

    ax = plot_sweep(result("throughput", "gpipe"))
    values, bounds, front = ax.get_lines()[:3]
    assert np.asarray(values.get_xydata()).tolist() == [[pool, value] for pool, _, value, _ in FOUND]
    assert np.asarray(bounds.get_xydata()).tolist() == [[pool, bound] for pool, _, _, bound in FOUND]
    assert np.asarray(front.get_xydata()).tolist() == [[2, 9], [4, 5]]
    assert len(ax.get_lines()) == 6 and ax.get_yscale() == "log"
    lines = ax.collections[0]
    assert isinstance(lines, LineCollection)
    assert [[tuple(end) for end in segment] for segment in lines.get_segments()] == [
        [(pool, bound), (pool, value)] for pool, _, value, bound in FOUND
    ]
    assert [text.get_text() for text in ax.texts] == ["a", "b"]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["value", "bound", "Pareto front"]
    assert ax.get_title(loc="left") == "throughput: 8 plans of 2 workloads"
    assert ax.get_ylabel() == "value per sample"


def test_an_objective_can_be_chosen(style: str) -> None:
    found = result("throughput", "gpipe")
    assert plot_sweep(found, objective="gpipe").get_title(loc="left").startswith("gpipe: 8 plans")
    with pytest.raises(OptionError, match=r"objective = 'batch': must be one of throughput, gpipe"):
        plot_sweep(found, objective="batch")
    with pytest.raises(OptionError, match=r"objective = None: must be one of none: no plan"):
        plot_sweep(SweepResult((), 0, 0, 0.0))
