"""The report of a layout has the figures of the plan, the ranks of every GPU, and parts that add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.analysis.reports.layouts import MOST_GPUS, MOST_PASSES, ranks_of
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.result import LayoutPlan
from tests.analysis.reports.browser import Browser, opened
from tests.analysis.reports.test_report import Read
from tests.planning.layouts.cases import random_search

pytest.importorskip("bokeh", reason="reports need bokeh")
CONFIG = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 8,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 32000,
}  # fmt: skip
PIPELINED: dict[str, Any] = {"memory": 2.5e8, "network": 2e9}  # so little that a pipeline is needed


def wider(found: LayoutPlan) -> LayoutPlan:
    """Return a plan with more GPUs than a picture shows."""
    run = found.runs[0]
    run = replace(run, layout=replace(run.layout, data=2 * MOST_GPUS), global_batch=8 * MOST_GPUS)
    return replace(found, cluster=replace(found.cluster, gpus=run.layout.gpus), runs=(run,))


def planned(gpus: int = 16, **more: Any) -> LayoutPlan:
    asked: dict[str, Any] = {"global_batch": 4 * gpus, "sequence": 512, "top": 3, "time_limit": 60}
    return pt.plan(CONFIG, gpus=gpus, device="A100-80", **asked | more)


def test_the_page_has_the_figures_of_the_plan() -> None:
    found = planned(runtime="megatron", **PIPELINED)
    report = pt.report_layouts(found, "a <b>model</b>")
    assert report.title == "a <b>model</b> on 16 A100-80, batches of 64 sequences of 512 tokens"
    page = Read(report.html)
    best = found.best
    assert best.layout.pipeline > 1 and not [tag for tag, _ in page.tags if tag == "b"]
    expected = [row.layout.name for row in found.rows] + [f"{best.seconds:.4g}", f"{best.mfu:.1%}"]
    expected += [found.headline()[-1], found.why_second(), f"{best.layout.schedule}"]
    expected += [line for line in found.settings().splitlines() if line.startswith("--tensor")]
    for words in expected:
        assert words in page.text


def test_what_was_not_asked_for_is_left_out() -> None:
    """Settings of no runtime, changes, a schedule of no pipeline, too many GPUs to draw."""
    found = planned(2, memory=8e10)
    text = Read(pt.report_layouts(found).html).text
    assert "Settings" not in text and "Changes" not in text and "There is no pipeline" in text
    assert f"a picture shows at most {MOST_GPUS:,}" in Read(pt.report_layouts(wider(found)).html).text


def test_changes_are_a_table() -> None:
    text = Read(pt.report_layouts(planned(2, explain=True, instead=["H100"])).html).text
    assert "Changes" in text and "twice the GPUs" in text and "H100" in text


def test_every_gpu_has_its_ranks() -> None:
    """Counted by loops, tensor parallelism innermost; experts are divided by neighbours of one shard."""
    layout = ClusterLayout(tensor=2, context=2, data=4, pipeline=3, expert=4)
    every = product(range(3), range(4), range(2), range(2))
    ranks = ranks_of(layout)
    for gpu, (pipeline, data, context, tensor) in enumerate(every):
        expected = {"tensor": tensor, "context": context, "data": data, "pipeline": pipeline}
        expected["expert"] = (2 * data + context) % 4
        assert {name: int(values[gpu]) for name, values in ranks.items()} == expected


def test_parts_of_time_and_memory_add_up() -> None:
    checked = 0
    for seed in range(25):
        space, search = random_search(seed)
        runs = [search.run_of(layout) for layout in list(space)[:40]]
        for run in (run for run in runs if run.fits):
            total, ends, _ = run.simulated
            parts = run.time_parts
            assert np.allclose(sum(parts.values()), total), run.layout
            busy = parts["processing"] + parts["collectives"] + parts["transfers"]
            assert (busy <= ends * (1 + 1e-9)).all() and (parts["processing"] > 0).all()
            assert np.allclose(sum(run.memory_parts.values()), run.memory)
            layout = run.layout
            alone = layout.tensor == layout.context == layout.expert == 1 and layout.zero < 3
            assert (parts["collectives"].max() > 0) is not alone
            checked += 1
    assert checked > 200


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [16, 512])
def test_a_report_opens(gpus: int, browser: Browser, tmp_path: Path) -> None:
    """With ranks written in cells and without, light on a wide screen and dark on a narrow one."""
    found, page = planned(gpus, **PIPELINED), tmp_path / "layout.html"
    pt.report_layouts(found).save(page)
    assert page.stat().st_size < 5_000_000 and MOST_PASSES < 10_000
    browser.requests(), browser.errors()
    for scheme, width in (("dark", 700), ("light", 1400)):
        browser.open(page, scheme, width)
        assert all(browser.colours(name) > 3 for name in ("devices", "timeline", "times", "memory"))
        assert browser.run("return document.documentElement.scrollWidth") <= width
    last = gpus - 1
    shown = browser.hover("devices", last, "GPU")
    assert shown[0] == f"{last} (server {last // 8})"
    assert shown[1] == str(found.best.layout.tensor - 1)
    assert browser.errors() == [] and browser.requests() == {page.resolve().as_uri()}
