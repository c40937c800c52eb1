"""Torch runs a plan of a U-Net whose tensors skip a stage, in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="runs of a U-Net need torch")
pytest.importorskip("torch.distributed.pipelining", reason="runs of a U-Net need torch's pipelining")
from tests.integrations.torch.models import made  # noqa: E402
from tests.integrations.torch.skip_rank import batch, loss  # noqa: E402
from tests.integrations.torch.test_round_trip import graph  # noqa: E402

SECONDS, ROOT = 240, Path(__file__).parents[3]


def exported() -> dict[str, Any]:
    """The best plan of three stages, also one that sends tensors past a stage."""
    workload = pt.Workload(graph("unet", True), pt.Devices.accelerated(3, cpus=0))
    constraints = replace(pt.expressible("torch"), neighbours_only=False, stages=3)
    plan = pt.solve(workload.graph, workload.devices, constraints=constraints)
    found: dict[str, Any] = json.loads(pt.export(workload, plan, "torch"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["_ScheduleForwardOnly", "Schedule1F1B"])
def test_tensors_skip_a_stage(schedule: str, tmp_path: Path) -> None:
    """The output is the model's, and so are the gradients."""
    plan = exported()
    assert any("tensors skip stages" in note for note in plan["notes"])
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, "-m", "tests.integrations.torch.skip_rank", str(tmp_path)]
    running = [subprocess.Popen([*command, str(rank), schedule], cwd=ROOT) for rank in range(3)]
    try:
        assert [each.wait(SECONDS) for each in running] == [0, 0, 0]
    finally:
        for each in running:
            each.kill()
    found = {name: each for i in range(3) for name, each in torch.load(tmp_path / f"rank{i}.pt").items()}
    model, (given, _) = made("unet")[0], batch()
    output = model(given)
    if "output" in found:
        assert torch.allclose(found["output"], output, rtol=1e-5, atol=1e-6)
        return
    loss(output, torch.ones(len(given))).backward()
    named = dict(model.named_parameters())
    assert found.keys() == named.keys()
    for name, tensor in named.items():
        assert torch.allclose(found[name], tensor.grad, rtol=1e-4, atol=1e-3)
