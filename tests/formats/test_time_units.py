"""The unit of a workload file without one is what the caller says; no number changes by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from partitioner import OptionError, load, solve
from tests.instances import document, write


def test_a_plan_prints_the_unit_that_the_caller_says(tmp_path: Path) -> None:
    """The saved file says it from then on."""
    path = write(tmp_path, document())
    plain, found = load(path), load(path, time_unit="ms")
    assert (plain.graph.extras.time_unit, found.graph.extras.time_unit) == ("", "ms")
    assert plain.sha256 == found.sha256
    assert " ms per sample" in solve(found.graph, found.devices).summary()
    found.save(path)
    assert load(path).graph.extras.time_unit == load(path, time_unit="ms").graph.extras.time_unit == "ms"


def test_an_unknown_or_contradicting_unit_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, document() | {"timeUnit": "us"})
    with pytest.raises(OptionError, match="time_unit = 'ms': the file says 'us'"):
        load(path, time_unit="ms")
    with pytest.raises(OptionError, match="time_unit = 'hours': must be one of s, ms, us"):
        load(path, time_unit="hours")
