"""Reports open in a browser: pictures are drawn, hover and zoom work, nothing fails, nothing is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from tests.reports.browser import Browser, opened
from tests.reports.workloads import HOSTILE, hostile

pytest.importorskip("bokeh", reason="reports need bokeh")
pytestmark = pytest.mark.slow
INSTANCES = Path(__file__).parents[2] / "instances"
LARGEST = 5_000_000  # bytes
FLUID = 0.05  # seconds of the processor for a step of the zoom
PLANS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gpt3_96_layers_training", {"schedule": "1f1b", "microbatches": 64, "replicas": 8}),
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
    """Also of a page that is open already: the text of the axes is drawn once more."""
    page = tmp_path / "plan.html"
    graph = pt.Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)])
    workload = pt.Workload(graph, pt.Devices.accelerated(2))
    pt.report(workload, pt.solve(graph, workload.devices)).save(page)
    found = {}
    for scheme in ("light", "dark"):
        browser.open(page, scheme)
        found[scheme] = (
            browser.run("return getComputedStyle(document.body).backgroundColor"),
            browser.picture("loads"),
        )
    assert found["light"][0] != found["dark"][0] and found["light"][1] != found["dark"][1]
    browser.dress("light")
    browser.wait("getComputedStyle(document.body).backgroundColor === 'rgb(244, 246, 249)'")
    assert browser.picture("loads") == found["light"][1]


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
