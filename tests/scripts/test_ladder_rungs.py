"""The measured ladder says what is lost without a search, and leaves the ladder as it was."""

from __future__ import annotations

import ladder_rungs
import pytest
from ladder_rungs import INSTANCES, Run, lost

from partitioner.methods.dp import exact

WHOLE = Run(value=10.0, bound=10.0, seconds=1.0, tried=())


@pytest.mark.parametrize(
    ("value", "bound", "seconds", "said"),
    [
        (10.0, 10.0, 2.9, ""),
        (11.0, 10.0, 1.0, "value 11 for 10"),
        (10.0, 9.0, 9.0, "bound 9 for 10"),
        (10.0, 10.0, 3.1, "3.1 s for 1.0 s"),
    ],
)
def test_a_worse_value_a_lower_bound_or_three_times_the_seconds_are_lost(
    value: float, bound: float, seconds: float, said: str
) -> None:
    assert lost(WHOLE, Run(value, bound, seconds, ())) == said


def test_each_search_that_was_tried_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    ladder = exact.LADDER
    assert ladder_rungs.main(["--workloads", str(INSTANCES / "unet_training.json"), "--limit", "2"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [rung.name for rung in ladder]
    assert exact.LADDER is ladder


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert ladder_rungs.main(["--workloads", "nowhere.json"]) == 2
    assert "nowhere.json" in capsys.readouterr().err
