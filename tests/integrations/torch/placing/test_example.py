"""The example runs and finds no difference."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="placing torch's models needs torch")
EXAMPLE = Path(__file__).parents[4] / "examples" / "place_transformer.py"


def test_the_example_finds_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out
    assert "(operator): " in printed and " to accelerator1" in printed
    assert printed.rstrip().endswith("largest difference of a gradient: 0")
