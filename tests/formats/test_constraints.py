"""A constraints file says what `Constraints` does; what it should not say is told with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import Constraints, Graph, WorkloadError
from partitioner.formats.constraints import READERS, load_constraints

FEW = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
GRAPH = Graph.from_arrays({"gpu": [1.0, 1.0]}, ids=[7, "head"])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 9) | st.floats() | st.sampled_from(["gpu", "7", "*"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["7", "head"]), inner),
    max_leaves=12,
)


def read(tmp_path: Path, data: Any) -> Constraints:
    path = tmp_path / "constraints.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return load_constraints(path, GRAPH)


def test_every_field(tmp_path: Path) -> None:
    data = {
        "pin": {"7": "gpu", "h*": "gpu0"},
        "forbid": {"head": ["cpu"]},
        "together": [[7, "head"]],
        "nodes_per_stage": [None, 9],
        "layers_per_stage": [1, None],
        "stages": 2,
        "use_all_devices": True,
        "neighbours_only": "forward",
        "whole": ["modules", "ends"],
        "own_memory": True,
        "one_kind": True,
        "no_replicas": True,
        "in_order": True,
        "equal_replicas": True,
    }
    assert set(data) == set(READERS)
    assert read(tmp_path, data) == Constraints(
        pin={7: "gpu", "h*": "gpu0"},
        forbid={"head": ["cpu"]},
        together=[[7, "head"]],
        nodes_per_stage=(None, 9),
        layers_per_stage=(1, None),
        stages=2,
        use_all_devices=True,
        neighbours_only="forward",
        whole=("modules", "ends"),
        own_memory=True,
        one_kind=True,
        no_replicas=True,
        equal_replicas=True,
        in_order=True,
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "file: []: must be a JSON object"),
        ({"pins": {}}, "file: pins: is not a field; these are pin,"),
        ({"stages": 2.5}, "file: stages = 2.5: must be a whole number"),
        ({"stages": 0}, "constraints: stages = 0: must be an integer of at least 1"),
        ({"nodes_per_stage": 3}, "file: nodes_per_stage = 3: must be a list of two numbers"),
        ({"pin": {"7": None}}, "file: pin = {'7': None}: must be a text"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        read(tmp_path, data)
    assert message in str(error.value)


@FEW
@given(data=st.dictionaries(st.sampled_from(list(READERS)), VALUE, max_size=4) | VALUE)
def test_constraints_or_a_workload_error(tmp_path: Path, data: Any) -> None:
    try:
        found = read(tmp_path, data)
    except WorkloadError as error:
        assert error.flaws
    else:
        assert isinstance(found, Constraints)
