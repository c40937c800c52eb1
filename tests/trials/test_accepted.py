"""Random cases of every claim of proof agree with the enumeration of all plans that the evaluator accepts."""

from __future__ import annotations

import pytest
from trials.accepted import FAMILIES, main
from trials.campaign import SOUND


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_cases_agree_with_every_accepted_plan(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", family, "--cases", "40", "--seed", "50000"]) == SOUND, capsys.readouterr().out
