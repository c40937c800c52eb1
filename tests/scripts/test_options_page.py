"""The tables of docs/options.md are what the records of the options say, and the script writes them."""

from __future__ import annotations

from pathlib import Path

import options_page
import pytest

from partitioner.planning.option import LIMITS, Option
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.option_rules import count


def test_the_page_has_the_tables_of_the_records() -> None:
    """Where this fails, ``python scripts/options_page.py`` mends the page."""
    assert options_page.main(["--check"]) == 0
    page = options_page.PAGE.read_text(encoding="utf-8")
    assert [name for name in OPTIONS if page.count(f"\n| `{name}`") != 1] == []


def test_a_page_that_says_something_else_is_found_and_mended(tmp_path: Path) -> None:
    page = tmp_path / "options.md"
    text = options_page.PAGE.read_text(encoding="utf-8")
    page.write_text(text.replace("`12`", "`13`"), encoding="utf-8")
    assert options_page.main(["--check", "--page", str(page)]) == 1
    assert options_page.main(["--page", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == text


def test_an_option_that_is_added_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "rounds", Option("rounds", 3, count(9), "do this many rounds", LIMITS))
    row = "| `rounds` | `3` | do this many rounds | 1 to 9 |  |"
    assert options_page.table(LIMITS).endswith(f"\n{row}")


def test_a_name_that_is_another_one_on_the_command_line_stands_beside_it() -> None:
    page = options_page.tables()
    assert "\n| `recompute` `--recompute-layers` |" in page and "\n| `time_limit` |" in page
