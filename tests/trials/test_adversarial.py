"""The search for bad instances changes workloads soundly, and writes what it finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from trials.adversarial import annealed, main, write
from trials.adversarial_changes import changed
from trials.adversarial_families import FAMILIES, Verdict

import partitioner as pt


@pytest.mark.parametrize("name", ["linear-orders", "placers", "groups", "levels", "1f1b"])
def test_changes_keep_to_the_room(name: str) -> None:
    family, rng, seen = FAMILIES[name], np.random.default_rng(0), 0
    instance = family.first(rng)
    for _ in range(60):
        found = changed(instance, rng, family.room)
        if found is not None:
            instance, seen = found, seen + 1
            assert 0 < len(found.graph) <= family.room.nodes
            assert len(found.devices.names) <= family.room.devices
    assert seen > 20


def test_a_verdict_says_how_far_value_and_bound_are() -> None:
    verdict = Verdict(value=6.0, bound=3.0, best=4.0)
    assert (verdict.loss, verdict.slack) == (0.5, 0.25)
    assert Verdict(np.inf, np.inf, np.inf).loss == Verdict(np.inf, 0.0, np.inf).slack == 0.0


def test_the_worst_instance_is_written_and_read_again(tmp_path: Path) -> None:
    worst, verdict, tried = annealed(FAMILIES["linear-orders"], 0, 0.5)
    assert tried and verdict.loss >= 0 and verdict.slack >= -1e-6
    write(tmp_path, "worst", "linear-orders", worst, verdict)
    question = json.loads((tmp_path / "questions.json").read_text())["worst"]
    assert question["best"] == verdict.best
    plan = pt.solve(*_loaded(tmp_path / "worst.json"), question["objective"], **question["options"])
    assert plan.value == pytest.approx(verdict.value)


def _loaded(path: Path) -> tuple[pt.Graph, pt.Devices]:
    workload = pt.load(path)
    return workload.graph, workload.devices


def test_the_command_prints_a_line_for_each_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "linear-orders", "--starts", "1", "--seconds", "0.1"]) == 0
    assert capsys.readouterr().out.startswith("linear-orders 0: ")
