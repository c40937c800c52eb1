"""A plan says the unit of its times where the graph gives one, and how many samples end in a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner.workload.extras import Extras

LAYERS = [pt.Layer(name, forward=2.0, output=8.0) for name in ("a", "b", "c")]


def head(objective: str = "throughput", **options: Any) -> str:
    """The first two lines of the summary of a plan for three layers of 2 ms on three devices."""
    graph = pt.Graph.chain(LAYERS, bandwidth=1e9)
    return "\n".join(
        pt.solve(graph, pt.Devices.accelerated(3), objective, **options).summary(80).split("\n")[:2]
    )


def test_throughput_is_a_time_and_a_rate() -> None:
    text = head()
    assert "2.00002 ms per sample, 500 samples/s, optimal\n" in text
    assert "lower bound 2.00002 ms;" in text


@pytest.mark.parametrize(("objective", "ending"), [("latency", " ms per sample"), ("batch", " ms per batch")])
def test_other_objectives_have_no_rate(objective: str, ending: str) -> None:
    text = head(objective, **({"microbatches": 4} if objective == "batch" else {}))
    assert ending in text
    assert "samples/s" not in text


def test_without_a_unit_nothing_is_said() -> None:
    """A field of another kind is kept and not taken for a unit."""
    for given in ({}, {"timeUnit": "parsec"}, {"timeUnit": 5}):
        graph = pt.Graph.from_arrays({"accelerator": [2.0]}, [])
        assert graph.extras.time_unit == ""
        assert Extras(given).time_unit == ""
        assert "2 per sample, optimal" in pt.solve(graph, pt.Devices.accelerated(1)).summary(80)


def test_the_file_of_a_plan_keeps_it(tmp_path: Path) -> None:
    plan = pt.solve(pt.Graph.chain(LAYERS, bandwidth=1e9), pt.Devices.accelerated(3))
    plan.save(tmp_path / "plan.json")
    assert pt.load_plan(tmp_path / "plan.json") == plan
    assert plan.time_unit == "ms"
