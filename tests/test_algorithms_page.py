"""Every file, class, function and name that the pages of algorithms mention exists in the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import partitioner
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import OBJECTIVES
from partitioner.workload.devices import COMMUNICATION_MODELS
from partitioner.workload.in_flight import SCHEDULES
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.house import trees_below

PACKAGE = Path(partitioner.__file__).parent
ROOT = PACKAGE.parent
PAGES = (ROOT / "docs" / "algorithms.md", *sorted((ROOT / "docs" / "algorithms").glob("*.md")))
PAGE = "\n".join(
    re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S) for page in PAGES
)
SPANS = sorted(set(re.findall(r"`([^`\n]+)`", PAGE)))
PLACES = (PACKAGE / "methods", PACKAGE, ROOT)  # where the page's names of files begin


def is_file(span: str) -> bool:
    """Whether a code span looks like the name of a file or a folder."""
    return span.endswith((".py", "/"))


def exists(span: str) -> bool:
    """Whether a file or folder of that name exists where the page says."""
    return any((place / span).exists() for place in PLACES)


@cache
def defined() -> frozenset[str]:
    """Return the names of classes, functions, members and choices (methods, schedules, ...) that exist."""
    names = {"auto", *METHODS, *OBJECTIVES, *SCHEDULES, *VIRTUAL, *COMMUNICATION_MODELS}
    for tree in trees_below(PACKAGE).values():
        names.update(_names(tree))
    return frozenset(names)


def _names(tree: ast.Module) -> Iterator[str]:
    for line in tree.body:
        if isinstance(line, ast.Assign):
            yield from (name.id for name in line.targets if isinstance(name, ast.Name))
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            yield line.target.id
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for member in _names_of_members(node):
                yield from (member, f"{node.name}.{member}")


def _names_of_members(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            yield part.name
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            yield part.target.id


def unknown(span: str) -> list[str]:
    """Return the names in a code span that the package does not define."""
    if span in defined():  # such as m-sct
        return []
    return [name for name in re.findall(r"(?=\d*[A-Za-z_])\w[\w.]*", span) if name not in defined()]


@pytest.mark.parametrize("span", [span for span in SPANS if is_file(span)])
def test_every_file_on_the_page_exists(span: str) -> None:
    assert exists(span)


@pytest.mark.slow
@pytest.mark.parametrize("span", [span for span in SPANS if not is_file(span)])
def test_every_name_on_the_page_is_defined(span: str) -> None:
    assert unknown(span) == []


@pytest.mark.parametrize("span", ["ip/squeeze.py", "solvers/race.py", "latency/nowhere/"])
def test_a_file_that_was_renamed_is_found_out(span: str) -> None:
    assert is_file(span) and not exists(span)


@pytest.mark.slow
@pytest.mark.parametrize("span", ["Crew", "Problem.lossy", "(Tasks, Settings) -> Finding"])
def test_a_name_that_was_renamed_is_found_out(span: str) -> None:
    assert not is_file(span) and len(unknown(span)) == 1


def test_the_page_mentions_every_subpackage_of_methods() -> None:
    folders = [path.name for path in (PACKAGE / "methods").iterdir() if (path / "__init__.py").exists()]
    assert [name for name in folders if not any(span.startswith(f"{name}/") for span in SPANS)] == []
