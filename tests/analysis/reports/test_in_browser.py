"""Reports open in a browser: pictures are drawn, hover and zoom work, nothing fails, nothing is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from tests.analysis.reports.browser import SECONDS, Browser, opened
from tests.analysis.reports.workloads import HOSTILE, hostile

pytest.importorskip("bokeh", reason="reports need bokeh")
pytestmark = pytest.mark.slow
INSTANCES = Path(__file__).parents[3] / "instances"
LARGEST = 5_000_000  # bytes
AXES = ("loads", "timeline", "memory")  # pictures with axes
FLUID = 0.05  # seconds of the processor for a step of the zoom
PLANS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gpt3_96_layers_training", {"schedule": "1f1b", "microbatches": 64, "replicas": 8, "time_limit": 5}),
    ("resnet50_operator_training", {}),
    ("resnet50_operator_training", {"split": "free", "method": "local_search", "time_limit": 3}),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as found:
        yield found


@pytest.mark.parametrize(("name", "options"), PLANS)
def test_a_report_opens(name: str, options: dict[str, Any], browser: Browser, tmp_path: Path) -> None:
    """Light on a wide screen, dark on a narrow one."""
    workload, page = pt.load(INSTANCES / f"{name}.json"), tmp_path / "plan.html"
    plan = pt.solve(workload.graph, workload.devices, **options)
    pt.report(workload, plan).save(page)
    assert page.stat().st_size < LARGEST
    browser.requests(), browser.errors()
    for scheme, width in (("dark", 700), ("light", 1400)):
        browser.open(page, scheme, width)
        assert browser.colours("network") > 5 and browser.colours("loads") > 3
        assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.hover("network")[0] == workload.graph.names[0]
    seconds, factor = browser.zoom("network", 30)
    assert seconds < FLUID and factor > 1.2
    assert browser.errors() == [] and browser.requests() == {page.resolve().as_uri()}


def test_colours_follow_the_scheme(browser: Browser, tmp_path: Path) -> None:
    """Also those of a page that is open already, whose pictures are then painted once more."""
    page, paper, shown = tmp_path / "plan.html", {}, {}
    graph = pt.Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)])
    workload = pt.Workload(graph, pt.Devices.accelerated(2))
    pt.report(workload, pt.solve(graph, workload.devices)).save(page)
    for scheme in ("light", "dark"):
        browser.open(page, scheme)
        paper[scheme] = browser.run("return getComputedStyle(document.body).backgroundColor")
        shown[scheme] = {name: browser.picture(name) for name in AXES}
    assert paper["light"] != paper["dark"]
    assert all(shown["light"][name] != shown["dark"][name] for name in AXES)
    browser.dress("light")
    until = time.monotonic() + SECONDS
    while {name: browser.picture(name) for name in AXES} != shown["light"]:
        assert time.monotonic() < until, "the pictures keep the colours of the other scheme"
        time.sleep(0.1)


def test_names_do_not_run(browser: Browser, tmp_path: Path) -> None:
    """They are shown as they are, in the page and under the pointer."""
    page = tmp_path / "plan.html"
    workload, plan = hostile()
    pt.report(workload, plan, explanation=HOSTILE).save(page)
    browser.requests(), browser.errors()
    browser.open(page)
    for i, name in enumerate(HOSTILE):
        shown = browser.hover("network", i)
        assert name in shown and any(f"{HOSTILE[0]}{k}" in text for k in (0, 1) for text in shown)
    assert browser.run("return window.hacked === undefined")
    assert browser.errors() == [] and browser.requests() == {page.resolve().as_uri()}
