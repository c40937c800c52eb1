"""Solves leave nothing behind and give the same answers in threads, pools and event loops."""

from __future__ import annotations

import pytest
from trials.campaign import SOUND
from trials.endurance import PLACES, main
from trials.endurance_jobs import JOBS


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_left_behind_and_answers_are_the_same(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--only", place, "--cases", str(2 * len(JOBS))]) == SOUND, capsys.readouterr().out
