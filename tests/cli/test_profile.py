"""``partitioner profile`` prints the slowest modules and writes a workload that ``solve`` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import partitioner as pt
from tests.cli.test_command_line import Captured, run

SCRIPT = """
import torch

def make():
    layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()) for _ in range(3)]
    return torch.nn.Sequential(*layers), (torch.ones(32, 64),)

def scored():
    model, args = make()
    return model, args, lambda output: output.square().sum()

def four():
    return 1, 2, 3, 4
"""
QUICK = ("--bandwidth", "1e9", "--time-limit", 0)


@pytest.fixture
def script(tmp_path: Path) -> Iterator[str]:
    torch = pytest.importorskip("torch", reason="profiles of torch's models need torch")
    threads = torch.get_num_threads()
    path = tmp_path / "model.py"
    path.write_text(SCRIPT)
    yield str(path)
    torch.set_num_threads(threads)


def test_a_table_and_a_workload(capsys: Captured, script: str, tmp_path: Path) -> None:
    output, cache = tmp_path / "workload.json", tmp_path / "cache"
    words = ("profile", f"{script}:make", *QUICK, "--output", output, "--cache", cache, "--rows", 2)
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["module", "forward", "backward", "time", "%", "permanent", "temporary"]
    assert {line.split()[0] for line in lines[1:3]} <= {"0", "1", "2"}
    assert lines[3].startswith("3 modules, 6 nodes, ")
    assert "transfers: 1GB per second, given" in out
    assert out.endswith(f"written: {output}\n")
    graph = pt.load(output).graph
    assert (len(graph.ids), graph.backward.sum(), graph.extras.top["granularity"]) == (6, 3, "block")
    assert len(list(cache.iterdir())) == 1


def test_inference_by_operator_and_a_loss_in_training(capsys: Captured, script: str, tmp_path: Path) -> None:
    for function, flags, nodes in (("scored", ("--inference",), 6), ("scored", (), 16)):
        output = tmp_path / "workload.json"
        words = ("profile", f"{script}:{function}", *QUICK, "--granularity", "operator", *flags)
        assert run(capsys, *words, "--output", output)[0] == 0
        assert len(json.loads(output.read_text())["nodes"]) == nodes


def test_a_profile_as_a_process_of_a_pipeline_has_it(capsys: Captured, script: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for flags in ((), ("--beside", 1, "--accumulate")):
        assert run(capsys, "profile", f"{script}:make", *QUICK, "--cache", cache, *flags)[0] == 0
    assert len(list(cache.iterdir())) == 2
    code, _, err = run(capsys, "profile", f"{script}:make", *QUICK, "--beside", -1)
    assert (code, err) == (2, "partitioner: beside = -1: must be an integer of at least 0\n")


@pytest.mark.xdist_group("processes")
def test_the_bandwidth_is_measured_where_none_is_given(capsys: Captured, script: str) -> None:
    code, out, err = run(capsys, "profile", f"{script}:make", "--time-limit", 0)
    if code:  # a machine that is busy for all rounds of one size may show no slope
        assert (code, err) == (
            2,
            "partitioner: --bandwidth: cannot be measured while other programs run: give it, or try again\n",
        )
    else:
        assert "B per second, measured" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("four",), "must return (model, args), with args a tuple, or a dict by name; for training"),
        (("make", "--threads", 0), "--threads 0: must be an integer of at least 1"),
        (("make", "--rows", 0), "--rows 0: must be an integer of at least 1"),
        (("make", "--device", "tpu"), "device = 'tpu': must be 'cpu' or 'cuda'"),
        (("make", "--output", "/nowhere/at/all"), "/nowhere/at/all: cannot be written"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    capsys: Captured, script: str, words: tuple[object, ...], text: str
) -> None:
    code, out, err = run(capsys, "profile", f"{script}:{words[0]}", *words[1:], *QUICK[:2])
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_without_torch_one_line_says_how_to_get_it(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partitioner.integrations.torch.installed.find_spec", lambda name: None)
    code, _, err = run(capsys, "profile", "model.py:make")
    assert (code, err.count("\n")) == (2, 1)
    assert 'pip install "dnn-partitioner[torch]"' in err
