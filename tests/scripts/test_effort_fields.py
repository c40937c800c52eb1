"""The effort of tables changes steps only: values and bounds stay as they are."""

from __future__ import annotations

import effort_fields
import pytest
import sparse_or_table

from partitioner.methods.dp import bracket


def test_no_field_changes_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    usual = bracket.EFFORT
    file = str(effort_fields.INSTANCES / "resnet50_inference.json")
    assert effort_fields.main(["--workloads", file]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3 + 2 * len(effort_fields.FIELDS)
    assert bracket.EFFORT is usual


@pytest.mark.parametrize("script", [effort_fields, sparse_or_table])
def test_a_missing_file_is_an_error(script: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--workloads", "nowhere.json"]) == 2  # type: ignore[attr-defined]
    assert "nowhere.json" in capsys.readouterr().err
