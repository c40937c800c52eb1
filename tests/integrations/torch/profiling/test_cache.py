"""A cached profile is read again for the same graph and machine only, and any other file is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitioner.base.errors import PartitionerError, WorkloadError
from partitioner.integrations.torch import profile

torch = pytest.importorskip("torch", reason="profiles of torch's models need torch")
from partitioner.integrations.torch.profiling.cache import (  # noqa: E402
    FORMAT,
    OperatorProfile,
    load_profile,
    profile_file,
    save_profile,
)

QUICK: dict[str, Any] = {"bandwidth": 1e9, "warm_up": 0, "tolerance": 1e9, "training": False}
NAMES = ("linear", "relu")
SOUND = OperatorProfile({"linear": (1.5, 64.0, 32.0), "relu": (0.0, 0.0, 0.0)}, 6, True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.fixed_dictionaries(
    {"format": st.just(FORMAT)},
    optional={
        "operators": JSON
        | st.fixed_dictionaries({name: JSON | st.lists(JSON, max_size=4) for name in NAMES}),
        "rounds": JSON,
        "stable": JSON,
    },
)


def profiled(cache: Path, rows: int = 3, **options: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    dtype = options.pop("dtype", torch.float32)
    return profile(model.to(dtype), (torch.ones(rows, 4, dtype=dtype),), cache=cache, **QUICK, **options)


def test_what_was_measured_is_read_again(tmp_path: Path) -> None:
    """Of another model object with the same operators: times do not depend on the weights."""
    folder = tmp_path / "made" / "here"
    first = profiled(folder)
    files = list(folder.iterdir())
    assert len(files) == 1
    before = files[0].read_text()
    again = profiled(folder)
    assert again.graph.time.tolist() == first.graph.time.tolist()
    assert [*folder.iterdir()] == files
    assert files[0].read_text() == before


def test_shape_type_clock_and_threads_have_files_of_their_own(tmp_path: Path) -> None:
    profiled(tmp_path)
    for number, change in enumerate(({"rows": 4}, {"dtype": torch.float64}, {"clock": "elapsed"}), 2):
        profiled(tmp_path, **change)
        assert len(list(tmp_path.iterdir())) == number
    torch.set_num_threads(2)
    profiled(tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


def test_a_profile_comes_back(tmp_path: Path) -> None:
    assert load_profile(tmp_path / "none.json", NAMES) is None
    save_profile(tmp_path / "one.json", SOUND)
    assert load_profile(tmp_path / "one.json", NAMES) == SOUND


@settings(max_examples=150, deadline=None)
@given(content=JSON | FIELDS)
def test_any_other_file_is_refused_by_its_name(
    content: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cache") / "broken.json"
    path.write_text(json.dumps(content))
    try:
        found = load_profile(path, NAMES)
    except WorkloadError as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert found is not None
        assert found.operators.keys() == {*NAMES}
        assert all(each >= 0 for values in found.operators.values() for each in values)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": "other"}, "operators: must be a profile of 2 operators; delete the file"),
        ({"operators": {"linear": [1, 2, 3]}}, "must be a profile of 2 operators"),
        ({"operators": {"linear": [1, 2], "relu": [1, 2, 3]}}, r"linear: = \[1, 2\]: must be 3 numbers"),
        ({"operators": {"linear": [1, 2, -3], "relu": [1, 2, 3]}}, "must be 3 numbers of at least 0"),
        ({"rounds": 0}, "must be an integer of at least 1"),
        ({"stable": 1}, "true or false"),
    ],
)
def test_the_broken_rule_is_named(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    path = tmp_path / "one.json"
    save_profile(path, SOUND)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(WorkloadError, match=text):
        load_profile(path, NAMES)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PartitionerError, match=r"cache: .*file/inside: cannot be made"):
        profile_file(tmp_path / "file" / "inside", torch.fx.Graph(), "cpu", "thread")
