"""``partitioner methods`` fits a screen, says all of a method when asked, and names the nearest name."""

from __future__ import annotations

import pytest

from partitioner import __version__
from partitioner.cli.command_line import main
from partitioner.cli.methods import letters, method_details, methods_lines
from partitioner.methods.registry import METHODS

Captured = pytest.CaptureFixture[str]


def test_every_method_has_one_line_where_there_is_room() -> None:
    lines = methods_lines(list(METHODS.values()), 160).splitlines()
    assert len(lines) == len(METHODS) + 3 and max(map(len, lines)) <= 160
    assert [line.split()[0] for line in lines[2:-1]] == list(METHODS)


def test_nothing_is_cut_at_80_columns() -> None:
    lines = methods_lines(list(METHODS.values()), 80).splitlines()
    assert max(map(len, lines)) <= 80
    whole = " ".join(" ".join(lines).split())
    assert all(info.guarantee in whole for info in METHODS.values())


def test_letters_tell_the_objectives_apart() -> None:
    assert len(set(letters().values())) == len(letters())
    line = methods_lines([METHODS["ip"]], 80).splitlines()[2]
    assert line.split()[:2] == ["ip", "TG----C"]


@pytest.mark.parametrize("name", METHODS)
def test_all_that_is_known_of_a_method_is_said(name: str) -> None:
    text = " ".join(method_details(METHODS[name], 80).split())
    info = METHODS[name]
    for words in (info.objectives, info.splits, info.backends, (info.guarantee,)):
        assert ", ".join(words) in text


def test_a_name_that_does_not_exist_is_named_with_the_nearest(capsys: Captured) -> None:
    assert main(["methods", "locl_search"]) == 2
    assert "did you mean 'local_search'?" in capsys.readouterr().err


def test_long_says_all_of_every_method(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["methods", "--long"]) == 0
    out = capsys.readouterr().out
    assert all(info.guarantee[:30] in out for info in METHODS.values()) and "splits" in out


def test_the_version_is_told(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0 and capsys.readouterr().out == f"partitioner {__version__}\n"
