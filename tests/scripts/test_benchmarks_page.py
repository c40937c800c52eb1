"""The page of benchmarks is what the script writes from the result files, and names every one of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import benchmarks_page
import pytest


def test_the_page_is_what_the_script_writes() -> None:
    """Where this fails, ``python scripts/benchmarks_page.py`` mends the page."""
    assert benchmarks_page.main(["--check"]) == 0


def test_a_page_that_says_something_else_is_found_and_mended(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(benchmarks_page.page().replace("65.30", "65.31"), encoding="utf-8")
    assert benchmarks_page.main(["--check", "--page", str(page)]) == 1
    assert benchmarks_page.main(["--page", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == benchmarks_page.page()


def test_every_result_file_is_named_on_the_page() -> None:
    asked = tomllib.loads((benchmarks_page.RESULTS / "page.toml").read_text(encoding="utf-8"))
    shown = {result["file"] for section in asked["section"] for result in section.get("result", ())}
    text = benchmarks_page.page()
    files = [file.name for file in benchmarks_page.RESULTS.glob("*.md")]
    assert files and [name for name in files if name not in shown and f"`{name}`" not in text] == []


def test_every_script_that_a_command_names_exists() -> None:
    asked = tomllib.loads((benchmarks_page.RESULTS / "page.toml").read_text(encoding="utf-8"))
    words = [word for section in asked["section"] for word in section["command"].split()]
    named = [word for word in words if word.startswith("scripts/")]
    assert named and [word for word in named if not (benchmarks_page.SCRIPTS.parent / word).exists()] == []


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="c"):
        benchmarks_page.chosen("| a | b |\n| :-- | --: |\n| x | 1 |", ["c"])
