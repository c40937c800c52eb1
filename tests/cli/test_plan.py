"""The command ``plan`` prints a table that fits a terminal, a JSON object, and the settings of a runtime."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partitioner.cli.command_line import main

CONFIG = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
}
ASKED = [
    "--gpus",
    "4",
    "--device",
    "A100-80",
    "--global-batch",
    "16",
    "--sequence",
    "512",
    "--time-limit",
    "100",
    "--top",
    "2",
]


@pytest.fixture
def config(tmp_path: Path) -> str:
    (file := tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_fits_the_terminal(
    config: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["plan", config, *ASKED, "--network", "25GB/s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("TP") and "s a batch" in lines[0] and max(map(len, lines)) <= width
    assert "above the bound" in " ".join(lines[:2]) and lines[-1].startswith("the second takes")


def test_json_is_one_object_and_settings_are_a_file(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "arguments.txt"
    runtime = ["--runtime", "megatron", "--settings", str(settings), "--format", "json"]
    assert main(["plan", config, *ASKED, *runtime]) == 0
    found = json.loads(capsys.readouterr().out)
    best = found["layouts"][0]["layout"]
    degrees = best["tensor"] * best["pipeline"] * best["context"] * best["data"]
    assert degrees == found["cluster"]["gpus"] == 4 and found["bound"] <= found["layouts"][0]["seconds"]
    assert f"--tensor-model-parallel-size {best['tensor']}\n" in settings.read_text(encoding="utf-8")


def test_a_report_is_a_page(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("bokeh", reason="reports need bokeh")
    page = tmp_path / "layout.html"
    assert main(["plan", config, *ASKED, "--report", str(page)]) == 0
    best = capsys.readouterr().out.split(":")[0]
    assert f'<td class="text">{best}</td>' in page.read_text(encoding="utf-8")
    assert main(["plan", config, *ASKED, "--report", str(tmp_path / "layout.txt")]) == 2
    assert "must end in .html or .htm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--settings", "FILE"], "runtime = 'any': settings are written for"),
        (
            ["--settings", "FILE", "--pool", "H100=4"],
            "are written for training on equal GPUs, and for one user",
        ),
        (["--report", "FILE.html", "--pool", "H100=4"], "is written for training on equal GPUs"),
    ],
)
def test_files_that_no_answer_has_are_refused_before_it_is_sought(
    config: str,
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for each in ("plan", "plan_pool"):
        monkeypatch.setattr(f"partitioner.cli.plan.{each}", lambda *_, **__: pytest.fail("it was sought"))
    given = [word.replace("FILE", str(tmp_path / "file")) for word in words]
    assert main(["plan", config, *ASKED, *given]) == 2
    assert said in capsys.readouterr().err


def test_no_layout_fits(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", config, *ASKED, "--memory", "1MB"]) == 3
    assert "layouts fits the memory" in capsys.readouterr().err
