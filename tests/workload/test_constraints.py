"""Constraints are plain data; whatever is not is refused with field and value."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import Constraints, WorkloadError


def test_nothing_is_demanded_by_default() -> None:
    assert Constraints().empty and not Constraints().limited
    assert Constraints().as_dict() == {}


@pytest.mark.parametrize(
    ("demand", "limited"),
    [
        ({"pin": {"a": "gpu"}}, False),
        ({"forbid": {3: ["cpu"]}}, False),
        ({"together": [["a", 3]]}, False),
        ({"nodes_per_stage": (1, None)}, True),
        ({"layers_per_stage": (None, 4)}, True),
        ({"stages": 2}, True),
        ({"use_all_devices": True}, True),
        ({"neighbours_only": True}, True),
        ({"neighbours_only": "forward"}, True),
        ({"whole": ("modules", "ties")}, False),
        ({"one_kind": True}, False),
        ({"no_replicas": True}, False),
    ],
)
def test_what_is_demanded_is_told(demand: dict[str, Any], limited: bool) -> None:
    constraints = Constraints(**demand)
    assert not constraints.empty
    assert constraints.limited == limited
    assert constraints.as_dict() == demand


@pytest.mark.parametrize(
    "demand",
    [
        {"pin": ["a"]},
        {"pin": {"a": 3}},
        {"pin": {True: "gpu"}},
        {"forbid": {"a": "gpu"}},
        {"forbid": {"a": [1]}},
        {"together": ["ab"]},
        {"together": [[None]]},
        {"nodes_per_stage": 3},
        {"nodes_per_stage": (3, 2)},
        {"nodes_per_stage": (0, 2)},
        {"nodes_per_stage": (1, 2, 3)},
        {"layers_per_stage": (1.0, None)},
        {"stages": 0},
        {"stages": True},
        {"use_all_devices": 1},
        {"neighbours_only": "yes"},
        {"neighbours_only": 1},
        {"whole": "modules"},
        {"whole": ["layers"]},
        {"whole": 3},
        {"one_kind": "gpu"},
        {"no_replicas": None},
    ],
)
def test_what_cannot_be_demanded(demand: dict[str, Any]) -> None:
    with pytest.raises(WorkloadError) as error:
        Constraints(**demand)
    assert str(error.value).startswith(f"constraints: {next(iter(demand))} = ")
