"""What ``export`` cannot do is said in one line; the pieces that it cuts compute what the model does."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from partitioner.cli.command_line import main
from partitioner.formats.plan import load_plan

Captured = pytest.CaptureFixture[str]
DIMS = ("--dims", "batch=2", "--bandwidth", 1e9)
TABLE = "name,forward,output\na,1,8\nb,2,8\nc,1,\n"


def run(capsys: Captured, *words: object) -> tuple[int, str]:
    """The exit code of a command, and the line that it writes to standard error."""
    code = main([str(word) for word in words])
    said = capsys.readouterr().err
    assert said.count("\n") == bool(code)
    return code, said.removeprefix("partitioner: ").strip()


def solved(capsys: Captured, folder: Path, *words: object) -> Path:
    plan = folder / "plan.json"
    assert run(capsys, "solve", *words, "--output", plan) == (0, "")
    return plan


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "layers.csv"
    path.write_text(TABLE)
    return path


def test_a_missing_option_of_the_file_is_named_as_it_is_typed(
    capsys: Captured, tmp_path: Path, table: Path
) -> None:
    plan = solved(capsys, tmp_path, table, "--bandwidth", 1e9, "--accelerators", 2)
    rule = "must be a number above 0, in bytes per second"
    lacking = f"a table of layers needs --bandwidth: {rule}, because layer 'a' sends bytes"
    assert run(capsys, "export", table, plan, "--to", "nodes") == (2, lacking)
    wrong = run(capsys, "export", table, plan, "--to", "nodes", "--bandwidth", -1)
    assert wrong == (2, f"--bandwidth = -1.0: {rule}")


def test_a_plan_of_another_workload_is_refused_in_one_line(
    capsys: Captured, tmp_path: Path, table: Path
) -> None:
    plan = solved(capsys, tmp_path, table, "--bandwidth", 1e9, "--accelerators", 2)
    table.write_text(TABLE.replace("b,2", "b,3"))
    code, said = run(capsys, "export", table, plan, "--to", "nodes", "--bandwidth", 1e9)
    assert code == 2 and "made for another workload" in said and "(workload_sha256 " in said


def test_pieces_of_a_model_are_written_into_a_folder(capsys: Captured, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is missing: pip install 'dnn-partitioner[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime runs the pieces")
    from tests.integrations.onnx.models import cnn

    model, folder = tmp_path / "model.onnx", tmp_path / "pieces"
    folder.mkdir()
    onnx.save(cnn("batch"), model)
    plan = solved(capsys, tmp_path, model, *DIMS, "--accelerators", 2, "--use-all-devices")
    words = ("export", model, plan, "--to", "onnx-pieces", *DIMS)
    assert run(capsys, *words, "--output", folder) == (0, "")
    pieces = sorted(folder.iterdir())
    assert [piece.name for piece in pieces] == [f"stage{i}.onnx" for i in range(len(load_plan(plan).stages))]
    known = {"x": np.ones((2, 3, 8, 8), dtype=np.float32)}
    for piece in (*pieces, model):
        session = runtime.InferenceSession(str(piece), providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_outputs()]
        made = session.run(names, {each.name: known[each.name] for each in session.get_inputs()})
        if piece != model:
            known |= dict(zip(names, made, strict=True))
    assert all(np.allclose(known[name], one) for name, one in zip(names, made, strict=True))


def test_pieces_need_a_model_and_a_folder(capsys: Captured, tmp_path: Path, table: Path) -> None:
    plan = solved(capsys, tmp_path, table, "--bandwidth", 1e9, "--accelerators", 2)
    code, said = run(capsys, "export", table, plan, "--to", "onnx-pieces", "--output", tmp_path)
    assert code == 2 and said.endswith("layers.csv: must be an ONNX model (.onnx)")
    words = ("export", tmp_path / "model.onnx", plan, "--to", "onnx-pieces")
    assert run(capsys, *words) == (2, "--to onnx-pieces: --output: must name a folder that exists")
    code, said = run(capsys, *words, "--output", tmp_path / "nowhere")
    assert code == 2 and said.endswith("nowhere: must name a folder that exists")


def test_without_onnx_one_line_says_how_to_get_it(
    capsys: Captured, tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = solved(capsys, tmp_path, table, "--bandwidth", 1e9, "--accelerators", 2)
    (tmp_path / "model.onnx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnx", None)
    words = ("export", tmp_path / "model.onnx", plan, "--to", "onnx-pieces", "--output", tmp_path)
    code, said = run(capsys, *words)
    assert code == 2 and "need onnx: pip install" in said
