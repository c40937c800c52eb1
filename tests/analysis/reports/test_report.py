"""A report holds the plan's own figures, escapes every name, loads nothing, and says what it cannot show."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import cast

import numpy as np
import pytest

import partitioner as pt
from partitioner.evaluation.text.names import ranges
from tests.analysis.plots.graphs import random_split
from tests.analysis.reports.workloads import HOSTILE, hostile, small

pytest.importorskip("bokeh", reason="reports need bokeh")


class Read(HTMLParser):
    """The elements of a page with their attributes, and its texts outside of scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        last = self.cdata_elem
        (self.scripts if last == "script" else self.texts).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def planned() -> tuple[pt.Workload, pt.Plan]:
    workload = small()
    return workload, pt.solve(workload.graph, workload.devices)


def test_the_page_has_the_figures_of_the_plan(planned: tuple[pt.Workload, pt.Plan]) -> None:
    workload, plan = planned
    report = pt.report(workload, plan, explanation=["Stage 2 is the bottleneck."])
    text = Read(report.html).text
    for expected in (
        "small: throughput, chain split",
        f"{plan.value:.6g} ms per sample",
        "as the plan says, and no rule is broken",
        "The dashed line is the lower bound",
        "1f1b, 16 microbatches",
        "Explanation Stage 2 is the bottleneck.",
        plan.workload_sha256,
        hashlib.sha256(plan.to_json().encode()).hexdigest(),
    ):
        assert expected in text
    for stage in plan.by_stage:
        assert ", ".join(ranges(stage.layers)) in text and f"{stage.load:.4g}" in text
    assert repr(report).startswith("<Report: small: throughput") and len(report.html) < 5_000_000


def test_the_page_allows_its_own_scripts_and_no_request(planned: tuple[pt.Workload, pt.Plan]) -> None:
    page = Read(pt.report(*planned).html)
    (policy,) = [
        str(known["content"])
        for _, known in page.tags
        if known.get("http-equiv") == "Content-Security-Policy"
    ]
    run = [known for tag, known in page.tags if tag == "script"]
    assert [known.get("type") for known in run] == ["application/json", None, None]
    for script in page.scripts[1:]:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy and policy.count("sha256-") == 2 and "unsafe-eval" not in policy
    assert not [known for _, known in page.tags if {"src", "href", "action"} & known.keys()]


def test_names_stay_texts() -> None:
    """Names of nodes, layers, kinds, the workload, options and notes add no element to the page."""
    workload, plan = hostile()
    page = Read(pt.report(workload, plan, explanation=HOSTILE).html)
    allowed = {"class", "id", "style", "type", "lang", "charset", "name", "content", "http-equiv"}
    assert {name for _, known in page.tags for name in known} <= allowed
    assert not {"img", "b", "a", "iframe", "svg"} & {tag for tag, _ in page.tags}
    assert [tag for tag, _ in page.tags].count("script") == 3
    assert all(" ".join(name.split()) in page.text for name in HOSTILE)
    assert not re.search("[<>&]", page.scripts[0]) and "\\u003cscript" in page.scripts[0]


def test_a_value_that_the_evaluator_does_not_find_is_named(planned: tuple[pt.Workload, pt.Plan]) -> None:
    workload, plan = planned
    text = Read(pt.report(workload, replace(plan, value=plan.value / 2)).html).text
    assert f"Evaluated for this report: {plan.value:.6g}, which is not the value of the plan" in text


def test_a_broken_rule_is_named(planned: tuple[pt.Workload, pt.Plan]) -> None:
    """Here that of memory, on devices that are too small."""
    graph = pt.Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)], size=5.0)
    roomy, tight = (pt.Devices.accelerated(2, memory=memory) for memory in (10.0, 5.0))
    plan = pt.solve(graph, roomy)
    placement = dict.fromkeys(graph.ids, "accelerator0")
    tight_hash = pt.Workload(graph, tight).sha256
    changed = replace(plan, placement=placement, hardware=tight, workload_sha256=tight_hash, stages=())
    text = Read(pt.report(pt.Workload(graph, tight), changed).html).text
    assert "the plan breaks a rule:" in text


def test_the_makespan_of_a_pipeline_is_that_of_its_simulation() -> None:
    workload = small()
    graph, devices = workload.graph, workload.devices
    plan = pt.solve(graph, devices, "makespan", schedule="gpipe", microbatches=4, time_limit=2)
    said = f"Evaluated for this report: {plan.value:.6g}, as the plan says, and no rule is broken."
    assert said in pt.report(workload, plan).html
    assert said not in pt.report(workload, plan, microbatches=5).html


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["latency", "makespan"])
def test_other_objectives_show_their_own_schedule(objective: str) -> None:
    workload = small()
    plan = pt.solve(workload.graph, workload.devices, objective, time_limit=2)
    own = Read(pt.report(workload, plan).html)
    assert "The runs of one sample" in own.text and "which is not the largest load" in own.text
    assert "1f1b, 4 microbatches" in Read(pt.report(workload, plan, microbatches=4).html).text


def test_a_schedule_can_be_asked_for(planned: tuple[pt.Workload, pt.Plan]) -> None:
    assert "gpipe, 5 microbatches" in pt.report(*planned, schedule="gpipe", microbatches=5).html
    with pytest.raises(pt.OptionError, match="schedule = 'none'"):
        pt.report(*planned, schedule="none")
    with pytest.raises(pt.OptionError, match="microbatches = 0"):
        pt.report(*planned, microbatches=0)


def test_pictures_that_are_too_large_are_left_out(
    planned: tuple[pt.Workload, pt.Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partitioner.analysis.reports.report.MOST_NODES", 3)
    monkeypatch.setattr("partitioner.analysis.reports.scheduled.MOST", 3)
    text = Read(pt.report(*planned).html).text
    assert "The network is not drawn: it has 8 nodes, a picture at most 3." in text
    assert re.search(r"No schedule is shown: \d+ passes are too many for a picture.", text)


def test_a_schedule_without_time_is_left_out() -> None:
    graph = pt.Graph.from_arrays({"accelerator": [0.0, 0.0]}, [(0, 1)])
    workload = pt.Workload(graph, pt.Devices.accelerated(2))
    text = Read(pt.report(workload, pt.solve(graph, workload.devices)).html).text
    assert "No schedule is shown: nothing takes time." in text


def test_plans_of_other_workloads_are_refused(planned: tuple[pt.Workload, pt.Plan]) -> None:
    _, plan = planned
    with pytest.raises(pt.WorkloadError, match="made for another workload"):
        pt.report(small(training=False), plan)
    more = pt.Workload(small().graph, pt.Devices.accelerated(3))
    with pytest.raises(pt.WorkloadError, match="must be those that the plan is made for: <Devices: 2 accel"):
        pt.report(more, plan)
    with pytest.raises(pt.WorkloadError, match="plan"):
        pt.report(small(), "plan.json")  # type: ignore[arg-type]


@pytest.mark.slow
def test_ten_thousand_nodes_and_passes_stay_below_5_megabytes() -> None:
    """With long names, as models of torch have them."""
    drawn, placement = random_split(10_000, 8, training=True)
    names = [f"model.layers.{i}.self_attention.query_projection.matmul" for i in range(10_000)]
    ends = [(int(a), int(b)) for a, b in drawn.edges]
    graph = pt.Graph.from_arrays(
        {"accelerator": np.ones(10_000)}, ends, 0.5, backward=drawn.backward, names=names
    )
    devices = pt.Devices.accelerated(8, memory=1e9)
    found, workload = pt.evaluate(graph, devices, placement), pt.Workload(graph, devices)
    plan = pt.Plan(
        objective="throughput",
        split="chain",
        value=found.value,
        bound=0.0,
        status="feasible",
        stop_reason="heuristic",
        method="by hand",
        backend="",
        runtime_seconds=0.0,
        devices=found.loads,
        stages=found.shape.order,
        placement=cast("dict[int | str, str]", placement),
        workload_sha256=workload.sha256,
    )
    report = pt.report(workload, plan, microbatches=10_000 // 16)
    assert "10,000 passes" not in report.html and len(report.html.encode()) < 5_000_000


def test_without_bokeh() -> None:
    program = (
        "import sys; sys.modules['bokeh'] = None; sys.modules['bokeh.plotting'] = None\n"
        "import partitioner as pt\n"
        "try: pt.report(None, None)\n"
        "except pt.BackendUnavailable as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == 'reports need bokeh: pip install "dnn-partitioner[report]"'
