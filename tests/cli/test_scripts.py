"""A function of a file is called without a trace of the file, and whatever is wrong is named in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from partitioner.base.errors import OptionError
from partitioner.cli.scripts import call_made_by, made_by

SCRIPT = """
from dataclasses import dataclass

import beside_it

@dataclass
class Model:
    size: int

def make():
    return Model(beside_it.SIZE), (1, 2)

def late():
    from beside_it import SIZE
    return (SIZE,)

def one():
    return 3

def fails():
    raise ValueError("no\\nlines")

number = 5
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "beside_it.py").write_text("SIZE = 7\n")
    path = tmp_path / "my model.py"
    path.write_text(SCRIPT)
    return path


def test_the_function_is_called_and_nothing_is_left(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules, places = set(sys.modules), list(sys.path)
    model, args = made_by(f"{script}:make")
    assert (model.size, args, made_by(f"{script}:late")) == (7, (1, 2), (7,))
    assert set(sys.modules) - modules == {"beside_it"}  # what the file imports is imported
    monkeypatch.delitem(sys.modules, "beside_it")
    assert sys.path == places


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("maek", "has no function maek; did you mean 'make'?"),
        ("number", "has no function number"),
        ("one", "one returned 3: must return a tuple"),
        ("fails", "fails raised ValueError: no: must run without an exception"),
    ],
)
def test_a_broken_function_is_named(script: Path, name: str, text: str) -> None:
    with pytest.raises(OptionError) as failure:
        made_by(f"{script}:{name}")
    assert str(failure.value).startswith(f"{script}:{name}: ")
    assert text in str(failure.value)
    sys.modules.pop("beside_it", None)


@pytest.mark.parametrize("text", ["model.py", "model.py:", ":make", "", "nowhere.py:make"])
def test_a_text_that_names_no_function_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"must be a file and a function in it, such as model\.py:make"):
        made_by(text)


def test_a_file_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(OptionError, match=r"broken\.py raised ZeroDivisionError: division by zero"):
        made_by(f"{tmp_path / 'broken.py'}:make")
    with pytest.raises(OptionError, match=r"text\.txt must be a file of Python code, with the suffix \.py"):
        made_by(f"{tmp_path / 'text.txt'}:make")


CALLS = """
loss = min
def positional(): return 1, [2]
def named(): return 1, {"x": 2}
def scored(): return 1, (2,), loss
def judged(): return 1, (2,), loss, 3
def bare(): return 1, 2
def long(): return 1, (2,), loss, 3, 4
"""


def test_one_form_of_call_for_profiles_and_runs(tmp_path: Path) -> None:
    path = tmp_path / "calls.py"
    path.write_text(CALLS)
    found = {name: call_made_by(f"{path}:{name}")[1:] for name in ("positional", "named", "scored", "judged")}
    assert found == {
        "positional": ((2,), {}, None, ()),
        "named": ((), {"x": 2}, None, ()),
        "scored": ((2,), {}, min, ()),
        "judged": ((2,), {}, min, (3,)),
    }
    for name in ("bare", "long"):
        with pytest.raises(
            OptionError, match=r"must return \(model, args\), with args a tuple, or a dict by name"
        ):
            call_made_by(f"{path}:{name}")
