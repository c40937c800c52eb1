"""``partitioner warm-up`` ends with one line or one JSON object, and says what Ctrl-C has left."""

from __future__ import annotations

import json

import pytest

import partitioner.cli.warm_up
from partitioner import PartitionerError, WarmUp
from tests.cli.test_command_line import Captured, run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The arguments of warm-ups, which compile nothing."""
    found: list[object] = []

    def compiled(*, workers: int | None, on_progress: object) -> WarmUp:
        found.append(workers)
        return WarmUp(250, 61.23, "/cache/numba")

    monkeypatch.setattr(partitioner.cli.warm_up, "warm_up", compiled)
    return found


def test_one_line_at_the_end(capsys: Captured, asked: list[object]) -> None:
    line = "compiled 250 kernels in 61.2 s; they are kept below /cache/numba\n"
    assert run(capsys, "warm-up") == (0, line, "")
    assert run(capsys, "warm-up", "--workers", 1)[0] == 0
    assert asked == [None, 1]


def test_or_one_json_object(capsys: Captured, asked: list[object]) -> None:
    code, out, err = run(capsys, "warm-up", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"kernels": 250, "seconds": 61.23, "folder": "/cache/numba"}


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted; the kernels compiled until then are kept"),
        (PartitionerError("kernels cannot be kept"), 2, "kernels cannot be kept"),
    ],
)
def test_how_it_fails(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str
) -> None:
    def fails(**options: object) -> WarmUp:
        raise error

    monkeypatch.setattr(partitioner.cli.warm_up, "warm_up", fails)
    assert run(capsys, "warm-up") == (code, "", f"partitioner: {text}\n")
