"""A measured pipeline has its schedule's passes and the predicted memory; errors are as defined."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.exports.chrome_trace import chrome_trace
from partitioner.schedule.timeline import Memory, Timeline

torch = pytest.importorskip("torch", reason="measured pipelines need torch")
pytest.importorskip("torch.distributed.pipelining", reason="measured pipelines need torch's pipelining")
from partitioner.integrations.torch import graph_of  # noqa: E402
from partitioner.integrations.torch.pipelines.stages import stages_of  # noqa: E402
from partitioner.integrations.torch.verification import foreign_load  # noqa: E402
from partitioner.integrations.torch.verification.comparing import compare_with_run  # noqa: E402
from partitioner.integrations.torch.verification.foreign_load import CpuClock  # noqa: E402
from partitioner.integrations.torch.verification.measured import MeasuredRun  # noqa: E402
from partitioner.integrations.torch.verification.measuring import measure_pipeline  # noqa: E402
from tests.integrations.torch.models import made  # noqa: E402
from tests.integrations.torch.pipelines.models import cut_at  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
SCRIPT = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    return model, (torch.randn(2, 8),), nn.functional.mse_loss, torch.randn(2, 4)
"""


def by_hand(device: str, foreign: float | None) -> MeasuredRun:
    """A device that runs two microbatches of 3 ms, with a pause of 2 ms before each, in a batch of 12 ms."""
    table = pt.schedule.Table.from_rows({device: ["0F0", "0F1"]})
    begin, end = np.array([2.0, 7.0]), np.array([5.0, 10.0])
    timeline = Timeline(
        "measured",
        table,
        np.stack((begin, begin, end, end), 1),
        np.stack((begin, end, end, end), 1),
        (Memory(np.zeros(1), np.full(1, 20.0)),),
        np.full(1, 20.0),
        np.full(1, np.inf),
        np.ones(1, np.int64),
        3.0,
    )
    return MeasuredRun("inference", (1, 2), (6.0, 12.0), timeline, {device: 20.0}, foreign)


def graph_with(model: Any, args: Any, loss: Any, target: Any) -> pt.Graph:
    """The graph of a model with its loss."""
    given = {"training": True, "loss": loss, "targets": (target,)}
    return graph_of(model, args, device="CPU", dtype="float32", bandwidth=1e12, **given)


def test_figures_worked_by_hand() -> None:
    """A node of 4 ms and 15 bytes is predicted: 4 ms a sample, 8 a batch, no bubble."""
    graph = pt.Graph.from_arrays({"gpu": [4.0]}, size=[15.0])
    workload = pt.Workload(graph, pt.Devices((pt.DeviceKind("gpu", 1),)))
    found = compare_with_run(workload, {0: "gpu0"}, by_hand("gpu0", 0.05))
    figures = {one.name: (one.predicted, one.measured, round(one.error, 6)) for one in found.figures}
    assert figures == {
        "time per sample": (4.0, 6.0, -0.333333),
        "batch": (8.0, 12.0, -0.333333),
        "largest load": (4.0, 6.0, -0.333333),
        "gpu0: busy per sample": (4.0, 3.0, 0.333333),
        "gpu0: bubble": (0.0, 0.5, -0.5),
        "gpu0: memory": (15.0, 20.0, -0.25),
    }
    assert "not judged" not in found.summary()
    used = compare_with_run(workload, {0: "gpu0"}, replace(by_hand("gpu0", 0.05), busiest=10.0))
    assert used["busiest rank, CPU"].error == pytest.approx(-0.2)  # 8 ms of nodes
    busy = compare_with_run(workload, {0: "gpu0"}, by_hand("gpu0", 0.3))
    assert "not judged: other programs used 30% of the cores, more than 10%" in busy.summary()
    unknown = compare_with_run(workload, {0: "gpu0"}, by_hand("gpu0", None))
    assert "not judged: the load of other programs is not known" in unknown.summary()
    with pytest.raises(pt.WorkloadError, match="run: devices"):
        compare_with_run(workload, {0: "gpu0"}, by_hand("gpu7", 0.0))


def test_foreign_load_counts_what_is_not_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(foreign_load, "STAT", stat)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sysconf", lambda _: 100)
    moments = iter([10.0, 20.0, 30.0])
    monkeypatch.setattr(foreign_load, "monotonic", lambda: next(moments))
    stat.write_text("cpu  1000 0 0 5000 0 0 0 0 0 0\n", encoding="ascii")
    clock = CpuClock.now()
    stat.write_text("cpu  1600 100 100 5100 900 0 0 0 0 0\n", encoding="ascii")
    assert clock.foreign(own=5.0) == pytest.approx(3.0 / 20.0)  # 8 s of two cores in 10 s, 5 of them our own
    stat.unlink()
    assert clock.foreign(own=5.0) is None


@pytest.mark.parametrize(
    ("schedule", "homes"), [("1f1b", (0, 1)), pytest.param("gpipe", (0, 1, 0), marks=pytest.mark.slow)]
)
def test_a_run_has_the_predicted_passes_and_memory(schedule: str, homes: tuple[int, ...]) -> None:
    """Memory within 10 %: what is carried over a cut is held on both sides, and predicted on one."""
    model, args = made("cnn")
    target, loss = torch.randn(2, 10), torch.nn.functional.mse_loss
    graph = graph_with(model, args, loss, target)
    shares = (0.5,) if len(homes) == 2 else (0.3, 0.99)
    placement = cut_at(graph, shares, homes)
    run = measure_pipeline(
        stages_of(model, args, graph, placement),
        args,
        schedule=schedule,
        microbatches=(2, 6),
        loss=loss,
        target=target,
        rounds=1,
    )
    workload = pt.Workload(graph, pt.Devices.accelerated(2, cpus=0))
    found = compare_with_run(workload, placement, run)
    for device, row in found.simulated.table.rows().items():
        assert sorted(row) == sorted(run.timeline.table.rows()[device])
        if len(homes) == 2:
            assert row == run.timeline.table.rows()[device]
    for device in run.timeline.devices:
        assert abs(found[f"{device}: memory"].error) < 0.1
    assert run.batches[1] > 0
    assert all(0 < time <= run.batches[1] for time in run.busy.values())
    assert "process" in chrome_trace({"measured": run.timeline})
    check_waits(run, homes)


def check_waits(run: MeasuredRun, homes: tuple[int, ...]) -> None:
    """A pass is waited for if the stage before it, or for a backward pass behind it, is on another rank."""
    table, asked, arrived = run.timeline.table, run.timeline.begin[:, 0], run.timeline.end[:, 0]
    assert (asked <= arrived).all() and (arrived <= run.timeline.begin[:, 1]).all()
    for k, (stage, forward) in enumerate(zip(table.stage.tolist(), table.direction == 0, strict=True)):
        source = stage - 1 if forward else stage + 1
        inner = 0 <= source < len(homes) and homes[source] != homes[stage]
        assert inner or asked[k] == arrived[k] == run.timeline.begin[k, 1]
    assert (asked < arrived).any()
    waits = [one for one in json.loads(chrome_trace(run.timeline))["traceEvents"] if one.get("cat") == "in"]
    assert len(waits) == (asked < arrived).sum()


def test_the_command_runs_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from partitioner.cli.command_line import main

    script = tmp_path / "small.py"
    script.write_text(SCRIPT, encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(SCRIPT, scope)
    model, args, loss, target = scope["make"]()
    graph = graph_with(model, args, loss, target)
    workload = pt.Workload(graph, pt.Devices.accelerated(2, cpus=0))
    workload.save(tmp_path / "workload.json")
    pt.solve(graph, workload.devices).save(tmp_path / "plan.json")
    command = ["verify", f"{script}:make", str(tmp_path / "workload.json"), str(tmp_path / "plan.json")]
    options = ["--microbatches", "8", "--rounds", "1", "--trace", str(tmp_path / "trace.json")]
    assert main([*command, *options, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["run"]["microbatches"] == [2, 8]
    names = {"time per sample", "batch", "largest load", "busiest rank, CPU"}
    assert names <= {one["name"] for one in found["figures"]}
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert {event["pid"] for event in trace["traceEvents"]} == {1, 2}


def test_the_command_calibrates_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole passes of 30 and 60 ms, a runtime that doubles them, 4 ms a pass: 188 ms a microbatch."""
    from partitioner.cli.command_line import main
    from partitioner.integrations.torch.verification import Corrections, WholePasses

    where = "partitioner.integrations.torch.verification"
    monkeypatch.setattr(f"{where}.model_passes.whole_passes", lambda *_, **__: WholePasses(30.0, 60.0))
    monkeypatch.setattr(f"{where}.runtime_costs.runtime_corrections", lambda: Corrections(2.0, 0.0, 1.0, 4.0))
    script = tmp_path / "small.py"
    script.write_text(SCRIPT, encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(SCRIPT, scope)
    graph = graph_with(*scope["make"]())
    workload = pt.Workload(graph, pt.Devices.accelerated(1, cpus=0))
    workload.save(tmp_path / "workload.json")
    pt.solve(graph, workload.devices).save(tmp_path / "plan.json")
    command = ["verify", f"{script}:make", str(tmp_path / "workload.json"), str(tmp_path / "plan.json")]
    assert main([*command, "--calibrate", "--microbatches", "2", "--rounds", "1", "--format", "json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["figures"]}
    assert found["batch"]["predicted"] == pytest.approx(2 * (2 * 90 + 2 * 4))
