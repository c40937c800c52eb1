"""The script ranks the layouts of a published run and says how far the published one is from the first."""

from __future__ import annotations

import bench_layouts
import pytest


@pytest.mark.slow
def test_a_published_run_is_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_layouts.main(["--only", "39.1B"]) == 0
    head, rule, line = capsys.readouterr().out.splitlines()
    assert head == bench_layouts.HEAD and rule.startswith("| :--")
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    among_all, in_class = float(cells[-3].rstrip(" %")), float(cells[-1].rstrip(" %"))
    assert cells[0] == "SC'21 39.1B" and among_all >= in_class >= 0


def test_a_published_layout_takes_all_gpus() -> None:
    assert all(run.layout.gpus == run.gpus for run in bench_layouts.RUNS)
