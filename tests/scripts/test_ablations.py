"""A part that is left out is not called, the others are noted, and afterwards all are as before."""

from __future__ import annotations

from pathlib import Path

import ablations
import pytest

from partitioner.methods.exact_makespan.both_ways import SearchBothWays

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def test_each_part_has_a_row_and_is_there_again(capsys: pytest.CaptureFixture[str]) -> None:
    usual = SearchBothWays.run
    file = str(INSTANCES / "gnmt_inference.json")
    assert ablations.main(["operators", "--workloads", file, "--limit", "2"]) == 0
    rows = [row.split("|")[1].strip() for row in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [part.name for part in ablations.OPERATORS]
    assert SearchBothWays.run is usual


@pytest.mark.parametrize("family", ablations.FAMILIES)
def test_every_call_of_a_part_exists(family: str) -> None:
    called: set[str] = set()
    parts = ablations.FAMILIES[family].parts
    with ablations.patched(parts, parts[0].name, called):
        pass
    assert parts[0].name not in called


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert ablations.main(["operators", "--workloads", "nowhere.json"]) == ablations.BAD_INPUT
    assert "nowhere.json" in capsys.readouterr().err
