"""Rows of the comparison with aiconfigurator: its layouts as ours, differences and places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bench_aiconfigurator
import pytest
from aiconfigurator_bench.answers import Compared, layout_of
from aiconfigurator_bench.questions import QUESTIONS, Question
from bench_aiconfigurator import BAD_INPUT, FAILED, main

CONFIG = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
}  # fmt: skip
ASKED = Question("a/Tiny", "h100_sxm", 2, 16, 8, 1000, 100)


def answer(tp: int, copies: int) -> dict[str, Any]:
    layout = {"tp": tp, "pp": 1, "dp": 1, "moe_tp": 1, "moe_ep": 1, "bs": 64, "copies": copies, "rate": 1e5}
    return {"config": CONFIG, "layouts": [layout], "alone": {"prompt": 1.0, "step": 1.0}}


def test_a_row_has_our_figures_of_its_layout_and_the_place_in_our_table() -> None:
    """Two copies are better than one for a tiny model, whose collectives take long."""
    first, second = (Compared.of(ASKED, answer(*each)) for each in ((1, 2), (2, 1)))
    assert first.place == 1 < second.place
    assert first.off["step"] == pytest.approx(abs(first.ours["step"] - 1))
    assert first.cells[:2] == ["Tiny, 2 H100, 16+8, 1000, 100 ms", "2 x TP1 B64"]


def test_groups_with_attention_apart_are_copies_that_divide_experts() -> None:
    row = answer(1, 2)["layouts"][0] | {"dp": 4, "moe_tp": 4}
    layout = layout_of(ASKED, row)
    assert (layout.tensor, layout.copies, layout.expert) == ((1,), 8, 4)


def test_answers_are_read_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == BAD_INPUT
    (file := tmp_path / "answers.json").write_text(json.dumps([answer(1, 2)]), encoding="utf-8")
    monkeypatch.setattr(bench_aiconfigurator, "QUESTIONS", [ASKED])
    assert main(["--answers", str(file), "--markdown"]) == FAILED  # its figures are made up
    assert "its best among our first 3: 1" in capsys.readouterr().out
    assert len(QUESTIONS) == 20
