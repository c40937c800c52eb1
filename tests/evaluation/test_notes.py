"""What a workload leaves open is said wherever a value depends on it: activations, bandwidths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partitioner import DeviceKind, Devices, Graph, compare_schedules, evaluate, load_timeline, solve
from partitioner.analysis.plots import plot_memory
from partitioner.cli.command_line import main
from partitioner.results.timeline_table import timeline_table
from partitioner.schedule import simulate
from tests.analysis.plots.reading import assert_readable

UNKNOWN = "activations are not known, the graph gives only `size`"
SILENT = "the exchange of weights among replicas is not counted: device kind 'gpu' has no bandwidth"
PLACEMENT = {0: "gpu0", 1: "gpu1", 2: "gpu1", 3: "gpu0"}


def training(**parts: Any) -> Graph:
    return Graph.from_arrays(
        {"gpu": [1.0, 1.0, 2.0, 2.0]},
        [(0, 1), (1, 2), (2, 3)],
        backward=[False, False, True, True],
        color=[0, 1, 1, 0],
        **(parts or {"size": 3.0}),
    )


def gpus(count: int = 2, bandwidth: float | None = None) -> Devices:
    return Devices((DeviceKind("gpu", count, memory=50.0, bandwidth=bandwidth),))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "1f1b_async"])
def test_schedules_of_graphs_with_size_alone(schedule: str) -> None:
    """Plans, evaluations, simulations and comparisons say that activations are not known."""
    asked: dict[str, Any] = {"schedule": schedule, "microbatches": 4}
    plan = solve(training(), gpus(), **asked)
    found = evaluate(training(), gpus(), PLACEMENT, **asked)
    timeline = simulate(training(), gpus(), PLACEMENT, schedule, 4)
    for notes in (plan.notes, found.notes, timeline.notes):
        assert len([note for note in notes if note.startswith(UNKNOWN)]) == 1
    assert UNKNOWN in plan.summary(200) and UNKNOWN in found.summary(200)
    assert UNKNOWN in timeline_table(timeline, 200)
    ranked = solve(training(), gpus(), "makespan", **asked)
    assert any(note.startswith(UNKNOWN) for note in ranked.notes)


def test_comparisons_of_schedules_say_it_once() -> None:
    found = compare_schedules(training(), gpus(), PLACEMENT, 4)
    assert len(found.notes) == 1 and found.notes[0].startswith(UNKNOWN)
    assert found.summary(200).count(UNKNOWN) == 1 and UNKNOWN in found.to_json()


def test_nothing_is_said_where_activations_are_known_or_one_sample_is_held() -> None:
    known = training(parameters=1.0, activations=1.0)
    assert evaluate(known, gpus(), PLACEMENT, schedule="1f1b").notes == ()
    assert simulate(known, gpus(), PLACEMENT, "1f1b", 4).notes == ()
    assert evaluate(training(), gpus(), PLACEMENT).notes == ()
    assert simulate(training(), gpus(), PLACEMENT, "single_stream", 4).notes == ()
    assert evaluate(training(), gpus(), PLACEMENT, schedule="inference").notes == ()


def test_graphs_with_other_parts_but_no_activations() -> None:
    (note,) = evaluate(training(parameters=2.0), gpus(), PLACEMENT, schedule="1f1b").notes
    assert note.startswith("activations are not known, the graph gives no `activations`")


def test_timelines_and_pictures_keep_the_note(tmp_path: Path) -> None:
    timeline = simulate(training(), gpus(), PLACEMENT, "1f1b", 4)
    timeline.save(tmp_path / "timeline.json")
    assert load_timeline(tmp_path / "timeline.json").notes == timeline.notes
    ax = plot_memory(timeline)
    assert UNKNOWN in ax.get_xlabel().replace("\n", " ")
    assert_readable(ax)


def test_replicas_without_a_bandwidth() -> None:
    """Weights that nobody pays for are no optimum without a word."""
    plan = solve(training(parameters=4.0), gpus(3), replicas=3)
    assert plan.replicas and SILENT in plan.notes
    given: dict[str, Any] = {"replicas": {"gpu1": ["gpu2"]}}
    assert evaluate(training(parameters=4.0), gpus(3), PLACEMENT, **given).notes == (SILENT,)
    timeline = simulate(training(parameters=4.0, activations=1.0), gpus(3), PLACEMENT, "1f1b", 4, **given)
    assert timeline.notes == (SILENT,)


def test_replicas_that_exchange_say_how_often() -> None:
    """Once a batch where its samples are known and the schedule allows it, else for every sample, and why."""
    given: dict[str, Any] = {"replicas": {"gpu1": ["gpu2"]}}
    graph = training(parameters=4.0, activations=1.0)
    for asked, words in {
        (None, None): "for every sample: with microbatches they would do so once a batch",
        ("1f1b", None): "for every sample: with microbatches they would do so once a batch",
        ("1f1b", 8): "once a batch of 8 samples, in a ring",
        ("1f1b_async", 8): "for every sample, as schedule 1f1b_async does",
    }.items():
        terms: dict[str, Any] = dict(zip(("schedule", "microbatches"), asked, strict=True))
        paid = evaluate(graph, gpus(3, 2.0), PLACEMENT, **terms, **given)
        assert paid.notes == (f"replicas exchange weights {words}",) and paid.loads[1].sync > 0
    paper = replace(gpus(3, 2.0), exchange="paper")
    noted = evaluate(graph, paper, PLACEMENT, schedule="1f1b", microbatches=8, **given).notes
    assert noted[0] == "replicas exchange weights for every sample"


def test_replicas_that_have_no_weights_need_no_note() -> None:
    given: dict[str, Any] = {"replicas": {"gpu1": ["gpu2"]}}
    assert evaluate(training(size=0.0), gpus(3), PLACEMENT, **given).notes == ()
    assert evaluate(training(parameters=4.0), gpus(3), PLACEMENT).notes == ()


def test_the_command_line_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`solve`, `evaluate` and `simulate` of a published graph with sizes alone."""
    workload, plan = "instances/bert24_training.json", str(tmp_path / "plan.json")
    asked = ["--schedule", "1f1b", "--microbatches", "4"]
    assert main(["solve", workload, *asked, "--output", plan]) == 0
    assert "activations are not known" in capsys.readouterr().out
    assert main(["evaluate", workload, plan, *asked]) == 0
    assert "activations are not known" in capsys.readouterr().out
    assert main(["simulate", workload, plan, *asked]) == 0
    assert "activations are not known" in capsys.readouterr().out
