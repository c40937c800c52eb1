"""The terms of a runtime that made the times of two pipelines are found, and a prediction is their sum."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

import partitioner as pt
from partitioner.schedule import simulate

torch = pytest.importorskip("torch", reason="runtimes of pipelines need torch")
pytest.importorskip("torch.distributed.pipelining", reason="measured pipelines need torch's pipelining")
from torch import nn  # noqa: E402

from partitioner.integrations.torch import profile  # noqa: E402
from partitioner.integrations.torch.verification import (  # noqa: E402
    Corrections,
    runtime_costs,
    whole_passes,
)
from partitioner.integrations.torch.verification.runtime_costs import (  # noqa: E402
    CalibrationPipeline,
    runtime_corrections,
    solved_terms,
)
from tests.integrations.torch.pipelines.models import cut_at  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
DEVICES = pt.Devices.accelerated(2, cpus=0)


MESSAGE = 0.05


def two_stages(forward: float, backward: float) -> pt.Graph:
    """Two equal stages whose transfers are messages without data."""
    time = {"accelerator": [forward, forward, backward, backward]}
    edges, flags = [(0, 1), (1, 2), (2, 3)], [False, False, True, True]
    return pt.Graph.from_arrays(time, edges, [MESSAGE] * 3, backward=flags)


@pytest.mark.parametrize(("compute", "pass_time"), [(1.0, 0.0), (1.1, 0.3), (1.25, 0.0)])
def test_the_terms_of_simulated_runtimes_are_found(
    compute: float, pass_time: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches are those of the simulator: the formula of the batch is that of 1F1B."""
    alone = {64: 8.0, 192: 40.0}
    placement = {0: "accelerator0", 1: "accelerator1", 2: "accelerator1", 3: "accelerator0"}

    def batch(pipeline: CalibrationPipeline, microbatches: int) -> float:
        whole = compute * alone[len(pipeline.sample)]
        graph = two_stages(whole / 3, whole * 2 / 3)
        given = {"links": "direct", "pass_time": pass_time}
        return simulate(graph, DEVICES, placement, "1f1b", microbatches, **given).makespan  # type: ignore[arg-type]

    monkeypatch.setattr(runtime_costs, "_alone", lambda pipeline: alone[len(pipeline.sample)])
    found = runtime_corrections(batch, message=MESSAGE)
    assert astuple(found) == pytest.approx((compute, MESSAGE, 1.0, pass_time), abs=1e-5)


def test_no_term_makes_a_pass_faster() -> None:
    """Slopes of 0.9 count as 1; what is left of the smaller excess is the time of two passes."""
    assert solved_terms((1.0, 11.0), (3.0, 12.0)) == Corrections(1.0, 0.0, 1.0, 0.5)
    assert solved_terms((1.0, 11.0), (0.5, 9.0)) == Corrections()


def test_small_pipelines_run_in_the_library_s_runtime() -> None:
    pipeline = runtime_costs.calibration_pipeline(2, 64)
    assert runtime_costs.library_batch(pipeline, 2) > 0


@pytest.mark.slow
def test_the_terms_of_a_prediction_add_up() -> None:
    """Whole passes are all that the nodes take, and each device is busy with its nodes and its passes."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(6)))
    args, targets = (torch.randn(8, 64),), (torch.randn(8, 64),)
    scored = {"loss": nn.functional.mse_loss, "targets": targets}
    graph = profile(model, args, bandwidth=1e9, time_limit=0.1, **scored).graph
    whole = whole_passes(model, args, clock="thread", rounds=3, **scored)
    graph = whole.applied(graph)
    assert graph.time[0][~graph.backward].sum() == pytest.approx(whole.forward)
    assert graph.time[0][graph.backward].sum() == pytest.approx(whole.backward)
    terms, placement = Corrections(1.25, 0.1, 1.0, 0.5), cut_at(graph, (0.5,), (0, 1))
    found = simulate(
        terms.applied(graph), DEVICES, placement, "gpipe", 4, links="direct", pass_time=terms.pass_time
    )
    inside = np.bincount(found.table.row, (found.end - found.begin)[:, 1])
    home = np.array([placement[node] for node in graph.ids])
    for busy, device in zip(inside, found.devices, strict=True):
        nodes = graph.time[0][home == device].sum()
        assert busy == pytest.approx(4 * (1.25 * nodes + 2 * 0.5))
