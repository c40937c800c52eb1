"""Broken files, objects and command lines end in the package's own errors and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from trials.broken_files import contents, file_name, write_all
from trials.broken_inputs import SORTS, main
from trials.broken_objects import nouns
from trials.broken_options import LINES, run_line
from trials.broken_readers import READERS
from trials.broken_verbs import verbs
from trials.campaign import SOUND


@pytest.mark.slow
@pytest.mark.parametrize("sort", SORTS)
def test_broken_inputs_are_refused(sort: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", sort, "--cases", "150", "--seed", "40000"]) == SOUND, capsys.readouterr().out


def test_what_is_broken_was_sound(tmp_path: Path) -> None:
    """Every file is read, so that a refusal is about what was broken."""
    write_all(tmp_path, {})
    for kind in contents():
        READERS[kind](tmp_path / file_name(kind))


@pytest.mark.slow
def test_lines_and_calls_were_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command line and every call of a function works before something in it is broken."""
    write_all(tmp_path, {})
    for line in LINES:
        assert run_line(line.split(), tmp_path) == ("exit 0", ""), line
    monkeypatch.chdir(tmp_path)
    for entry in (*verbs(), *nouns()):
        entry.call(**entry.given)
