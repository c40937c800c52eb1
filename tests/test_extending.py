"""What docs/extending.md says runs, from top to bottom, and its records work once they are registered."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from partitioner import extensions
from partitioner.cli.command_line import main
from partitioner.methods.registry import METHODS

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TEMPLATE_LINES = 50


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == language]


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What the page defines when all of its Python has run."""
    names: dict[str, Any] = {"__name__": "page"}
    try:
        for block in blocks("python"):
            exec(block, names)
    finally:
        if METHODS.get("restarts") is names.get("RESTARTS"):
            extensions.unregister(names["RESTARTS"])
    return names


def test_the_page_runs(page: dict[str, Any]) -> None:
    """Its method passes all checks and finds the best plan of its example."""
    assert page["plan"].value == 3.5 and page["plan"].method == "restarts"


def test_the_method_is_a_short_one() -> None:
    (method,) = [block for block in blocks("python") if "def solve_restarts" in block]
    body = method[method.index("def solve_restarts") : method.index("RESTARTS = MethodInfo")]
    assert len([line for line in body.splitlines() if line]) <= TEMPLATE_LINES


def test_reader_and_writer_serve_the_command_line(page: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "net.lines").write_text("3\n1\n2\n", encoding="utf-8")
    with extensions.registered(page["LINES"], page["TABS"]):
        assert main(["solve", str(tmp_path / "net.lines"), "--output", str(tmp_path / "plan.tsv")]) == 0
    written = (tmp_path / "plan.tsv").read_text(encoding="utf-8")
    assert written == "0\taccelerator0\n1\taccelerator1\n2\taccelerator1\n"


def test_every_record_can_be_registered(page: dict[str, Any]) -> None:
    records = [page[name] for name in ("RESTARTS", "SQUARES", "LINES", "TABS", "NAMED")]
    with extensions.registered(*records):
        pass


def test_entry_points_are_those_of_the_registries_and_have_the_records_names(page: dict[str, Any]) -> None:
    known = {registry.group for registry in extensions.REGISTRIES}
    groups: dict[str, dict[str, str]] = {}
    for block in blocks("toml"):
        for group, points in tomllib.loads(block)["project"]["entry-points"].items():
            groups.setdefault(group, {}).update(points)
    assert groups.keys() == known
    places = {name: place for points in groups.values() for name, place in points.items()}
    records = {name: page.get(place.rpartition(":")[2]) for name, place in places.items()}
    assert [name for name, record in records.items() if record is None] == ["squares_descent"]
    assert all(record is None or record.name == name for name, record in records.items())
