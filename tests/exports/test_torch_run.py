"""torch runs an exported plan in processes of its own, and gets the gradients of the whole model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from partitioner import export
from tests.exports.models import cuts, gpus, line
from tests.exports.torch_rank import batch, modules_by_name

SECONDS = 240
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("homes", "schedule"),
    [([0, 1], "1f1b"), ([0, 1, 0, 1], "interleaved"), ([0, 1, 0], "gpipe")],
)
def test_gradients_are_those_of_the_whole_model(homes: list[int], schedule: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is missing: pip install torch")
    names = ["embed", *(f"layers.{i}" for i in range(len(homes))), "head"]
    workload = line(names, gpus(2), training=True)
    counts = [2, *[1] * (len(homes) - 2), 2]
    plan = cuts(workload, *counts, devices=[f"gpu{i}" for i in homes], schedule=schedule, microbatches=4)
    text = str(export(workload, plan, "torch"))
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    (tmp_path / "schedule.csv").write_text(json.loads(text)["schedule_csv"], encoding="utf-8")
    command = [sys.executable, "-m", "tests.exports.torch_rank", str(tmp_path)]
    running = [subprocess.Popen([*command, str(rank)], cwd=ROOT) for rank in (0, 1)]
    try:
        assert [each.wait(SECONDS) for each in running] == [0, 0]
    finally:
        for each in running:
            each.kill()
    found = torch.load(tmp_path / "rank0.pt") | torch.load(tmp_path / "rank1.pt")
    modules = modules_by_name(torch, names)
    given, target = batch(torch, 4)
    torch.nn.functional.mse_loss(torch.nn.Sequential(*modules.values())(given), target).backward()
    assert found.keys() == modules.keys()
    for name, module in modules.items():
        for one, other in zip(found[name], module.parameters(), strict=True):
            assert torch.allclose(one, other.grad, rtol=1e-5, atol=1e-7)
