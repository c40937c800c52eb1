"""pip knows the package by a name of its own, and an editable install works from every folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from partitioner.base.distribution import DISTRIBUTION

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools.build_meta import build_editable; build_editable(sys.argv[1])"
SCRIPT = """
import site, sys
from importlib.util import find_spec
site.addsitedir(sys.argv[1])
print(find_spec("partitioner").origin)
"""


def project() -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return content


def test_the_name_is_that_of_the_project_file() -> None:
    assert project()["name"] == DISTRIBUTION


def test_every_remedy_names_the_distribution_and_one_of_its_extras() -> None:
    """In the README, the documentation and the code; nothing asks for another project's package."""
    paths = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "partitioner").rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    named = re.findall(r'pip install "?([\w-]+)\[(\w+)\]', text)
    assert {name for name, _ in named} == {DISTRIBUTION}
    extras = {extra for _, extra in named} | set(re.findall(r'remedy\("(\w+)"\)', text))
    assert {"plots", "metis", "gurobi"} <= extras <= set(project()["optional-dependencies"])


def test_a_script_beside_the_clone_finds_an_editable_install(tmp_path: Path) -> None:
    """The clone's own folder has the name of the package, and is no namespace package for it."""
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.split(".")[0]) < 77:
        pytest.skip("an editable install needs setuptools 77")
    clone, site = tmp_path / "partitioner", tmp_path / "site"
    shutil.copytree(ROOT / "partitioner", clone / "partitioner", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    subprocess.run([sys.executable, "-c", BUILD, tmp_path], cwd=clone, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-S", str(tmp_path / "script.py"), str(site)]
    found = subprocess.run(command, cwd="/", check=True, capture_output=True, text=True)
    assert Path(found.stdout.strip()) == clone / "partitioner" / "__init__.py"
